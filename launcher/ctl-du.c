/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `du`: what fills a nest, largest first.
 */
#include "ctl-tree.h"

#include "names.h"
#include "table.h"
#include "text.h"

#include <stdio.h>

static guint64 count(JsonObject *object, const char *key)
{
	gint64 value = json_object_get_int_member_with_default(object, key, 0);

	return value > 0 ? (guint64)value : 0;
}

/* The name at key, safe on a terminal; a slash behind a directory's. */
static char *shown_name(JsonObject *object, const char *key)
{
	g_autofree char *name =
		g_strdup(json_object_get_string_member_with_default(object, key, ""));
	const char *type = json_object_get_string_member_with_default(object, "type", "");
	g_autofree char *shown = NULL;

	if (tn_name_decode(name) < 0)
		return g_strdup("?");
	shown = tn_text_escape(name);
	return g_strconcat(shown, g_str_equal(type, "directory") ? "/" : "", NULL);
}

static JsonArray *array_member(JsonObject *object, const char *key)
{
	JsonNode *node = json_object_get_member(object, key);

	return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static void print_uses(JsonArray *uses, const char *key, guint64 whole)
{
	static const char *const columns[] = {">BYTES", ">PART", " ", ">INODES", "NAME", NULL};
	g_autoptr(TnTable) table = tn_table_new(columns, tn_ctl_colours());
	g_autofree char *text = NULL;

	for (guint i = 0; i < json_array_get_length(uses); i++) {
		JsonObject *use = json_array_get_object_element(uses, i);
		guint64 bytes = count(use, "bytes");

		tn_table_add(table, TN_TINT_NONE, tn_text_size(bytes));
		tn_table_add(table, TN_TINT_NONE,
			     whole > 0 ? tn_text_percent(bytes, whole) : g_strdup("-"));
		tn_table_add(table, TN_TINT_NONE,
			     tn_text_bar(whole > 0 ? bytes : 0, whole > 0 ? whole : 1, 10));
		tn_table_add(table, TN_TINT_NONE,
			     g_strdup_printf("%" G_GUINT64_FORMAT, count(use, "inodes")));
		tn_table_add(table, TN_TINT_NONE, shown_name(use, key));
	}
	text = tn_table_text(table);
	fputs(text, stdout);
}

static void print_usage(JsonObject *usage, gboolean files)
{
	JsonArray *uses = array_member(usage, files ? "files" : "entries");
	g_autofree char *bytes = tn_text_size(count(usage, "bytes"));
	g_autofree char *held = tn_text_size(count(usage, "held_bytes"));
	guint64 total = count(usage, "entries_total");

	if (uses != NULL && json_array_get_length(uses) > 0)
		print_uses(uses, files ? "path" : "name", count(usage, "bytes"));
	if (!files && uses != NULL && json_array_get_length(uses) < total)
		printf("and %" G_GUINT64_FORMAT " smaller ones\n",
		       total - json_array_get_length(uses));
	printf("%s in %" G_GUINT64_FORMAT " inodes", bytes, count(usage, "inodes"));
	if (count(usage, "held_inodes") > 0)
		printf("; %s more in %" G_GUINT64_FORMAT " deleted, still in use", held,
		       count(usage, "held_inodes"));
	if (!json_object_get_boolean_member_with_default(usage, "complete", TRUE))
		fputs("; not all of it, directories moved meanwhile", stdout);
	putchar('\n');
}

int tn_verb_du(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL;
	gboolean files = FALSE;
	gint top = 50;
	const GOptionEntry entries[] = {
		{"files", 0, 0, G_OPTION_ARG_NONE, &files,
		 "The largest single files, wherever they are", NULL},
		{"top", 0, 0, G_OPTION_ARG_INT, &top, "At most so many (50)", "N"},
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	g_auto(TnCtlPlace) place = {NULL};
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) reply = NULL;
	JsonObject *parameters;
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 2, &options, &status))
		return status;
	if (top < 1 || top > 1000)
		return tn_ctl_usage(verb, "--top", "1 to 1000");
	if (!tn_ctl_place(verb, &options, owner_text, &place))
		return TN_CTL_USAGE;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL) {
		parameters = tn_ctl_place_parameters(&place, place.path);
		json_object_set_int_member(parameters, "top", top);
		tn_client_set_timeout(client, 0);
		reply = tn_client_call_more(client, "GetUsage", parameters, &error);
	}
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	if (options.json)
		tn_ctl_print_json(json_object_ref(reply));
	else
		print_usage(reply, files);
	return TN_CTL_OK;
}
