/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `metrics`: figures of all visible nests and of the daemon, for a textfile collector.
 */
#include "ctl.h"

#include "metrics-text.h"

#include <stdio.h>

int tn_verb_metrics(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) list = NULL, daemon = NULL, status = NULL;
	g_autofree char *text = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	int exit_status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, 0, &options, &exit_status))
		return exit_status;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		list = tn_client_call_more(client, "ListNests", NULL, &error);
	if (list != NULL)
		daemon = tn_client_call(client, "GetMetrics", NULL, &error);
	if (daemon != NULL)
		status = tn_client_call(client, "Status", NULL, &error);
	if (status == NULL)
		return tn_ctl_fail(verb, error);
	if (options.json) {
		json_object_set_member(daemon, "nests", json_object_dup_member(list, "nests"));
		json_object_set_string_member(
			daemon, "version",
			json_object_get_string_member_with_default(status, "version", ""));
		tn_ctl_print_json(g_steal_pointer(&daemon));
		return TN_CTL_OK;
	}
	text = tn_metrics_text(json_object_get_array_member(list, "nests"), daemon, status);
	fputs(text, stdout);
	return TN_CTL_OK;
}
