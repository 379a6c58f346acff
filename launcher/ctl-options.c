/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "message.h"
#include "text.h"
#include "units.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

typedef struct Common {
	gboolean help, json, system, user;
	char *runtime_dir, *store_dir;
} Common;

static void print_help(GOptionContext *context)
{
	g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);
	g_auto(GStrv) parts = g_strsplit(help, "\u2026", -1);
	g_autofree char *plain = g_strjoinv("...", parts);

	fputs(plain, stdout);
}

int tn_ctl_usage(const TnVerb *verb, const char *object, const char *why)
{
	g_autofree char *shown = tn_text_escape(object);

	tn_say("%s: %s: %s (tmpnest help %s)", verb->name, shown, why, verb->name);
	return TN_CTL_USAGE;
}

static gboolean check_count(const TnVerb *verb, guint n, guint min, guint max, char **arguments,
			    int *ret_status)
{
	if (n >= min && n <= max)
		return TRUE;
	if (n < min)
		*ret_status = tn_ctl_usage(verb, verb->arguments, "missing");
	else
		*ret_status = tn_ctl_usage(verb, arguments[max], "one argument too many");
	return FALSE;
}

/* GLib's words for a bad option, without the quotes and the capital. */
static int fail_option(const TnVerb *verb, const GError *error)
{
	g_autofree char *shown = tn_text_escape(error->message);

	shown[0] = g_ascii_tolower(shown[0]);
	tn_say("%s: %s (tmpnest help %s)", verb->name, shown, verb->name);
	return TN_CTL_USAGE;
}

gboolean tn_ctl_parse(const TnVerb *verb, int argc, char **argv, const GOptionEntry *entries,
		      guint min, guint max, TnCtlOptions *ret, int *ret_status)
{
	Common common = {FALSE};
	const GOptionEntry shared[] = {
		{"json", 0, 0, G_OPTION_ARG_NONE, &common.json, "Print JSON", NULL},
		{"system", 0, 0, G_OPTION_ARG_NONE, &common.system, "Ask the system's daemon",
		 NULL},
		{"user", 0, 0, G_OPTION_ARG_NONE, &common.user, "Ask the user's own daemon", NULL},
		{"runtime-dir", 0, 0, G_OPTION_ARG_FILENAME, &common.runtime_dir,
		 "Where the daemon's sockets are", "DIR"},
		{"store-dir", 0, 0, G_OPTION_ARG_FILENAME, &common.store_dir,
		 "Where the daemon keeps nests", "DIR"},
		{"help", 'h', 0, G_OPTION_ARG_NONE, &common.help, "Show this", NULL},
		{NULL},
	};
	g_autoptr(GOptionContext) context = g_option_context_new(verb->arguments);
	g_autoptr(GError) error = NULL;

	g_option_context_set_summary(context, verb->summary);
	g_option_context_set_help_enabled(context, FALSE);
	if (entries != NULL)
		g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_add_main_entries(context, shared, NULL);
	if (!g_option_context_parse(context, &argc, &argv, &error)) {
		*ret_status = fail_option(verb, error);
		return FALSE;
	}
	if (common.help) {
		print_help(context);
		*ret_status = TN_CTL_OK;
		return FALSE;
	}
	/* "--" stays in argv when an argument follows that looks like an option. */
	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argv++;
		argc--;
	}
	ret->json = common.json;
	ret->choice.system = common.system;
	ret->choice.user = common.user;
	ret->choice.runtime_dir = common.runtime_dir;
	ret->choice.store_dir = common.store_dir;
	ret->arguments = argv + 1;
	ret->n_arguments = (guint)argc - 1;
	return check_count(verb, ret->n_arguments, min, max, ret->arguments, ret_status);
}

gboolean tn_ctl_check_name(const TnVerb *verb, const char *name)
{
	if (tn_name_is_valid(name))
		return TRUE;
	tn_ctl_usage(verb, name, "not a name: 1 to 64 of A-Za-z0-9._-, not starting with . or -");
	return FALSE;
}

gboolean tn_ctl_owner(const TnVerb *verb, const char *text, gint64 *ret)
{
	guint64 uid;
	struct passwd *pw;

	*ret = -1;
	if (text == NULL)
		return TRUE;
	if (g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32 - 1, &uid, NULL)) {
		*ret = (gint64)uid;
		return TRUE;
	}
	pw = getpwnam(text);
	if (pw == NULL) {
		tn_ctl_usage(verb, text, "no such user");
		return FALSE;
	}
	*ret = pw->pw_uid;
	return TRUE;
}

typedef int (*Parse)(const char *text, uint64_t *ret);

static gboolean add_limit(const TnVerb *verb, const char *option, const char *text, Parse parse,
			  const char *key, JsonObject *parameters)
{
	g_autofree char *shown = NULL;
	uint64_t value;

	if (text == NULL)
		return TRUE;
	if (parse(text, &value) < 0 || value == 0) {
		shown = g_strdup_printf("--%s %s", option, text);
		tn_ctl_usage(verb, shown,
			     parse == tn_parse_duration
				     ? "not a duration: a number with s, m, h or d, or max"
				     : "not a size: a number with K, M, G or T, or max");
		return FALSE;
	}
	json_object_set_int_member(parameters, key, value == TN_UNLIMITED ? -1 : (gint64)value);
	return TRUE;
}

gboolean tn_ctl_add_limits(const TnVerb *verb, const TnCtlLimits *limits, JsonObject *parameters)
{
	return add_limit(verb, "quota", limits->quota, tn_parse_size, "bytes_limit", parameters) &&
	       add_limit(verb, "inodes", limits->inodes, tn_parse_count, "inodes_limit",
			 parameters) &&
	       add_limit(verb, "ttl", limits->ttl, tn_parse_duration, "ttl", parameters) &&
	       add_limit(verb, "idle-ttl", limits->idle_ttl, tn_parse_duration, "idle_ttl",
			 parameters);
}

gboolean tn_ctl_limits_empty(const TnCtlLimits *limits)
{
	return limits->quota == NULL && limits->inodes == NULL && limits->ttl == NULL &&
	       limits->idle_ttl == NULL;
}
