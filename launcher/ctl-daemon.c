/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"

#include "daemon-start.h"
#include "macros.h"
#include "message.h"
#include "text.h"
#include "units.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOP_SECONDS 20

static const char *member(JsonObject *object, const char *key)
{
	return json_object_get_string_member_with_default(object, key, "");
}

static gint64 number(JsonObject *object, const char *key)
{
	return json_object_get_int_member_with_default(object, key, 0);
}

/* What the daemon says of itself, NULL on an error. *ret_client: the connection, or NULL. */
static JsonObject *ask(const TnCtlOptions *options, TnClient **ret_client, GError **error)
{
	g_autoptr(TnClient) client = tn_client_open(&options->choice, error);
	JsonObject *status = NULL;

	if (client != NULL)
		status = tn_client_call(client, "Status", NULL, error);
	if (status != NULL && ret_client != NULL)
		*ret_client = g_steal_pointer(&client);
	return status;
}

static void print_features(JsonObject *status)
{
	JsonNode *node = json_object_get_member(status, "features");
	const char *separator = "";
	JsonObjectIter iter;
	const char *key;
	JsonNode *value;

	if (node == NULL || !JSON_NODE_HOLDS_OBJECT(node))
		return;
	printf("%-12s", "features");
	json_object_iter_init(&iter, json_node_get_object(node));
	while (json_object_iter_next(&iter, &key, &value)) {
		g_autofree char *shown = tn_text_escape(key);

		printf("%s%s%s", separator,
		       JSON_NODE_HOLDS_VALUE(value) && json_node_get_boolean(value) ? "" : "no ",
		       shown);
		separator = ", ";
	}
	putchar('\n');
}

/* How full the store is, and what of it needs attention. */
static void print_store(JsonObject *status)
{
	JsonNode *node = json_object_get_member(status, "store");
	JsonObject *store;
	g_autofree char *used = NULL, *left = NULL, *reserve = NULL;

	if (node == NULL || !JSON_NODE_HOLDS_OBJECT(node))
		return;
	store = json_node_get_object(node);
	used = tn_text_size((guint64)MAX(number(store, "bytes_used"), 0));
	left = tn_text_size((guint64)MAX(number(store, "disk_free"), 0));
	reserve = tn_text_size((guint64)MAX(number(store, "reserve"), 0));
	printf("%-12s%s used", "space", used);
	if (json_object_get_null_member(store, "bytes_limit") == FALSE) {
		g_autofree char *limit =
			tn_text_size((guint64)MAX(number(store, "bytes_limit"), 0));

		printf(" of %s", limit);
	}
	printf(", %s free on the disk, %s in reserve", left, reserve);
	if (number(store, "wiping") > 0)
		printf(", %" G_GINT64_FORMAT " nests being wiped", number(store, "wiping"));
	if (number(store, "stuck") > 0)
		printf(", %" G_GINT64_FORMAT " entries cannot be removed", number(store, "stuck"));
	if (number(store, "damaged") > 0)
		printf(", %" G_GINT64_FORMAT " nests damaged (tmpnest gc)",
		       number(store, "damaged"));
	putchar('\n');
}

static void print_status(JsonObject *status)
{
	static const char *const texts[][2] = {
		{"scope", "scope"},         {"version", "version"}, {"instance", "instance"},
		{"runtime", "runtime_dir"}, {"store", "store_dir"},
	};
	char uptime[TN_SIZE_TEXT_MAX];

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		g_autofree char *shown = tn_text_escape(member(status, texts[i][1]));

		printf("%-12s%s\n", texts[i][0], shown);
	}
	tn_format_duration((guint64)MAX(number(status, "uptime"), 0), uptime);
	printf("%-12suid %" G_GINT64_FORMAT ", keeper %" G_GINT64_FORMAT
	       ", worker %" G_GINT64_FORMAT ", up %s",
	       "process", number(status, "uid"), number(status, "keeper_pid"),
	       number(status, "worker_pid"), uptime);
	if (number(status, "worker_restarts") > 0)
		printf(", %" G_GINT64_FORMAT " worker%s replaced",
		       number(status, "worker_restarts"),
		       number(status, "worker_restarts") > 1 ? "s" : "");
	putchar('\n');
	printf("%-12s%" G_GINT64_FORMAT " nests, %" G_GINT64_FORMAT " sandboxes\n", "use",
	       number(status, "nests"), number(status, "attachments"));
	print_store(status);
	print_features(status);
}

