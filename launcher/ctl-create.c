/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "daemon-start.h"
#include "nest-row.h"
#include "text.h"
#include "units.h"

#include <stdio.h>
#include <unistd.h>

/* Starts the last candidate, the one that the caller may start by itself. */
static TnClient *start_and_open(const TnVerb *verb, const TnDaemonChoice *choice, GError **error)
{
	TnPaths paths[TN_DAEMONS_MAX];
	char why[PATH_MAX + 256];
	int n = tn_daemon_candidates(choice, geteuid(), paths, why, sizeof(why));

	if (n < 0 || !tn_daemon_may_start(choice, &paths[n - 1], geteuid()))
		return NULL;
	g_clear_error(error);
	if (tn_daemon_start(&paths[n - 1]) < 0) {
		/* it has said why */
		g_set_error_literal(error, TN_CLIENT_ERROR, TN_CTL_NO_DAEMON, "");
		return NULL;
	}
	return tn_client_open(choice, error);
}

static TnClient *open_or_start(const TnVerb *verb, const TnDaemonChoice *choice, GError **error)
{
	TnClient *client = tn_client_open(choice, error);

	if (client == NULL && (*error)->code == TN_CTL_NO_DAEMON)
		client = start_and_open(verb, choice, error);
	return client;
}

/* JSON is UTF-8; a rule of other bytes can be given to `run`. FALSE: said, usage. */
static gboolean add_rules(const TnVerb *verb, const char *key, char **rules, JsonObject *parameters)
{
	JsonArray *array;

	if (rules == NULL)
		return TRUE;
	for (char **rule = rules; *rule != NULL; rule++) {
		if (!g_utf8_validate(*rule, -1, NULL)) {
			tn_ctl_usage(verb, *rule, "a rule has to be UTF-8 here");
			return FALSE;
		}
	}
	array = json_array_new();
	for (char **rule = rules; *rule != NULL; rule++)
		json_array_add_string_element(array, *rule);
	json_object_set_array_member(parameters, key, array);
	return TRUE;
}

static void print_created(JsonObject *nest)
{
	g_autofree char *name = NULL, *size = NULL;
	TnNestRow row;

	tn_nest_row_read(nest, &row);
	name = tn_text_escape(row.name);
	size = tn_text_size(row.bytes_limit);
	printf("created %s (%s, ", name, row.bytes_limit == TN_UNLIMITED ? "no limit" : size);
	if (row.inodes_limit == TN_UNLIMITED)
		puts("any number of inodes)");
	else
		printf("%" G_GUINT64_FORMAT " inodes)\n", row.inodes_limit);
}

int tn_verb_create(const TnVerb *verb, int argc, char **argv)
{
	TnCtlLimits limits = {NULL};
	char **deny = NULL, **read_only = NULL;
	char *store = NULL;
	gboolean durable = FALSE, no_xattrs = FALSE, writeback = FALSE;
	const GOptionEntry entries[] = {
		TN_CTL_LIMIT_ENTRIES(limits),
		{"durable", 0, 0, G_OPTION_ARG_NONE, &durable, "Keep it over a reboot", NULL},
		{"no-xattrs", 0, 0, G_OPTION_ARG_NONE, &no_xattrs,
		 "No extended attributes in it, for a request less with each new file", NULL},
		{"writeback", 0, 0, G_OPTION_ARG_NONE, &writeback,
		 "The kernel keeps what is written for a while: a full nest is noticed late", NULL},
		{"store", 0, 0, G_OPTION_ARG_FILENAME, &store, "dir, memory or image", "KIND"},
		{"deny", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &deny,
		 "Refuse everything under this name below /tmp (repeatable)", "PATH"},
		{"read-only", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &read_only,
		 "Refuse changes under this name below /tmp (repeatable)", "PATH"},
		{NULL},
	};
	g_autoptr(JsonObject) parameters = json_object_new();
	g_autoptr(JsonObject) reply = NULL;
	g_autoptr(TnClient) client = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	JsonObject *nest;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 1, &options, &status))
		return status;
	if (!tn_ctl_check_name(verb, options.arguments[0]) ||
	    !tn_ctl_add_limits(verb, &limits, parameters) ||
	    !add_rules(verb, "deny", deny, parameters) ||
	    !add_rules(verb, "read_only", read_only, parameters))
		return TN_CTL_USAGE;
	if (store != NULL && !g_utf8_validate(store, -1, NULL))
		return tn_ctl_usage(verb, store, "not a kind of store: dir, memory or image");
	json_object_set_string_member(parameters, "name", options.arguments[0]);
	json_object_set_boolean_member(parameters, "durable", durable);
	if (no_xattrs)
		json_object_set_boolean_member(parameters, "xattrs", FALSE);
	if (writeback)
		json_object_set_boolean_member(parameters, "writeback", TRUE);
	if (store != NULL)
		json_object_set_string_member(parameters, "store", store);
	client = open_or_start(verb, &options.choice, &error);
	if (client != NULL)
		reply = tn_client_call(client, "CreateNest", json_object_ref(parameters), &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	nest = json_object_get_object_member(reply, "nest");
	if (options.json)
		tn_ctl_print_json(json_object_ref(nest));
	else
		print_created(nest);
	return TN_CTL_OK;
}
