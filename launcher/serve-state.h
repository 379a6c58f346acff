/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `serve` knows of the daemon: the newest answers, and how much each nest held in the
 * last minutes. Memory is bounded by the nests that there are. One thread, but
 * tn_serve_usage(), which has a connection of its own.
 */
#pragma once

#include "control-client.h"

#define TN_SERVE_SECONDS 2   /* between two looks */
#define TN_SERVE_HISTORY 300 /* values of each nest */

typedef struct TnServeState TnServeState;

/* Connects, and keeps only the right to look. NULL with *error. */
TnServeState *tn_serve_state_new(const TnDaemonChoice *choice, GError **error);
void tn_serve_state_free(TnServeState *state); /* takes NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TnServeState, tn_serve_state_free)

/* No new connections from now on: the process has given up its rights. */
void tn_serve_state_seal(TnServeState *state);
gboolean tn_serve_state_is_sealed(const TnServeState *state);

/* Asks the daemon. FALSE with *error: the answers are the old ones, or none. */
gboolean tn_serve_update(TnServeState *state, GError **error);

/* Borrowed, until the next update; NULL before the first. */
JsonArray *tn_serve_nests(const TnServeState *state);
char *tn_serve_metrics(const TnServeState *state);

/* The nest of that id (16 hexadecimal digits), borrowed; NULL: none. */
JsonObject *tn_serve_find(const TnServeState *state, const char *id);
/* Bytes that it held, oldest first; the caller's. */
JsonArray *tn_serve_history(const TnServeState *state, const char *id);

/* The caller's; NULL with *error. */
JsonObject *tn_serve_events(TnServeState *state, JsonObject *nest, GError **error);
JsonObject *tn_serve_usage(TnServeState *state, const char *name, gint64 owner, GError **error);
