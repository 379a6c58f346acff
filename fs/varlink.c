/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-private.h"

#include "config.h"
#include "macros.h"
#include "syscalls.h"
#include "why.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>

TN_SYSCALLS = {
	{SYS_accept4},
};

#define DEFAULT_PER_UID 16
#define DEFAULT_TOTAL 512
#define DEFAULT_HELLO_SECONDS 10
#define SERVICE "org.varlink.service"

static const char service_description[] =
	"# The Varlink service interface: what is this, and what can it do?\n"
	"interface org.varlink.service\n\n"
	"method GetInfo() -> (\n"
	"  vendor: string,\n  product: string,\n  version: string,\n  url: string,\n"
	"  interfaces: []string\n)\n\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n\n"
	"error InterfaceNotFound (interface: string)\n"
	"error MethodNotFound (method: string)\n"
	"error MethodNotImplemented (method: string)\n"
	"error InvalidParameter (parameter: string)\n";

static void fail_service(TnVarlinkCall *call, const char *error, const char *key, const char *value)
{
	JsonObject *fields = json_object_new();

	json_object_set_string_member(fields, key, value);
	tn_varlink_fail_named(call, error, fields);
}

static void get_info(TnVarlinkCall *call, const TnVarlinkServer *server)
{
	JsonObject *info = json_object_new();
	JsonArray *interfaces = json_array_new();

	json_array_add_string_element(interfaces, SERVICE);
	json_array_add_string_element(interfaces, server->config.interface);
	json_object_set_string_member(info, "vendor", "tmpnest");
	json_object_set_string_member(info, "product", "tmpnestd");
	json_object_set_string_member(info, "version", TN_VERSION);
	json_object_set_string_member(info, "url", "");
	json_object_set_array_member(info, "interfaces", interfaces);
	tn_varlink_reply(call, info);
}

static void get_description(TnVarlinkCall *call, const TnVarlinkServer *server,
			    JsonObject *parameters)
{
	const char *interface = NULL, *text = NULL;
	const TnVarlinkParam params[] = {{"interface", TN_VARLINK_STRING, TRUE, &interface}};
	JsonObject *reply;

	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	if (strcmp(interface, SERVICE) == 0)
		text = service_description;
	else if (strcmp(interface, server->config.interface) == 0)
		text = server->config.description;
	if (text == NULL) {
		fail_service(call, SERVICE ".InterfaceNotFound", "interface", interface);
		return;
	}
	reply = json_object_new();
	json_object_set_string_member(reply, "description", text);
	tn_varlink_reply(call, reply);
}

static const TnVarlinkMethod *find_method(const TnVarlinkServer *server, const char *name)
{
	for (size_t i = 0; i < server->config.n_methods; i++) {
		if (strcmp(server->config.methods[i].name, name) == 0)
			return &server->config.methods[i];
	}
	return NULL;
}

/* method is the full name, "interface.Method". */
static void call_method(TnVarlinkCall *call, const TnVarlinkServer *server, const char *method,
			JsonObject *parameters)
{
	const char *dot = strrchr(method, '.');
	g_autofree char *interface = g_strndup(method, dot != NULL ? (gsize)(dot - method) : 0);
	const TnVarlinkMethod *found = NULL;

	if (strcmp(method, SERVICE ".GetInfo") == 0) {
		get_info(call, server);
	} else if (strcmp(method, SERVICE ".GetInterfaceDescription") == 0) {
		get_description(call, server, parameters);
	} else if (strcmp(interface, server->config.interface) == 0) {
		found = find_method(server, dot + 1);
		if (found == NULL)
			fail_service(call, SERVICE ".MethodNotFound", "method", method);
		else if (call->conn->observer && !found->observes)
			tn_varlink_fail(call, "PermissionDenied", found->name,
					"this connection may only observe", "connect anew");
		else
			found->handler(call, parameters, server->config.data);
	} else if (strcmp(interface, SERVICE) == 0) {
		fail_service(call, SERVICE ".MethodNotFound", "method", method);
	} else {
		fail_service(call, SERVICE ".InterfaceNotFound", "interface", interface);
	}
}

