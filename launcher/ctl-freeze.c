/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* freeze and thaw. */
#include "ctl.h"

#include "text.h"

#include <stdio.h>

static JsonObject *ask(const TnCtlOptions *options, gint64 owner, gboolean frozen, GError **error)
{
	g_autoptr(TnClient) client = tn_client_open(&options->choice, error);
	JsonObject *parameters;

	if (client == NULL)
		return NULL;
	parameters = json_object_new();
	json_object_set_string_member(parameters, "name", options->arguments[0]);
	json_object_set_boolean_member(parameters, "frozen", frozen);
	if (owner >= 0)
		json_object_set_int_member(parameters, "owner_uid", owner);
	return tn_client_call(client, "SetFrozen", parameters, error);
}

static int set_frozen(const TnVerb *verb, int argc, char **argv, gboolean frozen)
{
	char *owner_text = NULL;
	const GOptionEntry entries[] = {
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	g_autoptr(JsonObject) reply = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	gint64 owner;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 1, &options, &status))
		return status;
	if (!tn_ctl_check_name(verb, options.arguments[0]) ||
	    !tn_ctl_owner(verb, owner_text, &owner))
		return TN_CTL_USAGE;
	reply = ask(&options, owner, frozen, &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	if (options.json)
		tn_ctl_print_json(json_object_ref(json_object_get_object_member(reply, "nest")));
	else
		printf("%s %s\n", frozen ? "froze" : "thawed", options.arguments[0]);
	return TN_CTL_OK;
}

int tn_verb_freeze(const TnVerb *verb, int argc, char **argv)
{
	return set_frozen(verb, argc, argv, TRUE);
}

int tn_verb_thaw(const TnVerb *verb, int argc, char **argv)
{
	return set_frozen(verb, argc, argv, FALSE);
}
