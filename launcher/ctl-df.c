/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"
#include "nest-row.h"
#include "text.h"
#include "units.h"

#include <stdio.h>
#include <string.h>

#define BAR_CELLS 20

static guint64 left(guint64 used, guint64 limit)
{
	if (limit == TN_UNLIMITED)
		return TN_UNLIMITED;
	return used < limit ? limit - used : 0;
}

static void add_row(TnTable *table, const TnNestRow *row)
{
	TnTint use = tn_nest_row_use_tint(row->bytes_used, row->bytes_limit);
	TnTint inode_use = tn_nest_row_use_tint(row->inodes_used, row->inodes_limit);

	tn_table_add(table, TN_TINT_NONE, tn_text_escape(row->name));
	tn_table_add(table, TN_TINT_NONE, tn_text_size(row->bytes_limit));
	tn_table_add(table, use, tn_text_size(row->bytes_used));
	tn_table_add(table, TN_TINT_NONE, tn_text_size(left(row->bytes_used, row->bytes_limit)));
	tn_table_add(table, use, tn_text_percent(row->bytes_used, row->bytes_limit));
	tn_table_add(table, use, tn_text_bar(row->bytes_used, row->bytes_limit, BAR_CELLS));
	tn_table_add(table, inode_use, g_strdup_printf("%" G_GUINT64_FORMAT, row->inodes_used));
	tn_table_add(table, inode_use, tn_text_percent(row->inodes_used, row->inodes_limit));
}

static gboolean is_named(const TnNestRow *row, char **names)
{
	return names[0] == NULL || g_strv_contains((const char *const *)names, row->name);
}

/* Those that were asked for, all when none was. */
static JsonArray *select_nests(JsonArray *nests, char **names)
{
	JsonArray *selected = json_array_new();

	for (guint i = 0; i < json_array_get_length(nests); i++) {
		JsonObject *nest = json_array_get_object_element(nests, i);
		TnNestRow row;

		tn_nest_row_read(nest, &row);
		if (is_named(&row, names))
			json_array_add_object_element(selected, json_object_ref(nest));
	}
	return selected;
}

static int check_names(const TnVerb *verb, JsonArray *selected, char **names)
{
	int status = TN_CTL_OK;

	for (guint i = 0; names[i] != NULL; i++) {
		gboolean found = FALSE;
		g_autofree char *shown = NULL;

		for (guint j = 0; j < json_array_get_length(selected) && !found; j++) {
			TnNestRow row;

			tn_nest_row_read(json_array_get_object_element(selected, j), &row);
			found = strcmp(row.name, names[i]) == 0;
		}
		if (found)
			continue;
		shown = tn_text_escape(names[i]);
		status =
			tn_ctl_fail(verb, g_error_new(TN_CLIENT_ERROR, TN_CTL_NO_NEST,
						      "%s: there is no such nest (tmpnest ls lists "
						      "them)",
						      shown));
	}
	return status;
}

static void print_table(JsonArray *nests)
{
	static const char *const columns[] = {"NAME", ">SIZE",   ">USED",  ">AVAIL", ">USE%",
					      "",     ">INODES", ">IUSE%", NULL};
	g_autoptr(TnTable) table = tn_table_new(columns, tn_ctl_colours());
	g_autofree char *text = NULL;

	for (guint i = 0; i < json_array_get_length(nests); i++) {
		TnNestRow row;

		tn_nest_row_read(json_array_get_object_element(nests, i), &row);
		add_row(table, &row);
	}
	text = tn_table_text(table);
	fputs(text, stdout);
}

/* The nest's JSON, cut down to what df is about. */
static JsonArray *usage_json(JsonArray *nests)
{
	static const char *const keys[] = {"name",        "owner_uid",   "bytes_used",
					   "bytes_limit", "inodes_used", "inodes_limit"};
	JsonArray *usage = json_array_new();

	for (guint i = 0; i < json_array_get_length(nests); i++) {
		JsonObject *nest = json_array_get_object_element(nests, i);
		JsonObject *line = json_object_new();

		for (size_t k = 0; k < G_N_ELEMENTS(keys); k++) {
			if (json_object_has_member(nest, keys[k]))
				json_object_set_member(line, keys[k],
						       json_object_dup_member(nest, keys[k]));
		}
		json_array_add_object_element(usage, line);
	}
	return usage;
}

int tn_verb_df(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) reply = NULL;
	g_autoptr(JsonArray) nests = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, G_MAXUINT, &options, &status))
		return status;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		reply = tn_client_call_more(client, "ListNests", NULL, &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	nests = select_nests(json_object_get_array_member(reply, "nests"), options.arguments);
	if (options.json)
		tn_ctl_print_json_array(usage_json(nests));
	else if (json_array_get_length(nests) > 0)
		print_table(nests);
	else if (options.n_arguments == 0)
		puts("no nests");
	return check_names(verb, nests, options.arguments);
}