void tn_varlink_server_refuse(TnVarlinkConn *conn, const char *error, const char *reason,
			      const char *hint)
{
	g_autofree char *name = g_strconcat(conn->server->config.interface, ".", error, NULL);
	JsonObject *message = json_object_new();

	json_object_set_string_member(message, "error", name);
	json_object_set_object_member(message, "parameters",
				      tn_varlink_error_fields("", reason, hint));
	tn_varlink_conn_send(conn, message, -1);
	tn_varlink_conn_close_soon(conn);
}

static gboolean admit(TnVarlinkConn *conn)
{
	const TnVarlinkConfig *config = &conn->server->config;
	char why[TN_WHY_MAX] = "this daemon does not serve the caller";

	if (config->admit(conn->fd, &conn->peer, conn->ns_fd, why, sizeof(why), config->data) < 0) {
		tn_varlink_server_refuse(conn, "PermissionDenied", why, "");
		return FALSE;
	}
	conn->admitted = TRUE;
	tn_stranger_close(conn->server->strangers, conn->peer.uid, &conn->ns_fd);
	return TRUE;
}

typedef struct Request {
	const char *method;
	JsonObject *parameters; /* owned */
	gboolean more, oneway, upgrade;
} Request;

static gboolean read_flag(JsonNode *node, gboolean *ret)
{
	if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_BOOLEAN)
		return FALSE;
	*ret = json_node_get_boolean(node);
	return TRUE;
}

/* FALSE: not a Varlink call. */
static gboolean read_request(JsonObject *message, Request *ret)
{
	JsonObjectIter iter;
	const char *key;
	JsonNode *value;
	gboolean ok = TRUE;

	json_object_iter_init(&iter, message);
	while (ok && json_object_iter_next(&iter, &key, &value)) {
		if (strcmp(key, "method") == 0) {
			ok = JSON_NODE_HOLDS_VALUE(value) &&
			     json_node_get_value_type(value) == G_TYPE_STRING;
			if (ok)
				ret->method = json_node_get_string(value);
		} else if (strcmp(key, "parameters") == 0) {
			ok = JSON_NODE_HOLDS_OBJECT(value) || JSON_NODE_HOLDS_NULL(value);
			g_clear_pointer(&ret->parameters, json_object_unref);
			if (JSON_NODE_HOLDS_OBJECT(value))
				ret->parameters = json_node_dup_object(value);
		} else if (strcmp(key, "more") == 0) {
			ok = read_flag(value, &ret->more);
		} else if (strcmp(key, "oneway") == 0) {
			ok = read_flag(value, &ret->oneway);
		} else if (strcmp(key, "upgrade") == 0) {
			ok = read_flag(value, &ret->upgrade);
		} else {
			ok = FALSE;
		}
	}
	if (ret->parameters == NULL)
		ret->parameters = json_object_new();
	return ok && ret->method != NULL;
}

static void run_request(TnVarlinkConn *conn, const Request *request)
{
	TnVarlinkCall *call = tn_varlink_call_new(conn, request->more, request->oneway);

	conn->call = tn_varlink_call_ref(call);
	if (request->upgrade)
		fail_service(call, SERVICE ".InvalidParameter", "parameter", "upgrade");
	else
		call_method(call, conn->server, request->method, request->parameters);
	tn_varlink_call_unref(call);
}

void tn_varlink_server_message(TnVarlinkConn *conn, const char *text, gsize size)
{
	g_autoptr(JsonParser) parser = NULL;
	JsonNode *root = NULL;
	Request request = {NULL};
	int r;

	if (!conn->admitted && !admit(conn))
		return;
	r = tn_varlink_guard(text, size);
	if (r == 0) {
		parser = json_parser_new();
		if (json_parser_load_from_data(parser, text, (gssize)size, NULL))
			root = json_parser_get_root(parser);
	}
	if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
		tn_varlink_server_refuse(conn, "InvalidMessage", tn_varlink_guard_text(r),
					 "send Varlink calls");
		return;
	}
	if (read_request(json_node_get_object(root), &request))
		run_request(conn, &request);
	else
		tn_varlink_server_refuse(conn, "InvalidMessage", "the message is no Varlink call",
					 "send method, parameters, more and oneway");
	g_clear_pointer(&request.parameters, json_object_unref);
}

