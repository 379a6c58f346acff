/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control-client.h"

#include "ctl.h"
#include "macros.h"
#include "scm.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define INTERFACE "org.tmpnest.Control"
#define MESSAGE_MAX (64 * 1024)
#define TIMEOUT_SECONDS 30

struct TnClient {
	int fd;
	TnPaths paths;
	gboolean introduced; /* the first message has been sent */
	int timeout_ms;
	GByteArray *input;
	int received; /* the descriptor that came with the present reply, or -1 */
};

G_DEFINE_QUARK(tn - client - error, tn_client_error)

const TnPaths *tn_client_paths(const TnClient *client)
{
	return &client->paths;
}

int tn_client_socket(const TnClient *client)
{
	return client->fd;
}

void tn_client_set_timeout(TnClient *client, unsigned seconds)
{
	client->timeout_ms = seconds == 0 ? -1 : (int)seconds * 1000;
}

void tn_client_free(TnClient *client)
{
	if (client == NULL)
		return;
	tn_close(&client->fd);
	tn_close(&client->received);
	g_byte_array_unref(client->input);
	g_free(client);
}

int tn_client_error_status(const char *name)
{
	static const struct {
		const char *name;
		int status;
	} known[] = {
		{INTERFACE ".NoSuchNest", TN_CTL_NO_NEST},
		{INTERFACE ".PermissionDenied", TN_CTL_REFUSED},
		{INTERFACE ".NoSuchFile", TN_CTL_NO_FILE},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
		if (strcmp(known[i].name, name) == 0)
			return known[i].status;
	}
	return TN_CTL_FAILED;
}

static const char *member(JsonObject *object, const char *key)
{
	return json_object_get_string_member_with_default(object, key, "");
}

/* "Whose? uid 1000, 1001" for AmbiguousName. */
static char *hint_of(JsonObject *fields)
{
	GString *hint = g_string_new(member(fields, "hint"));
	JsonNode *node = json_object_get_member(fields, "owners");

	if (node == NULL || !JSON_NODE_HOLDS_ARRAY(node))
		return g_string_free(hint, FALSE);
	JsonArray *owners = json_node_get_array(node);
	g_string_append(hint, " with --owner:");
	for (guint i = 0; i < json_array_get_length(owners); i++)
		g_string_append_printf(hint, "%s %" G_GINT64_FORMAT, i > 0 ? "," : "",
				       json_array_get_int_element(owners, i));
	return g_string_free(hint, FALSE);
}

static void set_reply_error(GError **error, const char *name, JsonObject *fields)
{
	const char *object = fields != NULL ? member(fields, "name") : "";
	const char *reason = fields != NULL ? member(fields, "reason") : "";
	g_autofree char *hint = fields != NULL ? hint_of(fields) : g_strdup("");
	g_autoptr(GString) line = g_string_new(NULL);
	g_autofree char *escaped = NULL;

	g_string_append_printf(line, "%s: %s", object[0] != '\0' ? object : "daemon",
			       reason[0] != '\0' ? reason : name);
	if (hint[0] != '\0')
		g_string_append_printf(line, " (%s)", hint);
	escaped = tn_text_escape(line->str);
	g_set_error_literal(error, TN_CLIENT_ERROR, tn_client_error_status(name), escaped);
}

static gboolean fail_io(const TnClient *client, const char *why, GError **error)
{
	g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED,
		    "%s: %s (tmpnest daemon status; try again)", client->paths.control_socket, why);
	return FALSE;
}

/* The first message proves in which user namespace we are. */
static gboolean send_message(TnClient *client, const char *text, GError **error)
{
	size_t size = strlen(text) + 1, sent = 0;

	while (sent < size) {
		TN_AUTOFD ns = -1;
		ssize_t n;

		if (!client->introduced)
			ns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
		n = tn_scm_send(client->fd, text + sent, size - sent, &ns, ns >= 0 ? 1 : 0);
		if (n == -EINTR)
			continue;
		/* A daemon that turned us away has said why before it closed. */
		if (n == -EPIPE)
			return TRUE;
		if (n < 0)
			return fail_io(client, g_strerror((int)-n), error);
		client->introduced = TRUE;
		sent += (size_t)n;
	}
	return TRUE;
}

