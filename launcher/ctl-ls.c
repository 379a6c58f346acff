/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"
#include "nest-row.h"
#include "text.h"

#include <stdio.h>

static void add_row(TnTable *table, const TnNestRow *row, gboolean owner, gint64 now)
{
	TnTint use = tn_nest_row_use_tint(row->bytes_used, row->bytes_limit);
	TnTint inode_use = tn_nest_row_use_tint(row->inodes_used, row->inodes_limit);

	tn_table_add(table, TN_TINT_NONE, tn_text_escape(row->name));
	if (owner)
		tn_table_add(table, TN_TINT_NONE, tn_nest_row_owner(row->owner_uid));
	tn_table_add(table, tn_nest_row_state_tint(row), tn_text_escape(row->state));
	tn_table_add(table, TN_TINT_NONE, g_strdup_printf("%" G_GINT64_FORMAT, row->attachments));
	tn_table_add(table, TN_TINT_NONE, tn_text_escape(row->store));
	tn_table_add(table, use, tn_text_size(row->bytes_used));
	tn_table_add(table, TN_TINT_NONE, tn_text_size(row->bytes_limit));
	tn_table_add(table, use, tn_text_percent(row->bytes_used, row->bytes_limit));
	tn_table_add(table, inode_use, g_strdup_printf("%" G_GUINT64_FORMAT, row->inodes_used));
	tn_table_add(table, row->denied_total > 0 ? TN_TINT_WARN : TN_TINT_NONE,
		     g_strdup_printf("%" G_GUINT64_FORMAT, row->denied_total));
	tn_table_add(table, row->quota_hits_total > 0 ? TN_TINT_WARN : TN_TINT_NONE,
		     g_strdup_printf("%" G_GUINT64_FORMAT, row->quota_hits_total));
	tn_table_add(table, TN_TINT_NONE, tn_text_age(row->created, now));
	tn_table_add(table, TN_TINT_NONE, tn_text_age(row->last_used, now));
}

static void print_table(JsonArray *nests)
{
	static const char *const plain[] = {"NAME",  ">STATE" + 1, ">RUNS",   "STORE",   ">USED",
					    ">SIZE", ">USE%",      ">INODES", ">DENIED", ">FULL",
					    ">AGE",  ">LAST USE",  NULL};
	static const char *const owned[] = {"NAME",  "OWNER", "STATE",     ">RUNS",   "STORE",
					    ">USED", ">SIZE", ">USE%",     ">INODES", ">DENIED",
					    ">FULL", ">AGE",  ">LAST USE", NULL};
	gboolean owner = tn_nest_rows_show_owner(nests);
	g_autoptr(TnTable) table = tn_table_new(owner ? owned : plain, tn_ctl_colours());
	gint64 now = g_get_real_time();
	g_autofree char *text = NULL;

	for (guint i = 0; i < json_array_get_length(nests); i++) {
		TnNestRow row;

		tn_nest_row_read(json_array_get_object_element(nests, i), &row);
		add_row(table, &row, owner, now);
	}
	text = tn_table_text(table);
	fputs(text, stdout);
}

int tn_verb_ls(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) reply = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	JsonArray *nests;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, 0, &options, &status))
		return status;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		reply = tn_client_call_more(client, "ListNests", NULL, &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	nests = json_object_get_array_member(reply, "nests");
	if (options.json)
		tn_ctl_print_json_array(json_array_ref(nests));
	else if (json_array_get_length(nests) == 0)
		puts("no nests");
	else
		print_table(nests);
	return TN_CTL_OK;
}
