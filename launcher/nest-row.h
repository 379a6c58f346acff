/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One nest as the daemon describes it, read from JSON for people. A field that is missing
 * or of another type reads as its empty value: an older daemon must not break a listing.
 */
#pragma once

#include "table.h"

#include <json-glib/json-glib.h>

typedef struct TnNestRow {
	const char *name, *state, *store, *created, *last_used; /* in the object */
	gint64 owner_uid, attachments;
	guint64 bytes_used, bytes_limit, inodes_used, inodes_limit; /* TN_UNLIMITED: none */
	guint64 ttl, idle_ttl;
	guint64 store_full_total;
	guint64 denied_total, quota_hits_total, requests_total, nodes_cached;
	gboolean ephemeral, durable;
} TnNestRow;

void tn_nest_row_read(JsonObject *nest, TnNestRow *ret);

/* How a state and a use are tinted. */
TnTint tn_nest_row_state_tint(const TnNestRow *row);
TnTint tn_nest_row_use_tint(guint64 used, guint64 limit);

/* The login name of uid, or its number. The caller's. */
char *tn_nest_row_owner(gint64 uid);
/* Are there nests of more than one owner, or of one that we are not? */
gboolean tn_nest_rows_show_owner(JsonArray *nests);
