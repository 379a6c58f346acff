/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One nest as the daemon describes it, read from JSON for people. A field that is missing
 * or of another type reads as its empty value: an older daemon must not break a listing.
 */
#pragma once

#include "json-scan.h"
#include "table.h"

#include <json-glib/json-glib.h>

typedef struct TnNestRow {
	const char *name, *state, *store, *created, *last_used, *data_path,
		*mediated_because; /* never NULL; where it came from has them */
	gint64 owner_uid, attachments;
	guint64 bytes_used, bytes_limit, inodes_used, inodes_limit; /* TN_UNLIMITED: none */
	guint64 ttl, idle_ttl;
	guint64 store_full_total;
	guint64 denied_total, quota_hits_total, requests_total, busy_ns, nodes_cached;
	guint64 open_files, open_writers;
	gboolean ephemeral, durable, writeback;
} TnNestRow;

void tn_nest_row_read(JsonObject *nest, TnNestRow *ret);

/* The nests of a listing. */
typedef struct TnNestRows TnNestRows;
TnNestRows *tn_nest_rows_new(void);
/* One more, from its JSON text; data: the rows. What is no object is left out. */
void tn_nest_rows_add(const TnJsonText *nest, void *data);
/* All of an array of objects, which must live as long as the rows. */
TnNestRows *tn_nest_rows_read(JsonArray *nests);
void tn_nest_rows_free(TnNestRows *rows); /* takes NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TnNestRows, tn_nest_rows_free)
guint tn_nest_rows_count(const TnNestRows *rows);
const TnNestRow *tn_nest_rows_at(const TnNestRows *rows, guint i);

/* How a state and a use are tinted. */
TnTint tn_nest_row_state_tint(const TnNestRow *row);
TnTint tn_nest_row_use_tint(guint64 used, guint64 limit);

/* The login name of uid, or its number. The caller's. */
char *tn_nest_row_owner(gint64 uid);
/* Are there nests of more than one owner, or of one that we are not? */
gboolean tn_nest_rows_show_owner(const TnNestRows *rows);
