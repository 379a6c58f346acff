/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nest-row.h"

#include "text.h"
#include "units.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

static JsonNode *value_of(JsonObject *object, const char *key, GType type)
{
	JsonNode *node = json_object_get_member(object, key);

	if (node == NULL || !JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != type)
		return NULL;
	return node;
}

static gint64 number(JsonObject *object, const char *key)
{
	JsonNode *node = value_of(object, key, G_TYPE_INT64);

	return node != NULL ? json_node_get_int(node) : 0;
}

static guint64 count(JsonObject *object, const char *key)
{
	gint64 value = number(object, key);

	return value > 0 ? (guint64)value : 0;
}

static guint64 limit(JsonObject *object, const char *key)
{
	JsonNode *node = json_object_get_member(object, key);

	return node == NULL || JSON_NODE_HOLDS_NULL(node) ? TN_UNLIMITED : count(object, key);
}

static const char *text(JsonObject *object, const char *key)
{
	JsonNode *node = value_of(object, key, G_TYPE_STRING);

	return node != NULL ? json_node_get_string(node) : "";
}

static gboolean flag(JsonObject *object, const char *key)
{
	JsonNode *node = value_of(object, key, G_TYPE_BOOLEAN);

	return node != NULL && json_node_get_boolean(node);
}

void tn_nest_row_read(JsonObject *nest, TnNestRow *ret)
{
	*ret = (TnNestRow){
		.name = text(nest, "name"),
		.state = text(nest, "state"),
		.store = text(nest, "store"),
		.created = text(nest, "created"),
		.last_used = text(nest, "last_used"),
		.owner_uid = number(nest, "owner_uid"),
		.attachments = number(nest, "attachments"),
		.bytes_used = count(nest, "bytes_used"),
		.bytes_limit = limit(nest, "bytes_limit"),
		.inodes_used = count(nest, "inodes_used"),
		.inodes_limit = limit(nest, "inodes_limit"),
		.ttl = limit(nest, "ttl"),
		.idle_ttl = limit(nest, "idle_ttl"),
		.denied_total = count(nest, "denied_total"),
		.quota_hits_total = count(nest, "quota_hits_total"),
		.store_full_total = count(nest, "store_full_total"),
		.requests_total = count(nest, "requests_total"),
		.nodes_cached = count(nest, "nodes_cached"),
		.ephemeral = flag(nest, "ephemeral"),
		.durable = flag(nest, "durable"),
	};
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

gboolean tn_nest_rows_show_owner(JsonArray *nests)
{
	for (guint i = 0; i < json_array_get_length(nests); i++) {
		TnNestRow row;

		tn_nest_row_read(json_array_get_object_element(nests, i), &row);
		if (row.owner_uid != geteuid())
			return TRUE;
	}
	return FALSE;
}
