/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"
#include "nest-row.h"
#include "text.h"
#include "units.h"

#include <stdio.h>

static void print_limits(JsonObject *nest)
{
	g_autofree char *name = NULL, *used = NULL, *limit = NULL;
	char duration[TN_SIZE_TEXT_MAX];
	TnNestRow row;

	tn_nest_row_read(nest, &row);
	name = tn_text_escape(row.name);
	used = tn_text_size(row.bytes_used);
	limit = tn_text_size(row.bytes_limit);
	printf("%s: %s of %s", name, used, row.bytes_limit == TN_UNLIMITED ? "any size" : limit);
	printf(", %" G_GUINT64_FORMAT " of ", row.inodes_used);
	if (row.inodes_limit == TN_UNLIMITED)
		printf("any number of inodes");
	else
		printf("%" G_GUINT64_FORMAT " inodes", row.inodes_limit);
	if (row.ttl != TN_UNLIMITED)
		printf(", ttl %s", tn_format_duration(row.ttl, duration));
	if (row.idle_ttl != TN_UNLIMITED)
		printf(", idle ttl %s", tn_format_duration(row.idle_ttl, duration));
	putchar('\n');
}

static JsonObject *ask(const TnCtlOptions *options, JsonObject *parameters, GError **error)
{
	g_autoptr(TnClient) client = tn_client_open(&options->choice, error);

	if (client == NULL)
		return NULL;
	return tn_client_call(client, "SetLimits", json_object_ref(parameters), error);
}

int tn_verb_limits(const TnVerb *verb, int argc, char **argv)
{
	TnCtlLimits limits = {NULL};
	char *owner_text = NULL;
	const GOptionEntry entries[] = {
		TN_CTL_LIMIT_ENTRIES(limits),
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	g_autoptr(JsonObject) parameters = json_object_new();
	g_autoptr(JsonObject) reply = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	gint64 owner;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 1, &options, &status))
		return status;
	if (!tn_ctl_check_name(verb, options.arguments[0]) ||
	    !tn_ctl_owner(verb, owner_text, &owner) ||
	    !tn_ctl_add_limits(verb, &limits, parameters))
		return TN_CTL_USAGE;
	if (tn_ctl_limits_empty(&limits))
		return tn_ctl_usage(
			verb, options.arguments[0],
			"nothing to change: give --quota, --inodes, --ttl or --idle-ttl");
	json_object_set_string_member(parameters, "name", options.arguments[0]);
	if (owner >= 0)
		json_object_set_int_member(parameters, "owner_uid", owner);
	reply = ask(&options, parameters, &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	if (options.json)
		tn_ctl_print_json(json_object_ref(json_object_get_object_member(reply, "nest")));
	else
		print_limits(json_object_get_object_member(reply, "nest"));
	return TN_CTL_OK;
}