static gboolean is_full(const TnVarlinkServer *server, uid_t uid)
{
	unsigned total = 0, same_uid = 0;
	unsigned max = server->config.max_total;

	for (const GList *l = server->conns.head; l != NULL; l = l->next) {
		const TnVarlinkConn *conn = l->data;

		total++;
		if (conn->peer.uid == uid)
			same_uid++;
	}
	if (uid == 0)
		max += server->config.max_per_uid;
	return total >= max || same_uid >= server->config.max_per_uid;
}

/* Says why, as far as one write without waiting does; a client may read it instead of a reply. */
static void turn_away(const TnVarlinkServer *server, int fd)
{
	g_autofree char *text = g_strdup_printf(
		"{\"error\":\"%s.TooManyConnections\",\"parameters\":{\"name\":\"\","
		"\"reason\":\"too many connections\",\"hint\":\"close some and try again\"}}",
		server->config.interface);

	(void)!send(fd, text, strlen(text) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int tn_varlink_server_add(TnVarlinkServer *server, int fd_taken)
{
	TN_AUTOFD fd = fd_taken;
	TnPeer peer;
	int r;

	r = tn_peer_get(fd, &peer);
	if (r < 0)
		return r;
	if (is_full(server, peer.uid) || !tn_stranger_may_send(server->strangers, peer.uid)) {
		turn_away(server, fd);
		return -EUSERS;
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	tn_varlink_conn_new(server, tn_steal_fd(&fd), &peer);
	return 0;
}

static gboolean on_connect(int listen_fd, GIOCondition condition, gpointer data);

static void start_accepting(TnVarlinkServer *server)
{
	server->listen = g_unix_fd_source_new(server->listen_fd, G_IO_IN);
	g_source_set_callback(server->listen, G_SOURCE_FUNC(on_connect), server, NULL);
	g_source_attach(server->listen, server->context);
}

static void clear_source(GSource **source)
{
	if (*source == NULL)
		return;
	g_source_destroy(*source);
	g_clear_pointer(source, g_source_unref);
}

static gboolean resume_accepting(gpointer data)
{
	TnVarlinkServer *server = data;

	clear_source(&server->pause);
	start_accepting(server);
	return G_SOURCE_REMOVE;
}

/* Out of descriptors: the waiting connection would wake us without end. */
static void pause_accepting(TnVarlinkServer *server)
{
	clear_source(&server->listen);
	server->pause = g_timeout_source_new(500);
	g_source_set_callback(server->pause, resume_accepting, server, NULL);
	g_source_attach(server->pause, server->context);
}

static gboolean on_connect(int listen_fd, GIOCondition condition, gpointer data)
{
	TnVarlinkServer *server = data;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		tn_varlink_server_add(server, fd);
		return G_SOURCE_CONTINUE;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return G_SOURCE_CONTINUE;
	pause_accepting(server);
	return G_SOURCE_REMOVE;
}

int tn_varlink_server_listen(TnVarlinkServer *server, int listen_fd)
{
	if (fcntl(listen_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	server->listen_fd = listen_fd;
	start_accepting(server);
	return 0;
}

TnVarlinkServer *tn_varlink_server_new(const TnVarlinkConfig *config, GMainContext *context)
{
	TnVarlinkServer *server = g_new0(TnVarlinkServer, 1);

	server->config = *config;
	if (server->config.max_per_uid == 0)
		server->config.max_per_uid = DEFAULT_PER_UID;
	if (server->config.max_total == 0)
		server->config.max_total = DEFAULT_TOTAL;
	if (server->config.hello_seconds == 0)
		server->config.hello_seconds = DEFAULT_HELLO_SECONDS;
	server->context = g_main_context_ref(context);
	server->strangers = tn_strangers_new();
	if (server->strangers == NULL)
		g_error("out of memory");
	server->listen_fd = -1;
	g_queue_init(&server->conns);
	return server;
}

void tn_varlink_server_free(TnVarlinkServer *server)
{
	if (server == NULL)
		return;
	clear_source(&server->listen);
	clear_source(&server->pause);
	while (server->conns.head != NULL)
		tn_varlink_conn_drop(server->conns.head->data);
	tn_strangers_free(server->strangers);
	g_main_context_unref(server->context);
	g_free(server);
}

unsigned tn_varlink_server_connections(const TnVarlinkServer *server)
{
	return server->conns.length;
}
