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

static gboolean is_there(const TnNestRows *rows, const char *name)
{
	for (guint i = 0; i < tn_nest_rows_count(rows); i++) {
		if (strcmp(tn_nest_rows_at(rows, i)->name, name) == 0)
			return TRUE;
	}
	return FALSE;
}

static int check_names(const TnVerb *verb, const TnNestRows *rows, char **names)
{
	int status = TN_CTL_OK;

	for (guint i = 0; names[i] != NULL; i++) {
		g_autofree char *shown = NULL;

		if (is_there(rows, names[i]))
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

/* Those of names, all when there are none. FALSE: there is nothing to show. */
static gboolean print_table(const TnNestRows *rows, char **names)
{
	static const char *const columns[] = {"NAME", ">SIZE",   ">USED",  ">AVAIL", ">USE%",
					      "",     ">INODES", ">IUSE%", NULL};
	g_autoptr(TnTable) table = tn_table_new(columns, tn_ctl_colours());
	g_autofree char *text = NULL;
	gboolean some = FALSE;

	for (guint i = 0; i < tn_nest_rows_count(rows); i++) {
		if (!is_named(tn_nest_rows_at(rows, i), names))
			continue;
		add_row(table, tn_nest_rows_at(rows, i));
		some = TRUE;
	}
	if (!some)
		return FALSE;
	text = tn_table_text(table);
	fputs(text, stdout);
	return TRUE;
}

static void set_limit(JsonObject *line, const char *key, guint64 limit)
{
	if (limit == TN_UNLIMITED)
		json_object_set_null_member(line, key);
	else
		json_object_set_int_member(line, key, (gint64)limit);
}

/* Of the nest's JSON what df is about. */
static void print_json(const TnNestRows *rows, char **names)
{
	JsonArray *usage = json_array_new();

	for (guint i = 0; i < tn_nest_rows_count(rows); i++) {
		const TnNestRow *row = tn_nest_rows_at(rows, i);
		JsonObject *line;

		if (!is_named(row, names))
			continue;
		line = json_object_new();
		json_object_set_string_member(line, "name", row->name);
		json_object_set_int_member(line, "owner_uid", row->owner_uid);
		json_object_set_int_member(line, "bytes_used", (gint64)row->bytes_used);
		set_limit(line, "bytes_limit", row->bytes_limit);
		json_object_set_int_member(line, "inodes_used", (gint64)row->inodes_used);
		set_limit(line, "inodes_limit", row->inodes_limit);
		json_array_add_object_element(usage, line);
	}
	tn_ctl_print_json_array(usage);
}

int tn_verb_df(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(TnNestRows) rows = tn_nest_rows_new();
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, G_MAXUINT, &options, &status))
		return status;
	client = tn_client_open(&options.choice, &error);
	if (client == NULL || !tn_client_each_element(client, "ListNests", NULL, "nests",
						      tn_nest_rows_add, rows, &error))
		return tn_ctl_fail(verb, error);
	if (options.json)
		print_json(rows, options.arguments);
	else if (!print_table(rows, options.arguments) && options.n_arguments == 0)
		puts("no nests");
	return check_names(verb, rows, options.arguments);
}