static gboolean wait_readable(TnClient *client, GError **error)
{
	struct pollfd p = {.fd = client->fd, .events = POLLIN};
	int r;

	do {
		r = poll(&p, 1, client->timeout_ms);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		return fail_io(client, "the daemon does not answer", error);
	return TRUE;
}

/* As recv(2); keeps the first descriptor that comes along. */
static ssize_t read_some(TnClient *client, guint8 *chunk, size_t size)
{
	int fds[TN_SCM_MAX_FDS];
	size_t n_fds = 0;
	ssize_t n = tn_scm_recv(client->fd, chunk, size, fds, &n_fds);

	for (size_t i = 0; i < n_fds; i++) {
		if (client->received < 0)
			client->received = tn_steal_fd(&fds[i]);
		tn_close(&fds[i]);
	}
	return n;
}

/* One message without its NUL; the caller frees. */
static char *receive(TnClient *client, GError **error)
{
	guint scanned = 0;

	for (;;) {
		guint8 *nul = client->input->len == scanned
				      ? NULL
				      : memchr(client->input->data + scanned, 0,
					       client->input->len - scanned);
		guint8 chunk[16384];
		ssize_t n;

		if (nul != NULL) {
			char *text = g_strdup((const char *)client->input->data);

			g_byte_array_remove_range(client->input, 0,
						  (guint)(nul - client->input->data) + 1);
			return text;
		}
		scanned = client->input->len;
		if (scanned > MESSAGE_MAX) {
			fail_io(client, "the answer is too long", error);
			return NULL;
		}
		if (!wait_readable(client, error))
			return NULL;
		n = read_some(client, chunk, sizeof(chunk));
		if (n <= 0) {
			fail_io(client,
				n == 0 ? "the daemon closed the connection" : g_strerror((int)-n),
				error);
			return NULL;
		}
		g_byte_array_append(client->input, chunk, (guint)n);
	}
}

static gboolean flag(JsonObject *message, const char *key)
{
	JsonNode *node = json_object_get_member(message, key);

	return node != NULL && JSON_NODE_HOLDS_VALUE(node) && json_node_get_boolean(node);
}

/* The parameters of a reply; *ret_more: another one follows. */
static JsonObject *parse_reply(TnClient *client, const char *text, gboolean *ret_more,
			       GError **error)
{
	g_autoptr(JsonParser) parser = json_parser_new();
	JsonObject *message, *parameters = NULL;
	JsonNode *root = NULL, *node;

	if (json_parser_load_from_data(parser, text, -1, NULL))
		root = json_parser_get_root(parser);
	if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
		fail_io(client, "the answer is no JSON object", error);
		return NULL;
	}
	message = json_node_get_object(root);
	node = json_object_get_member(message, "parameters");
	if (node != NULL && JSON_NODE_HOLDS_OBJECT(node))
		parameters = json_node_get_object(node);
	if (json_object_has_member(message, "error")) {
		set_reply_error(error, member(message, "error"), parameters);
		return NULL;
	}
	*ret_more = flag(message, "continues");
	return parameters != NULL ? json_object_ref(parameters) : json_object_new();
}

static JsonObject *read_reply(TnClient *client, gboolean *ret_more, GError **error)
{
	g_autofree char *text = receive(client, error);

	return text != NULL ? parse_reply(client, text, ret_more, error) : NULL;
}

/* --- the same without a tree --- */

typedef struct Elements {
	const char *array;
	TnClientElement visit;
	void *data;
	gboolean more; /* another reply follows */
} Elements;

static gboolean visit_array(const TnJsonText *value, Elements *elements)
{
	TnJsonText element;
	TnJsonScan scan;

	if (!tn_json_scan_array(value, &scan))
		return FALSE;
	while (tn_json_next_element(&scan, &element))
		elements->visit(&element, elements->data);
	return !tn_json_is_broken(&scan);
}

static gboolean visit_parameters(const TnJsonText *value, Elements *elements)
{
	TnJsonText key, part;
	TnJsonScan scan;

	if (!tn_json_scan_object(value, &scan))
		return FALSE;
	while (tn_json_next_member(&scan, &key, &part)) {
		if (tn_json_equals(&key, elements->array) && !visit_array(&part, elements))
			return FALSE;
	}
	return !tn_json_is_broken(&scan);
}

/* What is no error goes to visit. FALSE when it is one, or broken. */
static gboolean visit_reply(const char *text, Elements *elements)
{
	TnJsonText message, key, value, parameters = {NULL, 0};
	TnJsonScan scan;

	if (!tn_json_whole(text, &message) || !tn_json_scan_object(&message, &scan))
		return FALSE;
	while (tn_json_next_member(&scan, &key, &value)) {
		if (tn_json_equals(&key, "error"))
			return FALSE;
		if (tn_json_equals(&key, "continues"))
			elements->more = *value.at == 't';
		if (tn_json_equals(&key, "parameters"))
			parameters = value;
	}
	return parameters.at != NULL && visit_parameters(&parameters, elements);
}

