/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"
#include "nest-row.h"
#include "text.h"
#include "units.h"

#include <stdio.h>
#include <string.h>

static void print_use(const char *title, guint64 used, guint64 limit, gboolean bytes)
{
	g_autofree char *percent = tn_text_percent(used, limit);
	g_autofree char *bar = tn_text_bar(used, limit, 20);
	g_autofree char *used_text =
		bytes ? tn_text_size(used) : g_strdup_printf("%" G_GUINT64_FORMAT, used);
	g_autofree char *limit_text =
		bytes ? tn_text_size(limit) : g_strdup_printf("%" G_GUINT64_FORMAT, limit);

	if (limit == TN_UNLIMITED)
		printf("%-14s%s, no limit\n", title, used_text);
	else
		printf("%-14s%s of %s  %s %s\n", title, used_text, limit_text, bar, percent);
}

static void print_time(const char *title, const char *time, gint64 now)
{
	g_autofree char *age = tn_text_age(time, now);
	g_autofree char *shown = tn_text_escape(time);

	printf("%-14s%s (%s ago)\n", title, shown, age);
}

static void print_duration(const char *title, guint64 seconds)
{
	char buffer[TN_SIZE_TEXT_MAX];

	if (seconds != TN_UNLIMITED)
		printf("%-14s%s\n", title, tn_format_duration(seconds, buffer));
}

/* How the bytes of files get to the store, and what an operator has to know of open ones. */
static void print_data_path(const TnNestRow *row)
{
	g_autofree char *path = tn_text_escape(row->data_path);
	g_autofree char *why = tn_text_escape(row->mediated_because);

	if (*path == '\0')
		return;
	if (*why != '\0')
		printf("%-14s%s: %s\n", "data path", path, why);
	else
		printf("%-14s%s, open files: %" G_GUINT64_FORMAT
		       ", of them for writing: %" G_GUINT64_FORMAT "\n",
		       "data path", path, row->open_files, row->open_writers);
	if (row->writeback)
		printf("%-14s%s\n", "write-back",
		       "yes: what was written may still be in the kernel");
}

static void print_nest(JsonObject *nest)
{
	gint64 now = g_get_real_time();
	g_autofree char *owner = NULL, *name = NULL, *state = NULL, *store = NULL;
	TnNestRow row;

	tn_nest_row_read(nest, &row);
	name = tn_text_escape(row.name);
	owner = tn_nest_row_owner(row.owner_uid);
	state = tn_text_escape(row.state);
	store = tn_text_escape(row.store);
	printf("%-14s%s\n", "name", name);
	printf("%-14s%s (uid %" G_GINT64_FORMAT ")\n", "owner", owner, row.owner_uid);
	printf("%-14s%s%s%s, %" G_GINT64_FORMAT " sandbox%s\n", "state", state,
	       row.ephemeral ? ", ephemeral" : "", row.durable ? ", durable" : "", row.attachments,
	       row.attachments == 1 ? "" : "es");
	printf("%-14s%s\n", "store", store);
	print_data_path(&row);
	print_use("bytes", row.bytes_used, row.bytes_limit, TRUE);
	print_use("inodes", row.inodes_used, row.inodes_limit, FALSE);
	print_duration("ttl", row.ttl);
	print_duration("idle ttl", row.idle_ttl);
	print_time("created", row.created, now);
	print_time("last used", row.last_used, now);
	printf("%-14s%" G_GUINT64_FORMAT "\n", "denied", row.denied_total);
	printf("%-14s%" G_GUINT64_FORMAT "\n", "quota hits", row.quota_hits_total);
	if (row.store_full_total > 0)
		printf("%-14s%" G_GUINT64_FORMAT " refusals\n", "disk full", row.store_full_total);
	printf("%-14s%" G_GUINT64_FORMAT "\n", "requests", row.requests_total);
	printf("%-14s%" G_GUINT64_FORMAT "\n", "cached nodes", row.nodes_cached);
}

static void print_rules(JsonArray *rules)
{
	for (guint i = 0; i < json_array_get_length(rules); i++) {
		JsonObject *rule = json_array_get_object_element(rules, i);
		const char *kind = json_object_get_string_member_with_default(rule, "kind", "");
		const char *pattern =
			json_object_get_string_member_with_default(rule, "pattern", "");
		g_autofree char *shown = tn_text_escape(pattern);

		printf("%-14s%s%s\n", strcmp(kind, "deny") == 0 ? "deny" : "read-only", shown,
		       json_object_get_boolean_member_with_default(rule, "built_in", FALSE)
			       ? " (built in)"
			       : "");
	}
}

