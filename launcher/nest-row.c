/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nest-row.h"

#include "text.h"
#include "units.h"

#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct TnNestRows {
	GArray *rows;          /* of TnNestRow */
	GStringChunk *strings; /* what those point at, when they come from text */
};

typedef enum Kind {
	KIND_TEXT,
	KIND_INT,
	KIND_COUNT, /* below zero reads as zero */
	KIND_LIMIT, /* null, or not there: none */
	KIND_FLAG,
} Kind;

typedef struct Field {
	const char *key;
	Kind kind;
	gsize offset;
} Field;

#define FIELD(key, kind) \
	{ \
#key, kind, offsetof(TnNestRow, key) \
	}

/* In the order in which the daemon writes them. */
static const Field fields[] = {
	FIELD(name, KIND_TEXT),
	FIELD(owner_uid, KIND_INT),
	FIELD(state, KIND_TEXT),
	FIELD(ephemeral, KIND_FLAG),
	FIELD(durable, KIND_FLAG),
	FIELD(writeback, KIND_FLAG),
	FIELD(store, KIND_TEXT),
	FIELD(data_path, KIND_TEXT),
	FIELD(mediated_because, KIND_TEXT),
	FIELD(open_files, KIND_COUNT),
	FIELD(open_writers, KIND_COUNT),
	FIELD(attachments, KIND_INT),
	FIELD(bytes_used, KIND_COUNT),
	FIELD(bytes_limit, KIND_LIMIT),
	FIELD(inodes_used, KIND_COUNT),
	FIELD(inodes_limit, KIND_LIMIT),
	FIELD(ttl, KIND_LIMIT),
	FIELD(idle_ttl, KIND_LIMIT),
	FIELD(denied_total, KIND_COUNT),
	FIELD(quota_hits_total, KIND_COUNT),
	FIELD(store_full_total, KIND_COUNT),
	FIELD(requests_total, KIND_COUNT),
	FIELD(busy_ns, KIND_COUNT),
	FIELD(nodes_cached, KIND_COUNT),
	FIELD(created, KIND_TEXT),
	FIELD(last_used, KIND_TEXT),
};

static void *place_of(TnNestRow *row, const Field *field)
{
	return (char *)row + field->offset;
}

static void make_empty(TnNestRow *row)
{
	*row = (TnNestRow){.bytes_limit = 0};
	for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
		if (fields[i].kind == KIND_TEXT)
			*(const char **)place_of(row, &fields[i]) = "";
		else if (fields[i].kind == KIND_LIMIT)
			*(guint64 *)place_of(row, &fields[i]) = TN_UNLIMITED;
	}
}

static void set_number(TnNestRow *row, const Field *field, gint64 value)
{
	if (field->kind == KIND_INT)
		*(gint64 *)place_of(row, field) = value;
	else if (field->kind == KIND_COUNT || field->kind == KIND_LIMIT)
		*(guint64 *)place_of(row, field) = value > 0 ? (guint64)value : 0;
}

static void set_from_node(TnNestRow *row, const Field *field, JsonNode *node)
{
	GType type = node != NULL && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node)
								 : G_TYPE_INVALID;

	if (type == G_TYPE_INT64)
		set_number(row, field, json_node_get_int(node));
	else if (type == G_TYPE_STRING && field->kind == KIND_TEXT)
		*(const char **)place_of(row, field) = json_node_get_string(node);
	else if (type == G_TYPE_BOOLEAN && field->kind == KIND_FLAG)
		*(gboolean *)place_of(row, field) = json_node_get_boolean(node);
}

void tn_nest_row_read(JsonObject *nest, TnNestRow *ret)
{
	make_empty(ret);
	for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
		set_from_node(ret, &fields[i], json_object_get_member(nest, fields[i].key));
}

/* --- rows of text --- */