static gboolean send_call(TnClient *client, const char *interface, const char *method,
			  JsonObject *parameters, gboolean more, GError **error)
{
	g_autofree char *full = g_strconcat(interface, ".", method, NULL);
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	g_autofree char *text = NULL;
	JsonObject *message = json_object_new();

	json_object_set_string_member(message, "method", full);
	json_object_set_object_member(message, "parameters",
				      parameters != NULL ? parameters : json_object_new());
	if (more)
		json_object_set_boolean_member(message, "more", TRUE);
	json_node_take_object(node, message);
	text = json_to_string(node, FALSE);
	return send_message(client, text, error);
}

static void append_array(JsonArray *whole, JsonArray *more)
{
	for (guint i = 0; i < json_array_get_length(more); i++)
		json_array_add_element(whole, json_array_dup_element(more, i));
}

static void join(JsonObject *whole, JsonObject *part)
{
	JsonObjectIter iter;
	const char *key;
	JsonNode *value;

	json_object_iter_init(&iter, part);
	while (json_object_iter_next(&iter, &key, &value)) {
		JsonNode *old = json_object_get_member(whole, key);

		if (old != NULL && JSON_NODE_HOLDS_ARRAY(old) && JSON_NODE_HOLDS_ARRAY(value))
			append_array(json_node_get_array(old), json_node_get_array(value));
		else
			json_object_set_member(whole, key, json_node_copy(value));
	}
}

static JsonObject *call(TnClient *client, const char *interface, const char *method,
			JsonObject *parameters, gboolean more, GError **error)
{
	g_autoptr(JsonObject) whole = json_object_new();
	gboolean another = TRUE;

	if (!send_call(client, interface, method, parameters, more, error))
		return NULL;
	while (another) {
		g_autoptr(JsonObject) part = read_reply(client, &another, error);

		if (part == NULL)
			return NULL;
		join(whole, part);
	}
	return g_steal_pointer(&whole);
}

JsonObject *tn_client_call(TnClient *client, const char *method, JsonObject *parameters,
			   GError **error)
{
	return call(client, INTERFACE, method, parameters, FALSE, error);
}

JsonObject *tn_client_call_more(TnClient *client, const char *method, JsonObject *parameters,
				GError **error)
{
	return call(client, INTERFACE, method, parameters, TRUE, error);
}

gboolean tn_client_each(TnClient *client, const char *method, JsonObject *parameters,
			TnClientPart visit, void *data, GError **error)
{
	gboolean another = TRUE;

	if (!send_call(client, INTERFACE, method, parameters, TRUE, error))
		return FALSE;
	while (another) {
		g_autoptr(JsonObject) part = read_reply(client, &another, error);

		if (part == NULL || !visit(part, data, error))
			return FALSE;
	}
	return TRUE;
}

gboolean tn_client_each_element(TnClient *client, const char *method, JsonObject *parameters,
				const char *array, TnClientElement visit, void *data,
				GError **error)
{
	Elements elements = {.array = array, .visit = visit, .data = data, .more = TRUE};

	if (!send_call(client, INTERFACE, method, parameters, TRUE, error))
		return FALSE;
	while (elements.more) {
		g_autofree char *text = receive(client, error);
		JsonObject *refusal;

		if (text == NULL)
			return FALSE;
		elements.more = FALSE;
		if (visit_reply(text, &elements))
			continue;
		refusal = parse_reply(client, text, &elements.more, error);
		if (refusal != NULL) {
			json_object_unref(refusal);
			fail_io(client, "the answer is not what was asked for", error);
		}
		return FALSE;
	}
	return TRUE;
}

JsonObject *tn_client_call_fd(TnClient *client, const char *method, JsonObject *parameters,
			      int *ret_fd, GError **error)
{
	JsonObject *reply;

	tn_close(&client->received);
	reply = tn_client_call(client, method, parameters, error);
	if (reply != NULL && client->received < 0) {
		json_object_unref(reply);
		fail_io(client, "the answer came without its descriptor", error);
		return NULL;
	}
	if (reply != NULL)
		*ret_fd = tn_steal_fd(&client->received);
	return reply;
}

