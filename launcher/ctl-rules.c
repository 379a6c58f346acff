/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* deny and read-only: a nest's rules, while it is in use. */
#include "ctl.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

static const char *kind_of(const TnVerb *verb)
{
	return strcmp(verb->name, "deny") == 0 ? "deny" : "read_only";
}

static JsonObject *about(const TnCtlOptions *options, gint64 owner)
{
	JsonObject *parameters = json_object_new();

	json_object_set_string_member(parameters, "name", options->arguments[0]);
	if (owner >= 0)
		json_object_set_int_member(parameters, "owner_uid", owner);
	return parameters;
}

/* --- ls -----------------------------------------------------------------------------------------
 */

static void print_rule(JsonObject *rule)
{
	const char *pattern = json_object_get_string_member_with_default(rule, "pattern", "");
	g_autofree char *shown = tn_text_escape(pattern);
	gboolean built_in = json_object_get_boolean_member_with_default(rule, "built_in", FALSE);

	printf("%s%s\n", shown, built_in ? " (built in)" : "");
}

static int list(const TnVerb *verb, const TnCtlOptions *options, gint64 owner)
{
	GError *error = NULL;
	g_autoptr(TnClient) client = tn_client_open(&options->choice, &error);
	g_autoptr(JsonObject) reply = NULL;
	JsonArray *chosen = json_array_new(), *rules = NULL;

	if (client != NULL)
		reply = tn_client_call_more(client, "GetNest", about(options, owner), &error);
	if (reply == NULL) {
		json_array_unref(chosen);
		return tn_ctl_fail(verb, error);
	}
	rules = json_object_get_array_member(reply, "rules");
	for (guint i = 0; i < json_array_get_length(rules); i++) {
		JsonObject *rule = json_array_get_object_element(rules, i);

		if (strcmp(json_object_get_string_member_with_default(rule, "kind", ""),
			   kind_of(verb)) != 0)
			continue;
		if (options->json)
			json_array_add_object_element(chosen, json_object_ref(rule));
		else
			print_rule(rule);
	}
	if (options->json)
		tn_ctl_print_json_array(chosen);
	else
		json_array_unref(chosen);
	return TN_CTL_OK;
}

/* --- add and rm ---------------------------------------------------------------------------------
 */

static int change(const TnVerb *verb, const TnCtlOptions *options, gint64 owner, const char *key)
{
	GError *error = NULL;
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) reply = NULL;
	JsonObject *parameters;
	JsonArray *patterns;

	for (guint i = 2; i < options->n_arguments; i++)
		if (!g_utf8_validate(options->arguments[i], -1, NULL))
			return tn_ctl_usage(verb, options->arguments[i], "not UTF-8");
	client = tn_client_open(&options->choice, &error);
	if (client == NULL)
		return tn_ctl_fail(verb, error);
	patterns = json_array_new();
	for (guint i = 2; i < options->n_arguments; i++)
		json_array_add_string_element(patterns, options->arguments[i]);
	parameters = about(options, owner);
	json_object_set_string_member(parameters, "kind", kind_of(verb));
	json_object_set_array_member(parameters, key, patterns);
	reply = tn_client_call(client, "ChangeRules", parameters, &error);
	return reply != NULL ? list(verb, options, owner) : tn_ctl_fail(verb, error);
}

int tn_verb_rules(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL;
	const GOptionEntry entries[] = {
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	TnCtlOptions options;
	gint64 owner;
	const char *what;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 2, G_MAXUINT, &options, &status))
		return status;
	what = options.arguments[1];
	if (!tn_ctl_check_name(verb, options.arguments[0]) ||
	    !tn_ctl_owner(verb, owner_text, &owner))
		return TN_CTL_USAGE;
	if (strcmp(what, "ls") == 0 && options.n_arguments == 2)
		return list(verb, &options, owner);
	if (strcmp(what, "ls") == 0)
		return tn_ctl_usage(verb, options.arguments[2], "ls takes no path");
	if (strcmp(what, "add") != 0 && strcmp(what, "rm") != 0)
		return tn_ctl_usage(verb, what, "neither add, rm nor ls");
	if (options.n_arguments == 2)
		return tn_ctl_usage(verb, what, "which path?");
	return change(verb, &options, owner, strcmp(what, "add") == 0 ? "add" : "remove");
}
