/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `metrics`: figures of all visible nests and of the daemon, for a textfile collector.
 */
#include "ctl.h"

#include "metrics-text.h"

#include <stdio.h>

static void add_to_array(const TnJsonText *nest, void *data)
{
	g_autofree char *text = g_strndup(nest->at, nest->size);
	JsonNode *node = json_from_string(text, NULL);

	if (node != NULL)
		json_array_add_element(data, node);
}

/* Takes daemon. */
static int print_json(const TnVerb *verb, TnClient *client, JsonObject *daemon, JsonObject *status)
{
	JsonArray *nests = json_array_new();
	GError *error = NULL;

	json_object_set_array_member(daemon, "nests", nests);
	json_object_set_string_member(
		daemon, "version",
		json_object_get_string_member_with_default(status, "version", ""));
	if (tn_client_each_element(client, "ListNests", NULL, "nests", add_to_array, nests,
				   &error)) {
		tn_ctl_print_json(daemon);
		return TN_CTL_OK;
	}
	json_object_unref(daemon);
	return tn_ctl_fail(verb, error);
}

static int print_text(const TnVerb *verb, TnClient *client, JsonObject *daemon, JsonObject *status)
{
	g_autoptr(TnNestRows) rows = tn_nest_rows_new();
	g_autofree char *text = NULL;
	GError *error = NULL;

	if (!tn_client_each_element(client, "ListNests", NULL, "nests", tn_nest_rows_add, rows,
				    &error))
		return tn_ctl_fail(verb, error);
	text = tn_metrics_text(rows, daemon, status);
	fputs(text, stdout);
	return TN_CTL_OK;
}

int tn_verb_metrics(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) daemon = NULL, status = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	int exit_status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, 0, &options, &exit_status))
		return exit_status;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		daemon = tn_client_call(client, "GetMetrics", NULL, &error);
	if (daemon != NULL)
		status = tn_client_call(client, "Status", NULL, &error);
	if (status == NULL)
		return tn_ctl_fail(verb, error);
	if (options.json)
		return print_json(verb, client, g_steal_pointer(&daemon), status);
	return print_text(verb, client, daemon, status);
}