gboolean tn_client_wait_end(TnClient *client, unsigned seconds)
{
	gint64 until = g_get_monotonic_time() + (gint64)seconds * G_USEC_PER_SEC;
	char ignored[512];

	for (;;) {
		struct pollfd p = {.fd = client->fd, .events = POLLIN};
		gint64 left = (until - g_get_monotonic_time()) / 1000;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return FALSE;
		if (recv(client->fd, ignored, sizeof(ignored), MSG_DONTWAIT) == 0)
			return TRUE;
	}
}

/*
 * The owner of the directory and of the socket decide whose daemon it is: root must not
 * speak as root to a socket that a user controls, and a user daemon serves its user only.
 */
static gboolean take_owner_ids(const TnPaths *paths, GError **error)
{
	struct stat dir, sock;
	struct passwd *pw;
	uid_t uid;
	gid_t gid;

	if (geteuid() != 0 || stat(paths->runtime_dir, &dir) < 0 ||
	    lstat(paths->control_socket, &sock) < 0)
		return TRUE;
	uid = dir.st_uid != 0 ? dir.st_uid : sock.st_uid;
	if (uid == 0)
		return TRUE;
	pw = getpwuid(uid);
	gid = pw != NULL ? pw->pw_gid : sock.st_gid;
	if (setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 &&
	    setresuid(uid, uid, uid) == 0)
		return TRUE;
	g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED,
		    "uid %u: cannot become the daemon's owner: %s", uid, g_strerror(errno));
	return FALSE;
}

/* Who made the socket: root, or the user that we are. Anyone else could lie to us. */
static gboolean check_server(TnClient *client, GError **error)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);

	if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == 0 &&
	    (cred.uid == 0 || cred.uid == geteuid()))
		return TRUE;
	g_set_error(
		error, TN_CLIENT_ERROR, TN_CTL_REFUSED,
		"%s: neither root nor this user listens there (call from outside any sandbox, or "
		"choose another --runtime-dir)",
		client->paths.control_socket);
	return FALSE;
}

static gboolean connect_socket(TnClient *client, GError **error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	g_strlcpy(address.sun_path, client->paths.control_socket, sizeof(address.sun_path));
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0 ||
	    connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EACCES || errno == EPERM) {
			g_set_error(error, TN_CLIENT_ERROR, TN_CTL_REFUSED,
				    "%s: %s (that daemon serves another user)",
				    client->paths.control_socket, g_strerror(errno));
		} else {
			g_set_error(error, TN_CLIENT_ERROR, TN_CTL_NO_DAEMON,
				    "%s: no daemon: %s (tmpnest daemon start)",
				    client->paths.control_socket, g_strerror(errno));
		}
		return FALSE;
	}
	return check_server(client, error);
}

static TnClient *open_one(const TnPaths *paths, GError **error)
{
	g_autoptr(TnClient) client = g_new0(TnClient, 1);
	g_autoptr(JsonObject) info = NULL;

	client->fd = client->received = -1;
	client->paths = *paths;
	client->input = g_byte_array_new();
	tn_client_set_timeout(client, TIMEOUT_SECONDS);
	if (!take_owner_ids(paths, error) || !connect_socket(client, error))
		return NULL;
	/* The daemon decides with the first message whether it serves us. */
	info = call(client, "org.varlink.service", "GetInfo", NULL, FALSE, error);
	return info != NULL ? g_steal_pointer(&client) : NULL;
}

TnClient *tn_client_open(const TnDaemonChoice *choice, GError **error)
{
	TnPaths paths[TN_DAEMONS_MAX];
	char why[PATH_MAX + 256] = "";
	int n = tn_daemon_candidates(choice, geteuid(), paths, why, sizeof(why));
	GError *first = NULL;

	if (n < 0) {
		g_set_error_literal(error, TN_CLIENT_ERROR, TN_CTL_USAGE, why);
		return NULL;
	}
	for (int i = 0; i < n; i++) {
		g_autoptr(GError) failure = NULL;
		TnClient *client = open_one(&paths[i], &failure);

		if (client != NULL) {
			g_clear_error(&first);
			return client;
		}
		/* A daemon that refuses says more than one that is not there. */
		if (first == NULL || first->code == TN_CTL_NO_DAEMON) {
			g_clear_error(&first);
			first = g_steal_pointer(&failure);
		}
		if (first->code != TN_CTL_NO_DAEMON && first->code != TN_CTL_REFUSED)
			break;
	}
	g_propagate_error(error, first);
	return NULL;
}
