/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `report`: what a nest refused while a command ran in it. For `tmpnest run --report`,
 * which knows the nest by its id: an ephemeral one is found by no other word.
 */
#include "ctl.h"

#include "nest-row.h"
#include "text.h"
#include "units.h"

#include <stdio.h>
#include <string.h>

static JsonObject *find(JsonArray *nests, const char *id)
{
	for (guint i = 0; i < json_array_get_length(nests); i++) {
		JsonObject *nest = json_array_get_object_element(nests, i);

		if (strcmp(json_object_get_string_member_with_default(nest, "id", ""), id) == 0)
			return nest;
	}
	return NULL;
}

static gboolean parse_since(const char *text, guint64 *ret_denied, guint64 *ret_full)
{
	return sscanf(text, "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, ret_denied, ret_full) == 2;
}

/* The counts may have begun anew with another daemon. */
static guint64 above(guint64 now, guint64 before)
{
	return now > before ? now - before : now == before ? 0 : now;
}

static void print_report(const TnNestRow *row, guint64 denied_before, guint64 full_before)
{
	guint64 denied = above(row->denied_total, denied_before),
		full = above(row->quota_hits_total, full_before);
	g_autofree char *name = tn_text_escape(row->name);
	g_autofree char *used = tn_text_size(row->bytes_used);
	g_autofree char *limit = tn_text_size(row->bytes_limit);

	printf("tmpnest: report: %s: ", name);
	if (denied == 0)
		printf("no access was refused");
	else
		printf("%" G_GUINT64_FORMAT " access%s refused by rules", denied,
		       denied == 1 ? " was" : "es were");
	if (full == 0)
		printf(", the quota was not hit");
	else
		printf(", the quota was hit %" G_GUINT64_FORMAT " time%s", full,
		       full == 1 ? "" : "s");
	printf(" (%s of %s, %" G_GUINT64_FORMAT " inodes used)\n", used,
	       row->bytes_limit == TN_UNLIMITED ? "any size" : limit, row->inodes_used);
}

int tn_verb_report(const TnVerb *verb, int argc, char **argv)
{
	g_autofree char *id = NULL, *since = NULL;
	gboolean counts = FALSE;
	const GOptionEntry entries[] = {
		{"id", 0, 0, G_OPTION_ARG_STRING, &id, "Which nest", "HEX"},
		{"counts", 0, 0, G_OPTION_ARG_NONE, &counts, "Print the counts, for --since", NULL},
		{"since", 0, 0, G_OPTION_ARG_STRING, &since, "Report what came after", "COUNTS"},
		{NULL},
	};
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) reply = NULL;
	guint64 denied = 0, full = 0;
	TnCtlOptions options;
	GError *error = NULL;
	JsonObject *nest;
	TnNestRow row;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 0, 0, &options, &status))
		return status;
	if (id == NULL || (since != NULL && !parse_since(since, &denied, &full)))
		return tn_ctl_usage(verb, "--id", "needed, with --counts or --since");
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		reply = tn_client_call_more(client, "ListNests", NULL, &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	nest = find(json_object_get_array_member(reply, "nests"), id);
	if (nest == NULL) {
		error = g_error_new(TN_CLIENT_ERROR, TN_CTL_NO_NEST,
				    "nest: gone before it could be looked at");
		return tn_ctl_fail(verb, error);
	}
	tn_nest_row_read(nest, &row);
	if (counts)
		printf("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "\n", row.denied_total,
		       row.quota_hits_total);
	else
		print_report(&row, denied, full);
	return TN_CTL_OK;
}
