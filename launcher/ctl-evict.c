/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "message.h"
#include "text.h"

#include <stdio.h>

/* The daemon takes no more in one call. */
#define NAMES_PER_CALL 100

typedef struct Evict {
	const TnVerb *verb;
	TnCtlOptions options;
	gboolean force;
	gint64 owner;
	JsonArray *results; /* of all calls */
} Evict;

static const char *member(JsonObject *object, const char *key)
{
	return json_object_get_string_member_with_default(object, key, "");
}

static gboolean call(TnClient *client, Evict *evict, char **names, guint n, GError **error)
{
	g_autoptr(JsonObject) reply = NULL;
	JsonObject *parameters = json_object_new();
	JsonArray *array = json_array_new(), *results;

	for (guint i = 0; i < n; i++)
		json_array_add_string_element(array, names[i]);
	json_object_set_array_member(parameters, "names", array);
	json_object_set_boolean_member(parameters, "force", evict->force);
	if (evict->owner >= 0)
		json_object_set_int_member(parameters, "owner_uid", evict->owner);
	reply = tn_client_call(client, "EvictNests", parameters, error);
	if (reply == NULL)
		return FALSE;
	results = json_object_get_array_member(reply, "results");
	for (guint i = 0; i < json_array_get_length(results); i++)
		json_array_add_element(evict->results, json_array_dup_element(results, i));
	return TRUE;
}

/* One line each; the exit status is that of the first that failed. */
static int report(const Evict *evict)
{
	int status = TN_CTL_OK;

	for (guint i = 0; i < json_array_get_length(evict->results); i++) {
		JsonObject *result = json_array_get_object_element(evict->results, i);
		g_autofree char *name = tn_text_escape(member(result, "name"));
		g_autofree char *reason = tn_text_escape(member(result, "reason"));
		g_autofree char *hint = tn_text_escape(member(result, "hint"));

		if (json_object_get_boolean_member_with_default(result, "evicted", FALSE)) {
			if (!evict->options.json)
				printf("evicted %s\n", name);
			continue;
		}
		if (hint[0] != '\0')
			tn_say("%s: %s: %s (%s)", evict->verb->name, name, reason, hint);
		else
			tn_say("%s: %s: %s", evict->verb->name, name, reason);
		if (status == TN_CTL_OK)
			status = tn_client_error_status(member(result, "error"));
	}
	return status;
}

static int run(Evict *evict)
{
	GError *error = NULL;
	g_autoptr(TnClient) client = tn_client_open(&evict->options.choice, &error);
	guint n = evict->options.n_arguments;
	int status;

	for (guint i = 0; error == NULL && i < n; i += NAMES_PER_CALL)
		call(client, evict, evict->options.arguments + i, MIN(n - i, NAMES_PER_CALL),
		     &error);
	status = report(evict);
	if (evict->options.json && client != NULL)
		tn_ctl_print_json_array(json_array_ref(evict->results));
	return error != NULL ? tn_ctl_fail(evict->verb, error) : status;
}

int tn_verb_evict(const TnVerb *verb, int argc, char **argv)
{
	Evict evict = {.verb = verb};
	char *owner_text = NULL;
	const GOptionEntry entries[] = {
		{"force", 'f', 0, G_OPTION_ARG_NONE, &evict.force,
		 "Even while sandboxes use it: their /tmp fails from then on", NULL},
		{"owner", 0, 0, G_OPTION_ARG_FILENAME, &owner_text, "Whose nests (root only)",
		 "USER"},
		{NULL},
	};
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, G_MAXUINT, &evict.options, &status))
		return status;
	for (guint i = 0; i < evict.options.n_arguments; i++) {
		if (!tn_ctl_check_name(verb, evict.options.arguments[i]))
			return TN_CTL_USAGE;
	}
	if (!tn_ctl_owner(verb, owner_text, &evict.owner))
		return TN_CTL_USAGE;
	evict.results = json_array_new();
	status = run(&evict);
	json_array_unref(evict.results);
	return status;
}
