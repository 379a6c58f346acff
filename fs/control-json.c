/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control-private.h"

#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

static const char *const states[] = {
	[TN_NEST_ACTIVE] = "active",     [TN_NEST_IDLE] = "idle",
	[TN_NEST_FROZEN] = "frozen",     [TN_NEST_EVICTING] = "evicting",
	[TN_NEST_DETACHED] = "detached",
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

#define TIME_TEXT_MAX 48

/* RFC 3339 in UTC; FALSE when it is not a time that has one. */
static gboolean time_text(int64_t ns, char ret[TIME_TEXT_MAX])
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm utc;
	char day[32];

	if (ns < 0 || gmtime_r(&seconds, &utc) == NULL || utc.tm_year > 9999 - 1900 ||
	    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return FALSE;
	g_snprintf(ret, TIME_TEXT_MAX, "%s.%03dZ", day, (int)(ns / 1000000 % 1000));
	return TRUE;
}

void tn_control_set_time(JsonObject *object, const char *key, int64_t ns)
{
	char text[TIME_TEXT_MAX];

	if (time_text(ns, text))
		json_object_set_string_member(object, key, text);
	else
		json_object_set_null_member(object, key);
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

/* --- one nest, as text: a listing may have thousands -------------------------------------------
 */

static void append_key(GString *out, const char *key)
{
	g_string_append(out, out->str[out->len - 1] == '{' ? "\"" : ",\"");
	g_string_append(out, key);
	g_string_append(out, "\":");
}

/* A word of ours, a nest's name, a time: all of it is ASCII that needs no escaping, or it is
 * broken. */
static void append_word(GString *out, const char *key, const char *value)
{
	append_key(out, key);
	g_string_append_c(out, '"');
	for (; *value != '\0'; value++) {
		if (*value < ' ' || *value > '~' || *value == '"' || *value == '\\')
			g_string_append_printf(out, "\\u%04x", (guchar)*value);
		else
			g_string_append_c(out, *value);
	}
	g_string_append_c(out, '"');
}

static void append_flag(GString *out, const char *key, bool value)
{
	append_key(out, key);
	g_string_append(out, value ? "true" : "false");
}

static void append_count(GString *out, const char *key, uint64_t value)
{
	char digits[24], *at = digits + sizeof(digits);

	if (value > INT64_MAX)
		value = INT64_MAX;
	do
		*--at = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	append_key(out, key);
	g_string_append_len(out, at, digits + sizeof(digits) - at);
}

static void append_limit(GString *out, const char *key, uint64_t value)
{
	if (value != TN_UNLIMITED) {
		append_count(out, key, value);
		return;
	}
	append_key(out, key);
	g_string_append(out, "null");
}

static void append_time(GString *out, const char *key, int64_t ns)
{
	char text[TIME_TEXT_MAX];

	if (time_text(ns, text)) {
		append_word(out, key, text);
		return;
	}
	append_key(out, key);
	g_string_append(out, "null");
}

void tn_control_nest_text(GString *out, const TnNestInfo *info)
{
	char id[17], device[32];

	g_snprintf(id, sizeof(id), "%016" G_GINT64_MODIFIER "x", info->id);
	g_string_append_c(out, '{');
	append_word(out, "id", id);
	append_word(out, "name", info->name);
	append_count(out, "owner_uid", info->owner_uid);
	append_count(out, "owner_gid", info->owner_gid);
	append_word(out, "state", name_of(states, G_N_ELEMENTS(states), info->state, "detached"));
	append_flag(out, "ephemeral", info->ephemeral);
	append_flag(out, "keep", info->keep);
	append_flag(out, "durable", info->durable);
	append_flag(out, "xattrs", !info->no_xattrs);
	append_flag(out, "writeback", info->writeback);
	append_word(out, "store", tn_store_kind_name(info->store));
	append_word(out, "data_path",
		    info->data_path == TN_PATH_PASSTHROUGH ? "passthrough" : "mediated");
	if (info->data_path != TN_PATH_PASSTHROUGH)
		append_word(out, "mediated_because", tn_data_path_reason(info->data_path));
	append_count(out, "open_files", info->open_files);
	append_count(out, "open_writers", info->open_writers);
	append_count(out, "attachments", info->attachments);
	append_count(out, "bytes_used", info->bytes_used);
	append_limit(out, "bytes_limit", info->bytes_limit);
	append_count(out, "inodes_used", info->inodes_used);
	append_limit(out, "inodes_limit", info->inodes_limit);
	append_limit(out, "ttl", info->ttl);
	append_limit(out, "idle_ttl", info->idle_ttl);
	append_count(out, "denied_total", info->denied_total);
	append_count(out, "quota_hits_total", info->quota_hits_total);
	append_count(out, "store_full_total", info->store_full_total);
	append_count(out, "requests_total", info->requests_total);
	if (info->view_dev != 0) {
		g_snprintf(device, sizeof(device), "%u:%u", major(info->view_dev),
			   minor(info->view_dev));
		append_word(out, "device", device);
	}
	append_count(out, "busy_ns", info->busy_ns);
	append_count(out, "nodes_cached", info->nodes_cached);
	append_time(out, "created", info->created_ns);
	append_time(out, "last_used", info->last_used_ns);
	g_string_append_c(out, '}');
}

JsonObject *tn_control_nest_json(const TnNestInfo *info)
{
	g_autoptr(GString) text = g_string_new(NULL);
	g_autoptr(JsonNode) node = NULL;

	tn_control_nest_text(text, info);
	node = json_from_string(text->str, NULL);
	return node != NULL ? json_node_dup_object(node) : json_object_new();
}
