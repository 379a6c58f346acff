/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control-private.h"

#include <string.h>
#include <sys/sysmacros.h>

static const char *const states[] = {
	[TN_NEST_ACTIVE] = "active",     [TN_NEST_IDLE] = "idle",
	[TN_NEST_FROZEN] = "frozen",     [TN_NEST_EVICTING] = "evicting",
	[TN_NEST_DETACHED] = "detached",
};

static const char *const stores[] = {
	[TN_STORE_DIR] = "dir",
	[TN_STORE_MEMORY] = "memory",
	[TN_STORE_IMAGE] = "image",
};

void tn_control_set_text(JsonObject *object, const char *key, const char *text)
{
	g_autoptr(GString) valid = g_string_new(NULL);
	const char *end;

	while (!g_utf8_validate(text, -1, &end)) {
		g_string_append_len(valid, text, end - text);
		g_string_append_printf(valid, "\\x%02x", (unsigned char)*end);
		text = end + 1;
	}
	g_string_append(valid, text);
	json_object_set_string_member(object, key, valid->str);
}

void tn_control_set_time(JsonObject *object, const char *key, int64_t ns)
{
	g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(ns / 1000000000);
	g_autofree char *seconds = NULL, *text = NULL;

	if (time == NULL) {
		json_object_set_null_member(object, key);
		return;
	}
	seconds = g_date_time_format(time, "%Y-%m-%dT%H:%M:%S");
	text = g_strdup_printf("%s.%03dZ", seconds, (int)(ns / 1000000 % 1000));
	json_object_set_string_member(object, key, text);
}

void tn_control_set_count(JsonObject *object, const char *key, uint64_t value)
{
	json_object_set_int_member(object, key, value > INT64_MAX ? INT64_MAX : (gint64)value);
}

void tn_control_set_limit(JsonObject *object, const char *key, uint64_t value)
{
	if (value == TN_UNLIMITED)
		json_object_set_null_member(object, key);
	else
		tn_control_set_count(object, key, value);
}

static const char *name_of(const char *const *names, size_t n, unsigned value, const char *other)
{
	return value < n && names[value] != NULL ? names[value] : other;
}

JsonObject *tn_control_nest_json(const TnNestInfo *info)
{
	JsonObject *nest = json_object_new();
	char id[17];

	g_snprintf(id, sizeof(id), "%016" G_GINT64_MODIFIER "x", info->id);
	json_object_set_string_member(nest, "id", id);
	tn_control_set_text(nest, "name", info->name);
	json_object_set_int_member(nest, "owner_uid", info->owner_uid);
	json_object_set_int_member(nest, "owner_gid", info->owner_gid);
	json_object_set_string_member(
		nest, "state", name_of(states, G_N_ELEMENTS(states), info->state, "detached"));
	json_object_set_boolean_member(nest, "ephemeral", info->ephemeral);
	json_object_set_boolean_member(nest, "keep", info->keep);
	json_object_set_boolean_member(nest, "durable", info->durable);
	json_object_set_boolean_member(nest, "xattrs", !info->no_xattrs);
	json_object_set_string_member(nest, "store",
				      name_of(stores, G_N_ELEMENTS(stores), info->store, "dir"));
	json_object_set_int_member(nest, "attachments", info->attachments);
	tn_control_set_count(nest, "bytes_used", info->bytes_used);
	tn_control_set_limit(nest, "bytes_limit", info->bytes_limit);
	tn_control_set_count(nest, "inodes_used", info->inodes_used);
	tn_control_set_limit(nest, "inodes_limit", info->inodes_limit);
	tn_control_set_limit(nest, "ttl", info->ttl);
	tn_control_set_limit(nest, "idle_ttl", info->idle_ttl);
	tn_control_set_count(nest, "denied_total", info->denied_total);
	tn_control_set_count(nest, "quota_hits_total", info->quota_hits_total);
	tn_control_set_count(nest, "store_full_total", info->store_full_total);
	tn_control_set_count(nest, "requests_total", info->requests_total);
	if (info->view_dev != 0) {
		char device[32];

		g_snprintf(device, sizeof(device), "%u:%u", major(info->view_dev),
			   minor(info->view_dev));
		json_object_set_string_member(nest, "device", device);
	}
	tn_control_set_count(nest, "busy_ns", info->busy_ns);
	tn_control_set_count(nest, "nodes_cached", info->nodes_cached);
	tn_control_set_time(nest, "created", info->created_ns);
	tn_control_set_time(nest, "last_used", info->last_used_ns);
	return nest;
}

gboolean tn_control_store_kind(const char *text, TnStoreKind *ret)
{
	for (unsigned kind = 0; kind < G_N_ELEMENTS(stores); kind++) {
		if (stores[kind] != NULL && strcmp(stores[kind], text) == 0) {
			*ret = (TnStoreKind)kind;
			return TRUE;
		}
	}
	return FALSE;
}
