/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "config.h"
#include "doctor.h"
#include "table.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

static const char *const words[] = {
	[TN_CHECK_OK] = "ok",
	[TN_CHECK_WARNING] = "warning",
	[TN_CHECK_MISSING] = "missing",
};

/* Returns TRUE when a system daemon serves the caller. */
static gboolean check_daemon(GPtrArray *checks, const TnDaemonChoice *choice, gboolean in_sandbox)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(TnClient) client = tn_client_open(choice, &error);
	g_autoptr(JsonObject) status = NULL;
	g_autofree char *version = NULL, *scope = NULL;
	gboolean same;

	if (client != NULL)
		status = tn_client_call(client, "Status", NULL, &error);
	if (status == NULL) {
		gboolean none = error->code == TN_CTL_NO_DAEMON;

		if (none && in_sandbox)
			tn_doctor_add(checks, "daemon", TN_CHECK_WARNING,
				      g_strdup("none can be reached from inside"), NULL);
		else
			tn_doctor_add(checks, "daemon", none ? TN_CHECK_OK : TN_CHECK_WARNING,
				      none ? g_strdup("none runs; run and create start one")
					   : g_strdup(error->message),
				      NULL);
		return FALSE;
	}
	version =
		tn_text_escape(json_object_get_string_member_with_default(status, "version", "?"));
	scope = tn_text_escape(json_object_get_string_member_with_default(status, "scope", "?"));
	same = strcmp(version, TN_VERSION) == 0;
	tn_doctor_add(
		checks, "daemon", same ? TN_CHECK_OK : TN_CHECK_WARNING,
		g_strdup_printf("a %s daemon of version %s runs", scope, version),
		same ? NULL
		     : g_strdup("this is tmpnest " TN_VERSION ": tmpnest daemon stop, then start"));
	return strcmp(scope, "system") == 0;
}

static void print_table(GPtrArray *checks)
{
	static const char *const columns[] = {"CHECK", "STATUS", "FOUND", NULL};
	static const TnTint tints[] = {
		[TN_CHECK_OK] = TN_TINT_GOOD,
		[TN_CHECK_WARNING] = TN_TINT_WARN,
		[TN_CHECK_MISSING] = TN_TINT_BAD,
	};
	g_autoptr(TnTable) table = tn_table_new(columns, tn_ctl_colours());
	g_autofree char *text = NULL;

	for (guint i = 0; i < checks->len; i++) {
		const TnCheck *check = checks->pdata[i];

		tn_table_add(table, TN_TINT_NONE, g_strdup(check->name));
		tn_table_add(table, tints[check->status], g_strdup(words[check->status]));
		tn_table_add(table, TN_TINT_NONE,
			     check->hint != NULL
				     ? g_strdup_printf("%s -> %s", check->found, check->hint)
				     : g_strdup(check->found));
	}
	text = tn_table_text(table);
	fputs(text, stdout);
}

static void print_json(GPtrArray *checks, gboolean usable)
{
	JsonObject *result = json_object_new();
	JsonArray *array = json_array_new();

	for (guint i = 0; i < checks->len; i++) {
		const TnCheck *check = checks->pdata[i];
		JsonObject *line = json_object_new();

		json_object_set_string_member(line, "name", check->name);
		json_object_set_string_member(line, "status", words[check->status]);
		json_object_set_string_member(line, "found", check->found);
		if (check->hint != NULL)
			json_object_set_string_member(line, "hint", check->hint);
		else
			json_object_set_null_member(line, "hint");
		json_array_add_object_element(array, line);
	}
	json_object_set_boolean_member(result, "usable", usable);
	json_object_set_array_member(result, "checks", array);
	tn_ctl_print_json(result);
}

static gboolean is_usable(GPtrArray *checks)
{
	for (guint i = 0; i < checks->len; i++) {
		if (((const TnCheck *)checks->pdata[i])->status == TN_CHECK_MISSING)
			return FALSE;
	}
	return TRUE;
}

int tn_verb_doctor(const TnVerb *verb, int argc, char **argv)
{
	g_autoptr(GPtrArray) checks = tn_doctor_new();
	TnCtlOptions options;
	gboolean in_sandbox, by_system;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, NULL, 0, 0, &options, &status))
		return status;
	in_sandbox = tn_doctor_sandbox(checks);
	tn_doctor_kernel(checks);
	tn_doctor_user_namespaces(checks);
	tn_doctor_bwrap(checks);
	tn_doctor_programs(checks);
	tn_doctor_dirs(checks, &options.choice);
	by_system = check_daemon(checks, &options.choice, in_sandbox);
	tn_doctor_fuse_device(checks, by_system);
	tn_doctor_features(checks);
	if (options.json)
		print_json(checks, is_usable(checks));
	else
		print_table(checks);
	return is_usable(checks) ? TN_CTL_OK : TN_CTL_FAILED;
}
