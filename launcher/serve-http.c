/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve-http.h"

#include <string.h>

/* data/web, embedded */
extern const char tn_web_index[], tn_web_script[], tn_web_style[];

#define CSP \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

typedef struct Server {
	TnServeState *state;
	gboolean check_host;
} Server;

static void answer(SoupServerMessage *message, guint status, const char *type, char *body)
{
	SoupMessageHeaders *headers = soup_server_message_get_response_headers(message);

	soup_message_headers_replace(headers, "Content-Security-Policy", CSP);
	soup_message_headers_replace(headers, "X-Content-Type-Options", "nosniff");
	soup_message_headers_replace(headers, "Referrer-Policy", "no-referrer");
	soup_message_headers_replace(headers, "Cache-Control", "no-store");
	soup_message_headers_replace(headers, "Cross-Origin-Resource-Policy", "same-origin");
	soup_server_message_set_status(message, status, NULL);
	soup_server_message_set_response(message, type, SOUP_MEMORY_TAKE, body, strlen(body));
}

/* Takes object. */
static void answer_json(SoupServerMessage *message, guint status, JsonObject *object)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

	json_node_take_object(node, object);
	answer(message, status, "application/json", json_to_string(node, FALSE));
}

static void answer_error(SoupServerMessage *message, guint status, const char *why)
{
	JsonObject *object = json_object_new();

	json_object_set_string_member(object, "error", why);
	answer_json(message, status, object);
}

/* A name in DNS can be made to lead here; only those that are ours by definition are served. */
static gboolean is_local_name(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

	for (gsize i = 0; host != NULL && i < G_N_ELEMENTS(names); i++) {
		gsize length = strlen(names[i]);

		if (g_ascii_strncasecmp(host, names[i], length) == 0 &&
		    (host[length] == '\0' || host[length] == ':'))
			return TRUE;
	}
	return FALSE;
}

static gboolean admit(const Server *server, SoupServerMessage *message)
{
	const char *method = soup_server_message_get_method(message);
	const char *host = soup_message_headers_get_one(
		soup_server_message_get_request_headers(message), "Host");

	if (server->check_host && !is_local_name(host)) {
		answer_error(message, SOUP_STATUS_FORBIDDEN, "ask for localhost or its address");
		return FALSE;
	}
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		answer_error(message, SOUP_STATUS_METHOD_NOT_ALLOWED, "this only shows");
		return FALSE;
	}
	return TRUE;
}

static void show_text(SoupServerMessage *message, const char *type, const char *text)
{
	answer(message, SOUP_STATUS_OK, type, g_strdup(text));
}

static void show_nests(const Server *server, SoupServerMessage *message)
{
	JsonArray *nests = tn_serve_nests(server->state), *copies;
	JsonObject *reply;

	if (nests == NULL) {
		answer_error(message, SOUP_STATUS_SERVICE_UNAVAILABLE,
			     "the daemon does not answer");
		return;
	}
	copies = json_array_new();
	for (guint i = 0; i < json_array_get_length(nests); i++) {
		g_autoptr(JsonNode) copy = json_node_copy(json_array_get_element(nests, i));
		JsonObject *nest = json_node_dup_object(copy);
		const char *id = json_object_get_string_member_with_default(nest, "id", "");

		json_object_set_array_member(nest, "history", tn_serve_history(server->state, id));
		json_array_add_object_element(copies, nest);
	}
	reply = json_object_new();
	json_object_set_array_member(reply, "nests", copies);
	answer_json(message, SOUP_STATUS_OK, reply);
}

static void show_nest(const Server *server, SoupServerMessage *message, JsonObject *nest)
{
	const char *id = json_object_get_string_member_with_default(nest, "id", "");
	JsonObject *reply = json_object_new();

	json_object_set_object_member(reply, "nest", json_object_ref(nest));
	json_object_set_array_member(reply, "history", tn_serve_history(server->state, id));
	answer_json(message, SOUP_STATUS_OK, reply);
}

static void show_events(const Server *server, SoupServerMessage *message, JsonObject *nest)
{
	g_autoptr(GError) error = NULL;
	JsonObject *events = tn_serve_events(server->state, nest, &error);

	if (events == NULL)
		answer_error(message, SOUP_STATUS_SERVICE_UNAVAILABLE, error->message);
	else
		answer_json(message, SOUP_STATUS_OK, events);
}