static int compare_counts(gconstpointer a, gconstpointer b, gpointer data)
{
	gint64 left = json_object_get_int_member(data, a),
	       right = json_object_get_int_member(data, b);

	return left != right ? (left < right) - (left > right) : strcmp(a, b);
}

static void print_operations(JsonObject *operations)
{
	GList *names = json_object_get_members(operations);
	const char *title = "operations";

	names = g_list_sort_with_data(names, compare_counts, operations);
	for (const GList *l = names; l != NULL; l = l->next) {
		g_autofree char *shown = tn_text_escape(l->data);

		printf("%-14s%-14s %" G_GINT64_FORMAT "\n", title, shown,
		       json_object_get_int_member(operations, l->data));
		title = "";
	}
	g_list_free(names);
}

/* Does the account agree with the store? FALSE: it does not, and did not change meanwhile. */
static gboolean print_recount(JsonObject *recount, gboolean quiet)
{
	gboolean stable = json_object_get_boolean_member_with_default(recount, "stable", FALSE);
	gboolean matches = json_object_get_boolean_member_with_default(recount, "matches", FALSE);

	if (!quiet)
		printf("%-14s%" G_GINT64_FORMAT " bytes, %" G_GINT64_FORMAT " inodes: %s\n",
		       "recount", json_object_get_int_member_with_default(recount, "bytes", 0),
		       json_object_get_int_member_with_default(recount, "inodes", 0),
		       matches  ? "as in the account"
		       : stable ? "NOT as in the account"
				: "cannot be told, it changes all the time");
	return matches || !stable;
}

static JsonObject *object_member(JsonObject *object, const char *key)
{
	JsonNode *node = json_object_get_member(object, key);

	return node != NULL && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static JsonObject *ask(const TnCtlOptions *options, const char *name, gint64 owner, gboolean verify,
		       GError **error)
{
	g_autoptr(TnClient) client = tn_client_open(&options->choice, error);
	JsonObject *parameters;

	if (client == NULL)
		return NULL;
	parameters = json_object_new();
	json_object_set_string_member(parameters, "name", name);
	if (owner >= 0)
		json_object_set_int_member(parameters, "owner_uid", owner);
	if (verify) {
		json_object_set_boolean_member(parameters, "verify", TRUE);
		tn_client_set_timeout(client, 0);
	}
	return tn_client_call_more(client, "GetNest", parameters, error);
}

/* nest's fields, and beside them rules, operations and recount. */
static void print_json(JsonObject *reply)
{
	JsonObject *nest = json_object_ref(object_member(reply, "nest"));
	static const char *const keys[] = {"rules", "operations", "recount"};

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
		if (json_object_has_member(reply, keys[i]))
			json_object_set_member(nest, keys[i],
					       json_object_dup_member(reply, keys[i]));
	}
	tn_ctl_print_json(nest);
}

int tn_verb_show(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL;
	gboolean verify = FALSE, agrees = TRUE;
	const GOptionEntry entries[] = {
		{"verify", 0, 0, G_OPTION_ARG_NONE, &verify,
		 "Recount what the store holds; status 1 when the account differs", NULL},
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	g_autoptr(JsonObject) reply = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	gint64 owner;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 1, &options, &status))
		return status;
	if (!tn_ctl_owner(verb, owner_text, &owner) ||
	    !tn_ctl_check_name(verb, options.arguments[0]))
		return TN_CTL_USAGE;
	reply = ask(&options, options.arguments[0], owner, verify, &error);
	if (reply != NULL && object_member(reply, "nest") == NULL)
		error = g_error_new(TN_CLIENT_ERROR, TN_CTL_FAILED,
				    "daemon: answers without a nest");
	if (error != NULL)
		return tn_ctl_fail(verb, error);
	if (options.json) {
		print_json(reply);
	} else {
		print_nest(object_member(reply, "nest"));
		print_rules(json_object_get_array_member(reply, "rules"));
		print_operations(object_member(reply, "operations"));
	}
	if (object_member(reply, "recount") != NULL)
		agrees = print_recount(object_member(reply, "recount"), options.json);
	return agrees ? TN_CTL_OK : TN_CTL_FAILED;
}