static const char *keep_string(TnNestRows *rows, const TnJsonText *value)
{
	g_autoptr(GString) text = NULL;

	if (memchr(value->at, '\\', value->size) == NULL)
		return g_string_chunk_insert_len(rows->strings, value->at + 1,
						 (gssize)value->size - 2);
	text = g_string_new(NULL);
	if (!tn_json_append_string(value, text))
		return "";
	return g_string_chunk_insert(rows->strings, text->str);
}

static void set_from_text(TnNestRows *rows, TnNestRow *row, const Field *field,
			  const TnJsonText *value)
{
	gint64 number;

	if (field->kind == KIND_TEXT && *value->at == '"')
		*(const char **)place_of(row, field) = keep_string(rows, value);
	else if (field->kind == KIND_FLAG)
		*(gboolean *)place_of(row, field) = *value->at == 't';
	else if (tn_json_int(value, &number))
		set_number(row, field, number);
}

/* From where the last one was found: they come in our order. */
static const Field *find_field(const TnJsonText *key, gsize *next)
{
	for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
		gsize at = (*next + i) % G_N_ELEMENTS(fields);

		if (!tn_json_equals(key, fields[at].key))
			continue;
		*next = at + 1;
		return &fields[at];
	}
	return NULL;
}

void tn_nest_rows_add(const TnJsonText *nest, void *data)
{
	TnNestRows *rows = data;
	TnJsonText key, value;
	TnJsonScan scan;
	TnNestRow row;
	gsize next = 0;

	if (!tn_json_scan_object(nest, &scan))
		return;
	make_empty(&row);
	while (tn_json_next_member(&scan, &key, &value)) {
		const Field *field = find_field(&key, &next);

		if (field != NULL)
			set_from_text(rows, &row, field, &value);
	}
	g_array_append_val(rows->rows, row);
}

TnNestRows *tn_nest_rows_new(void)
{
	TnNestRows *rows = g_new0(TnNestRows, 1);

	rows->rows = g_array_new(FALSE, FALSE, sizeof(TnNestRow));
	rows->strings = g_string_chunk_new(16384);
	return rows;
}

TnNestRows *tn_nest_rows_read(JsonArray *nests)
{
	TnNestRows *rows = tn_nest_rows_new();

	for (guint i = 0; i < json_array_get_length(nests); i++) {
		TnNestRow row;

		tn_nest_row_read(json_array_get_object_element(nests, i), &row);
		g_array_append_val(rows->rows, row);
	}
	return rows;
}

void tn_nest_rows_free(TnNestRows *rows)
{
	if (rows == NULL)
		return;
	g_array_unref(rows->rows);
	g_string_chunk_free(rows->strings);
	g_free(rows);
}

guint tn_nest_rows_count(const TnNestRows *rows)
{
	return rows->rows->len;
}

const TnNestRow *tn_nest_rows_at(const TnNestRows *rows, guint i)
{
	return &g_array_index(rows->rows, TnNestRow, i);
}

TnTint tn_nest_row_state_tint(const TnNestRow *row)
{
	if (strcmp(row->state, "active") == 0)
		return TN_TINT_GOOD;
	if (strcmp(row->state, "frozen") == 0 || strcmp(row->state, "evicting") == 0)
		return TN_TINT_WARN;
	return TN_TINT_NONE;
}

TnTint tn_nest_row_use_tint(guint64 used, guint64 limit)
{
	if (limit == TN_UNLIMITED)
		return TN_TINT_NONE;
	if (used >= limit - limit / 20)
		return TN_TINT_BAD;
	return used >= limit - limit / 5 ? TN_TINT_WARN : TN_TINT_NONE;
}

char *tn_nest_row_owner(gint64 uid)
{
	struct passwd *pw = getpwuid((uid_t)uid);

	return pw != NULL ? tn_text_escape(pw->pw_name) : g_strdup_printf("%" G_GINT64_FORMAT, uid);
}

gboolean tn_nest_rows_show_owner(const TnNestRows *rows)
{
	for (guint i = 0; i < tn_nest_rows_count(rows); i++) {
		if (tn_nest_rows_at(rows, i)->owner_uid != geteuid())
			return TRUE;
	}
	return FALSE;
}
