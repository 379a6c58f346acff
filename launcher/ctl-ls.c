/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"
#include "nest-row.h"
#include "text.h"

#include <stdio.h>

/* Each login name is looked up once: that reads files, and may ask a server. */
static char *owner_of(GHashTable *owners, gint64 uid)
{
	char *name = g_hash_table_lookup(owners, &uid);

	if (name == NULL) {
		name = tn_nest_row_owner(uid);
		g_hash_table_insert(owners, g_memdup2(&uid, sizeof(uid)), name);
	}
	return g_strdup(name);
}

/* owners: NULL leaves that column out. */
static void add_row(TnTable *table, const TnNestRow *row, GHashTable *owners, gint64 now)
{
	TnTint use = tn_nest_row_use_tint(row->bytes_used, row->bytes_limit);
	TnTint inode_use = tn_nest_row_use_tint(row->inodes_used, row->inodes_limit);

	tn_table_add(table, TN_TINT_NONE, tn_text_escape(row->name));
	if (owners != NULL)
		tn_table_add(table, TN_TINT_NONE, owner_of(owners, row->owner_uid));
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

static void print_table(const TnNestRows *rows)
{
	static const char *const plain[] = {"NAME",  ">STATE" + 1, ">RUNS",   "STORE",   ">USED",
					    ">SIZE", ">USE%",      ">INODES", ">DENIED", ">FULL",
					    ">AGE",  ">LAST USE",  NULL};
	static const char *const owned[] = {"NAME",  "OWNER", "STATE",     ">RUNS",   "STORE",
					    ">USED", ">SIZE", ">USE%",     ">INODES", ">DENIED",
					    ">FULL", ">AGE",  ">LAST USE", NULL};
	g_autoptr(GHashTable) names =
		g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	GHashTable *owners = tn_nest_rows_show_owner(rows) ? names : NULL;
	g_autoptr(TnTable) table = tn_table_new(owners != NULL ? owned : plain, tn_ctl_colours());
	gint64 now = g_get_real_time();
	g_autofree char *text = NULL;

	for (guint i = 0; i < tn_nest_rows_count(rows); i++)
		add_row(table, tn_nest_rows_at(rows, i), owners, now);
	text = tn_table_text(table);
	fputs(text, stdout);
}

/* data: a GString, "[" and what came before. One nest a line. */
static void add_json(const TnJsonText *nest, void *data)
{
	GString *out = data;

	g_string_append(out, out->len > 1 ? ",\n" : "\n");
	g_string_append_len(out, nest->at, (gssize)nest->size);
}

static int print_json(const TnVerb *verb, TnClient *client)
{
	g_autoptr(GString) out = g_string_new("[");
	GError *error = NULL;

	if (!tn_client_each_element(client, "ListNests", NULL, "nests", add_json, out, &error))
		return tn_ctl_fail(verb, error);
	puts(g_string_append(out, out->len > 1 ? "\n]" : "]")->str);
	return TN_CTL_OK;
}

static int print_text(const TnVerb *verb, TnClient *client)
{
	g_autoptr(TnNestRows) rows = tn_nest_rows_new();
	GError *error = NULL;

	if (!tn_client_each_element(client, "ListNests", NULL, "nests", tn_nest_rows_add, rows,
				    &error))
		return tn_ctl_fail(verb, error);
	if (tn_nest_rows_count(rows) == 0)
		puts("no nests");
	else
		print_table(rows);
	return TN_CTL_OK;
}

int tn_verb_ls(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, 0, &options, &status))
		return status;
	client = tn_client_open(&options.choice, &error);
	if (client == NULL)
		return tn_ctl_fail(verb, error);
	return options.json ? print_json(verb, client) : print_text(verb, client);
}