/* Takes status. */
static void print_running(const TnCtlOptions *options, JsonObject *status, const char *line)
{
	if (options->json) {
		json_object_set_boolean_member(status, "running", TRUE);
		tn_ctl_print_json(status);
		return;
	}
	if (line != NULL)
		puts(line);
	else
		print_status(status);
	json_object_unref(status);
}

static void print_not_running(const TnCtlOptions *options)
{
	JsonObject *status = json_object_new();

	json_object_set_boolean_member(status, "running", FALSE);
	if (options->json)
		tn_ctl_print_json(status);
	else
		json_object_unref(status);
}

static int daemon_status(const TnVerb *verb, const TnCtlOptions *options)
{
	GError *error = NULL;
	JsonObject *status = ask(options, NULL, &error);

	if (status == NULL) {
		if (error->code == TN_CTL_NO_DAEMON)
			print_not_running(options);
		return tn_ctl_fail(verb, error);
	}
	print_running(options, status, NULL);
	return TN_CTL_OK;
}

/* The daemon that `start` is about: the one the caller may start. */
static gboolean choose(const TnVerb *verb, const TnCtlOptions *options, TnPaths *ret,
		       int *ret_status)
{
	TnPaths paths[TN_DAEMONS_MAX];
	char why[PATH_MAX + 256] = "";
	int n = tn_daemon_candidates(&options->choice, geteuid(), paths, why, sizeof(why));

	if (n < 0) {
		tn_say("%s: %s", verb->name, why);
		*ret_status = TN_CTL_USAGE;
		return FALSE;
	}
	*ret = paths[n - 1];
	if (tn_daemon_may_start(&options->choice, ret, geteuid()))
		return TRUE;
	tn_say("%s: %s: only root starts the system's daemon (--user for your own)", verb->name,
	       ret->runtime_dir);
	*ret_status = TN_CTL_REFUSED;
	return FALSE;
}

static int daemon_start(const TnVerb *verb, const TnCtlOptions *options)
{
	TnCtlOptions exact = *options;
	g_autofree char *line = NULL;
	GError *error = NULL;
	gboolean running;
	JsonObject *status;
	TnPaths paths;
	int code;

	if (!choose(verb, options, &paths, &code))
		return code;
	/* Not another daemon that would be asked first. */
	exact.choice.system = paths.scope == TN_SCOPE_SYSTEM;
	exact.choice.user = paths.scope == TN_SCOPE_USER;
	status = ask(&exact, NULL, &error);
	running = status != NULL;
	/* One that breaks off in the middle is about to end: it was killed. */
	if (!running && error->code != TN_CTL_NO_DAEMON && error->code != TN_CTL_FAILED)
		return tn_ctl_fail(verb, error);
	g_clear_error(&error);
	if (!running) {
		if (tn_daemon_start(&paths) < 0)
			return TN_CTL_FAILED;
		status = ask(&exact, NULL, &error);
	}
	if (status == NULL)
		return tn_ctl_fail(verb, error);
	line = g_strdup_printf("%s (pid %" G_GINT64_FORMAT ", %s)",
			       running ? "already running" : "started",
			       number(status, "keeper_pid"), paths.runtime_dir);
	print_running(options, status, line);
	return TN_CTL_OK;
}

/* The keeper is the last to go. FALSE: it is still there. */
static gboolean wait_gone(int pidfd, TnClient *client)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int r;

	if (pidfd < 0)
		return tn_client_wait_end(client, STOP_SECONDS);
	do {
		r = poll(&p, 1, STOP_SECONDS * 1000);
	} while (r < 0 && errno == EINTR);
	return r > 0;
}

