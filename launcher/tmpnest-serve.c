/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tmpnest serve`: figures for Prometheus and a page for people. A process of its own:
 * it connects, keeps of the connection only the right to look, gives up root, and then
 * talks to the network.
 */
#include "ctl.h"
#include "message.h"
#include "serve-http.h"
#include "text.h"

#include <errno.h>
#include <gio/gunixsocketaddress.h>
#include <glib-unix.h>
#include <grp.h>
#include <locale.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_LISTEN "127.0.0.1:9723"
/* Whom root becomes: the account that data/sysusers makes, where it is a system's one. */
#define ACCOUNT "tmpnest"
#define SYSTEM_UID_MAX 999
#define NOBODY 65534

static const TnVerb verb = {"serve", "", "serve figures to Prometheus and a web page", NULL};

static gboolean fail_listen(const char *where, const char *why, GError **error)
{
	g_autofree char *shown = tn_text_escape(where);

	g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "%s: cannot listen: %s", shown, why);
	return FALSE;
}

/* "ADDR:PORT" of the loopback; nothing else: there is no password. */
static GSocketAddress *parse_listen(const char *text)
{
	g_autoptr(GSocketConnectable) parsed = g_network_address_parse(text, 0, NULL);
	GNetworkAddress *network = (GNetworkAddress *)parsed;
	g_autoptr(GInetAddress) address = NULL;
	const char *host;

	if (parsed == NULL || strrchr(text, ':') == NULL)
		return NULL;
	host = g_network_address_get_hostname(network);
	address =
		g_inet_address_new_from_string(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host);
	if (address == NULL || !g_inet_address_get_is_loopback(address))
		return NULL;
	return g_inet_socket_address_new(address, g_network_address_get_port(network));
}

static gboolean listen_unix(SoupServer *soup, const char *path, GError **error)
{
	g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
	g_autoptr(GError) failure = NULL;
	struct stat st;
	mode_t old;
	gboolean ok;

	/* What an earlier one left; a file of another kind stays and is in the way. */
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(path);
	old = umask(0117);
	ok = soup_server_listen(soup, address, 0, &failure);
	umask(old);
	return ok || fail_listen(path, failure->message, error);
}

static gboolean start_listening(SoupServer *soup, GSocketAddress *address, const char *where,
				GError **error)
{
	g_autoptr(GError) failure = NULL;
	GSList *uris;

	if (!soup_server_listen(soup, address, 0, &failure))
		return fail_listen(where, failure->message, error);
	uris = soup_server_get_uris(soup);
	for (GSList *l = uris; l != NULL; l = l->next) {
		g_autofree char *uri = g_uri_to_string(l->data);

		g_print("%s\n", uri);
	}
	g_slist_free_full(uris, (GDestroyNotify)g_uri_unref);
	return TRUE;
}

static void find_account(uid_t *ret_uid, gid_t *ret_gid)
{
	const struct passwd *pw = getpwnam(ACCOUNT);
	gboolean usable =
		pw != NULL && pw->pw_uid > 0 && pw->pw_uid <= SYSTEM_UID_MAX && pw->pw_gid > 0;

	*ret_uid = usable ? pw->pw_uid : NOBODY;
	*ret_gid = usable ? pw->pw_gid : NOBODY;
}

/* Root, which the connections had to be made as, is needed no more. */
static gboolean give_up_rights(TnServeState *state, GError **error)
{
	uid_t uid;
	gid_t gid;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (geteuid() != 0)
		return TRUE;
	find_account(&uid, &gid);
	if (setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 &&
	    setresuid(uid, uid, uid) == 0) {
		tn_serve_state_seal(state);
		return TRUE;
	}
	g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "uid %u: cannot give up root: %s",
		    (unsigned)uid, g_strerror(errno));
	return FALSE;
}

typedef struct Serving {
	TnServeState *state;
	GMainLoop *loop;
	gboolean failed, said;
} Serving;

static gboolean update(void *data)
{
	Serving *serving = data;
	g_autoptr(GError) error = NULL;

	if (tn_serve_update(serving->state, &error)) {
		serving->said = FALSE;
		return G_SOURCE_CONTINUE;
	}
	if (!serving->said)
		tn_say("serve: %s", error->message);
	serving->said = TRUE;
	/* Without root there is no way back to the daemon: the service manager has one. */
	if (error->code == TN_CTL_NO_DAEMON && tn_serve_state_is_sealed(serving->state)) {
		serving->failed = TRUE;
		g_main_loop_quit(serving->loop);
	}
	return G_SOURCE_CONTINUE;
}

static gboolean stop(void *data)
{
	g_main_loop_quit(((Serving *)data)->loop);
	return G_SOURCE_CONTINUE;
}

static int serve(TnServeState *state)
{
	Serving serving = {.state = state, .loop = g_main_loop_new(NULL, FALSE)};

	update(&serving);
	g_timeout_add_seconds(TN_SERVE_SECONDS, update, &serving);
	g_unix_signal_add(SIGTERM, stop, &serving);
	g_unix_signal_add(SIGINT, stop, &serving);
	g_main_loop_run(serving.loop);
	g_main_loop_unref(serving.loop);
	return serving.failed ? TN_CTL_NO_DAEMON : TN_CTL_OK;
}

static int run(int argc, char **argv)
{
	char *where = NULL, *unix_path = NULL;
	const GOptionEntry entries[] = {
		{"listen", 0, 0, G_OPTION_ARG_FILENAME, &where,
		 "Address of the loopback and port (" DEFAULT_LISTEN ")", "ADDR:PORT"},
		{"unix", 0, 0, G_OPTION_ARG_FILENAME, &unix_path, "A Unix socket instead", "PATH"},
		{NULL},
	};
	g_autoptr(TnServeState) state = NULL;
	g_autoptr(SoupServer) soup = NULL;
	g_autoptr(GSocketAddress) address = NULL;
	TnCtlOptions options;
	GError *error = NULL;
	int status;

	if (!tn_ctl_parse(&verb, argc, argv, entries, 0, 0, &options, &status))
		return status;
	if (where != NULL && unix_path != NULL)
		return tn_ctl_usage(&verb, "--unix", "not together with --listen");
	if (unix_path == NULL) {
		where = where != NULL ? where : (char *)DEFAULT_LISTEN;
		address = parse_listen(where);
		if (address == NULL)
			return tn_ctl_usage(&verb, where,
					    "not an address of the loopback with a port");
	}
	state = tn_serve_state_new(&options.choice, &error);
	if (state == NULL)
		return tn_ctl_fail(&verb, error);
	soup = tn_serve_http_new(state, unix_path == NULL);
	if (!(unix_path != NULL ? listen_unix(soup, unix_path, &error)
				: start_listening(soup, address, where, &error)) ||
	    !give_up_rights(state, &error))
		return tn_ctl_fail(&verb, error);
	status = serve(state);
	/* A thread may still wait for an answer with it; the process ends now. */
	(void)g_steal_pointer(&state);
	return status;
}

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, "");
	g_set_prgname("tmpnest serve");
	/* `tmpnest` gives its own words: the verb is the first. */
	return run(argc, argv);
}
