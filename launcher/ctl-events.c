/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `events`: what was refused and what became of nests, once or as it happens.
 */
#include "ctl.h"

#include "names.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

typedef struct Printing {
	gboolean json, follow;
} Printing;

/* The bytes at key, safe on a terminal; "" when there are none. */
static char *shown(JsonObject *event, const char *key)
{
	g_autofree char *name =
		g_strdup(json_object_get_string_member_with_default(event, key, ""));

	return tn_name_decode(name) == 0 ? tn_text_escape(name) : g_strdup("?");
}

static void print_line(JsonObject *event)
{
	g_autofree char *time = shown(event, "time"), *what = shown(event, "event");
	g_autofree char *nest = shown(event, "nest"), *operation = shown(event, "operation");
	g_autofree char *path = shown(event, "path"), *rule = shown(event, "rule");
	g_autofree char *process = shown(event, "process"), *error = shown(event, "error");
	gint64 dropped = json_object_get_int_member_with_default(event, "dropped", 0);

	printf("%s  %-14s %-16s", time, what, nest[0] != '\0' ? nest : "-");
	if (operation[0] != '\0')
		printf(" %s %s: %s, by %s[%" G_GINT64_FORMAT "]", operation, path, error,
		       process[0] != '\0' ? process : "?",
		       json_object_get_int_member_with_default(event, "pid", 0));
	if (rule[0] != '\0')
		printf(" (rule %s)", rule);
	if (dropped > 0)
		printf(" (%" G_GINT64_FORMAT " more before it)", dropped);
	putchar('\n');
}

/* One line each, so that a reader can follow. */
static void print_json(JsonObject *event)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	g_autofree char *text = NULL;

	json_node_set_object(node, event);
	text = json_to_string(node, FALSE);
	puts(text);
}

static gboolean print_part(JsonObject *part, void *data, GError **error)
{
	const Printing *printing = data;
	JsonNode *node = json_object_get_member(part, "events");
	JsonArray *events =
		node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

	(void)error;
	for (guint i = 0; events != NULL && i < json_array_get_length(events); i++) {
		JsonObject *event = json_array_get_object_element(events, i);

		if (printing->json)
			print_json(event);
		else
			print_line(event);
	}
	if (printing->follow)
		fflush(stdout);
	/* Nobody reads any more: main() says so. */
	return !ferror(stdout);
}

typedef struct Asking {
	const TnCtlOptions *options;
	gint64 owner, since;
} Asking;

/* One connection's worth. FALSE with *ret_lost: the daemon, or its worker, has gone. */
static gboolean ask(const Asking *asking, Printing *printing, gboolean *ret_lost, GError **error)
{
	g_autoptr(TnClient) client = tn_client_open(&asking->options->choice, error);
	JsonObject *parameters;

	*ret_lost = FALSE;
	if (client == NULL)
		return FALSE;
	parameters = json_object_new();
	if (asking->options->n_arguments > 0)
		json_object_set_string_member(parameters, "name", asking->options->arguments[0]);
	if (asking->owner >= 0)
		json_object_set_int_member(parameters, "owner_uid", asking->owner);
	json_object_set_int_member(parameters, "since", asking->since);
	json_object_set_boolean_member(parameters, "follow", printing->follow);
	if (printing->follow)
		tn_client_set_timeout(client, 0);
	if (tn_client_each(client, "GetEvents", parameters, print_part, printing, error))
		return TRUE;
	*ret_lost =
		*error != NULL && (*error)->code == TN_CTL_FAILED && tn_client_wait_end(client, 1);
	return FALSE;
}

/*
 * A worker that is replaced takes its connections along, and its successor counts events from
 * one: who follows is connected again and sees all that it has noted, its own start first.
 */
static gboolean follow(Asking *asking, Printing *printing, GError **error)
{
	gboolean lost, connected;

	do {
		g_clear_error(error);
		connected = ask(asking, printing, &lost, error);
		asking->since = 0;
	} while (!connected && lost);
	return connected;
}

int tn_verb_events(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL;
	Printing printing = {FALSE};
	gint64 since = 0, owner;
	const GOptionEntry entries[] = {
		{"follow", 'f', 0, G_OPTION_ARG_NONE, &printing.follow,
		 "Go on with what happens from now on", NULL},
		{"since", 0, 0, G_OPTION_ARG_INT64, &since, "Only those after this number", "N"},
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	TnCtlOptions options;
	Asking asking;
	GError *error = NULL;
	gboolean lost;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 0, 1, &options, &status))
		return status;
	if (!tn_ctl_owner(verb, owner_text, &owner) ||
	    (options.n_arguments > 0 && !tn_ctl_check_name(verb, options.arguments[0])))
		return TN_CTL_USAGE;
	printing.json = options.json;
	asking = (Asking){.options = &options, .owner = owner, .since = since};
	if (!(printing.follow ? follow(&asking, &printing, &error)
			      : ask(&asking, &printing, &lost, &error)) &&
	    error != NULL)
		return tn_ctl_fail(verb, error);
	return TN_CTL_OK;
}