/* --- usage: may take long, so another thread asks ------------------------------------------------
 */

typedef struct Question {
	TnServeState *state;
	SoupServerMessage *message;
	char *name;
	gint64 owner;
} Question;

static void question_free(void *data)
{
	Question *question = data;

	g_object_unref(question->message);
	g_free(question->name);
	g_free(question);
}

static void ask_usage(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
	Question *question = data;
	GError *error = NULL;
	JsonObject *usage =
		tn_serve_usage(question->state, question->name, question->owner, &error);

	if (usage == NULL)
		g_task_return_error(task, error);
	else
		g_task_return_pointer(task, usage, (GDestroyNotify)json_object_unref);
}

static void tell_usage(GObject *source, GAsyncResult *result, gpointer data)
{
	Question *question = g_task_get_task_data(G_TASK(result));
	g_autoptr(GError) error = NULL;
	JsonObject *usage = g_task_propagate_pointer(G_TASK(result), &error);

	if (usage == NULL)
		answer_error(question->message, SOUP_STATUS_SERVICE_UNAVAILABLE, error->message);
	else
		answer_json(question->message, SOUP_STATUS_OK, usage);
	soup_server_message_unpause(question->message);
}

static void show_usage(const Server *server, SoupServerMessage *message, JsonObject *nest)
{
	Question *question = g_new0(Question, 1);
	g_autoptr(GTask) task = g_task_new(NULL, NULL, tell_usage, NULL);

	question->state = server->state;
	question->message = g_object_ref(message);
	question->name = g_strdup(json_object_get_string_member_with_default(nest, "name", ""));
	question->owner = json_object_get_int_member_with_default(nest, "owner_uid", -1);
	soup_server_message_pause(message);
	g_task_set_task_data(task, question, question_free);
	g_task_run_in_thread(task, ask_usage);
}

/* --- paths
 * ----------------------------------------------------------------------------------------- */

static void show_one(const Server *server, SoupServerMessage *message, const char *path)
{
	static const struct {
		const char *prefix;
		void (*show)(const Server *server, SoupServerMessage *message, JsonObject *nest);
	} known[] = {
		{"/api/nest/", show_nest},
		{"/api/events/", show_events},
		{"/api/usage/", show_usage},
	};

	for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
		JsonObject *nest;

		if (!g_str_has_prefix(path, known[i].prefix))
			continue;
		nest = tn_serve_find(server->state, path + strlen(known[i].prefix));
		if (nest != NULL)
			known[i].show(server, message, nest);
		else
			answer_error(message, SOUP_STATUS_NOT_FOUND, "there is no such nest");
		return;
	}
	answer_error(message, SOUP_STATUS_NOT_FOUND, "there is nothing of that name");
}

static void on_request(SoupServer *soup, SoupServerMessage *message, const char *path,
		       GHashTable *query, gpointer data)
{
	const Server *server = data;

	if (!admit(server, message))
		return;
	if (strcmp(path, "/") == 0)
		show_text(message, "text/html; charset=utf-8", tn_web_index);
	else if (strcmp(path, "/app.js") == 0)
		show_text(message, "text/javascript; charset=utf-8", tn_web_script);
	else if (strcmp(path, "/style.css") == 0)
		show_text(message, "text/css; charset=utf-8", tn_web_style);
	else if (strcmp(path, "/metrics") == 0)
		answer(message, SOUP_STATUS_OK, "text/plain; version=0.0.4; charset=utf-8",
		       tn_serve_metrics(server->state));
	else if (strcmp(path, "/api/nests") == 0)
		show_nests(server, message);
	else
		show_one(server, message, path);
}

SoupServer *tn_serve_http_new(TnServeState *state, gboolean check_host)
{
	SoupServer *soup = soup_server_new("server-header", "tmpnest", NULL);
	Server *server = g_new0(Server, 1);

	server->state = state;
	server->check_host = check_host;
	soup_server_add_handler(soup, NULL, on_request, server, g_free);
	return soup;
}