static int daemon_stop(const TnVerb *verb, const TnCtlOptions *options, gboolean force)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) status = NULL, reply = NULL;
	JsonObject *parameters;
	GError *error = NULL;
	TN_AUTOFD pidfd = -1;

	status = ask(options, &client, &error);
	if (status == NULL)
		return tn_ctl_fail(verb, error);
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)number(status, "keeper_pid"), 0);
	parameters = json_object_new();
	json_object_set_boolean_member(parameters, "force", force);
	reply = tn_client_call(client, "Stop", parameters, &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	if (!wait_gone(pidfd, client)) {
		tn_say("%s: %s: still there after %d seconds (look at its log)", verb->name,
		       tn_client_paths(client)->runtime_dir, STOP_SECONDS);
		return TN_CTL_FAILED;
	}
	if (options->json)
		print_not_running(options);
	else
		puts("stopped");
	return TN_CTL_OK;
}

#define UPGRADE_STEPS 200 /* of 50 ms: how long the new one may take */

/* What the new worker says of itself, once it answers; NULL with an error when it does not. */
static JsonObject *await_new(const TnCtlOptions *options, gint64 old_worker, GError **error)
{
	for (int i = 0; i < UPGRADE_STEPS; i++) {
		JsonObject *status;

		g_usleep(50000);
		g_clear_error(error);
		status = ask(options, NULL, error);
		if (status != NULL && number(status, "worker_pid") != old_worker)
			return status;
		if (status != NULL)
			json_object_unref(status);
	}
	if (*error == NULL)
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED,
			    "daemon: is still the old one (look at its log)");
	return NULL;
}

/* For `restart`, too: running sandboxes notice neither. */
static int daemon_upgrade(const TnVerb *verb, const TnCtlOptions *options)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) before = NULL, reply = NULL;
	g_autofree char *line = NULL;
	GError *error = NULL;
	JsonObject *after;

	before = ask(options, &client, &error);
	if (before == NULL)
		return tn_ctl_fail(verb, error);
	reply = tn_client_call(client, "Upgrade", NULL, &error);
	if (reply == NULL)
		return tn_ctl_fail(verb, error);
	after = await_new(options, number(before, "worker_pid"), &error);
	if (after == NULL)
		return tn_ctl_fail(verb, error);
	line = g_strdup_printf("%s (version %s, pid %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
			       " sandboxes go on)",
			       strcmp(verb->name, "daemon restart") == 0 ? "restarted" : "upgraded",
			       member(after, "version"), number(after, "keeper_pid"),
			       number(after, "attachments"));
	print_running(options, after, line);
	return TN_CTL_OK;
}

int tn_verb_daemon(const TnVerb *verb, int argc, char **argv)
{
	gboolean force = FALSE;
	const GOptionEntry entries[] = {
		{"force", 'f', 0, G_OPTION_ARG_NONE, &force,
		 "Stop although sandboxes use it: their /tmp fails from then on", NULL},
		{NULL},
	};
	/* named for messages */
	TnVerb start = *verb, stop = *verb, look = *verb, restart = *verb, upgrade = *verb;
	TnCtlOptions options;
	const char *what;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 1, &options, &status))
		return status;
	start.name = "daemon start";
	stop.name = "daemon stop";
	look.name = "daemon status";
	restart.name = "daemon restart";
	upgrade.name = "daemon upgrade";
	what = options.arguments[0];
	if (strcmp(what, "stop") == 0)
		return daemon_stop(&stop, &options, force);
	if (force)
		return tn_ctl_usage(verb, "--force", "only for stop");
	if (strcmp(what, "start") == 0)
		return daemon_start(&start, &options);
	if (strcmp(what, "status") == 0)
		return daemon_status(&look, &options);
	if (strcmp(what, "restart") == 0)
		return daemon_upgrade(&restart, &options);
	if (strcmp(what, "upgrade") == 0)
		return daemon_upgrade(&upgrade, &options);
	return tn_ctl_usage(verb, what, "neither start, stop, status, restart nor upgrade");
}
