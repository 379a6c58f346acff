/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve-state.h"

#include "ctl.h"
#include "metrics-text.h"

#include <string.h>

#define USAGE_SECONDS 60
#define LARGEST 30

typedef struct History {
	guint64 bytes[TN_SERVE_HISTORY];
	guint n, next;
	gboolean seen; /* in the newest list */
} History;

struct TnServeState {
	TnDaemonChoice choice;
	gboolean sealed;
	TnClient *client;
	GMutex usage_lock; /* guards the client below */
	TnClient *usage_client;
	JsonObject *list, *daemon, *status; /* the newest answers, or NULL */
	GHashTable *histories;              /* id to History */
};

static TnClient *connect_observer(TnServeState *state, GError **error)
{
	g_autoptr(TnClient) client = NULL;
	g_autoptr(JsonObject) reply = NULL;

	if (state->sealed) {
		g_set_error(error, TN_CLIENT_ERROR, TN_CTL_NO_DAEMON,
			    "daemon: the connection has ended (start serve anew)");
		return NULL;
	}
	client = tn_client_open(&state->choice, error);
	if (client != NULL)
		reply = tn_client_call(client, "Observe", NULL, error);
	return reply != NULL ? g_steal_pointer(&client) : NULL;
}

TnServeState *tn_serve_state_new(const TnDaemonChoice *choice, GError **error)
{
	g_autoptr(TnServeState) state = g_new0(TnServeState, 1);

	state->choice = *choice;
	g_mutex_init(&state->usage_lock);
	state->histories = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	state->client = connect_observer(state, error);
	if (state->client != NULL)
		state->usage_client = connect_observer(state, error);
	return state->usage_client != NULL ? g_steal_pointer(&state) : NULL;
}

static void forget_answers(TnServeState *state)
{
	g_clear_pointer(&state->list, json_object_unref);
	g_clear_pointer(&state->daemon, json_object_unref);
	g_clear_pointer(&state->status, json_object_unref);
}

void tn_serve_state_free(TnServeState *state)
{
	if (state == NULL)
		return;
	forget_answers(state);
	tn_client_free(state->client);
	tn_client_free(state->usage_client);
	g_hash_table_unref(state->histories);
	g_mutex_clear(&state->usage_lock);
	g_free(state);
}

void tn_serve_state_seal(TnServeState *state)
{
	state->sealed = TRUE;
}

gboolean tn_serve_state_is_sealed(const TnServeState *state)
{
	return state->sealed;
}

static const char *id_of(JsonObject *nest)
{
	return json_object_get_string_member_with_default(nest, "id", "");
}

static gboolean forget_unseen(gpointer key, gpointer value, gpointer data)
{
	History *history = value;
	gboolean seen = history->seen;

	history->seen = FALSE;
	return !seen;
}

static void remember(TnServeState *state)
{
	JsonArray *nests = tn_serve_nests(state);

	for (guint i = 0; i < json_array_get_length(nests); i++) {
		JsonObject *nest = json_array_get_object_element(nests, i);
		History *history = g_hash_table_lookup(state->histories, id_of(nest));
		gint64 bytes = json_object_get_int_member_with_default(nest, "bytes_used", 0);

		if (history == NULL) {
			history = g_new0(History, 1);
			g_hash_table_insert(state->histories, g_strdup(id_of(nest)), history);
		}
		history->bytes[history->next] = bytes > 0 ? (guint64)bytes : 0;
		history->next = (history->next + 1) % TN_SERVE_HISTORY;
		history->n = MIN(history->n + 1, (guint)TN_SERVE_HISTORY);
		history->seen = TRUE;
	}
	g_hash_table_foreach_remove(state->histories, forget_unseen, NULL);
}

gboolean tn_serve_update(TnServeState *state, GError **error)
{
	JsonObject *list = NULL, *daemon = NULL, *status = NULL;

	forget_answers(state);
	if (state->client == NULL)
		state->client = connect_observer(state, error);
	if (state->client != NULL)
		list = tn_client_call_more(state->client, "ListNests", NULL, error);
	if (list != NULL)
		daemon = tn_client_call(state->client, "GetMetrics", NULL, error);
	if (daemon != NULL)
		status = tn_client_call(state->client, "Status", NULL, error);
	if (status == NULL) {
		g_clear_pointer(&list, json_object_unref);
		g_clear_pointer(&daemon, json_object_unref);
		g_clear_pointer(&state->client, tn_client_free);
		return FALSE;
	}
	state->list = list;
	state->daemon = daemon;
	state->status = status;
	remember(state);
	return TRUE;
}

JsonArray *tn_serve_nests(const TnServeState *state)
{
	JsonNode *node = state->list != NULL ? json_object_get_member(state->list, "nests") : NULL;

	return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

char *tn_serve_metrics(const TnServeState *state)
{
	JsonArray *nests = tn_serve_nests(state);
	g_autoptr(TnNestRows) rows = nests != NULL ? tn_nest_rows_read(nests) : NULL;

	return tn_metrics_text(rows, state->daemon, state->status);
}

JsonObject *tn_serve_find(const TnServeState *state, const char *id)
{
	JsonArray *nests = tn_serve_nests(state);

	for (guint i = 0; nests != NULL && i < json_array_get_length(nests); i++) {
		JsonObject *nest = json_array_get_object_element(nests, i);

		if (strcmp(id_of(nest), id) == 0)
			return nest;
	}
	return NULL;
}

JsonArray *tn_serve_history(const TnServeState *state, const char *id)
{
	const History *history = g_hash_table_lookup(state->histories, id);
	JsonArray *array = json_array_new();
	guint first;

	if (history == NULL)
		return array;
	first = (history->next + TN_SERVE_HISTORY - history->n) % TN_SERVE_HISTORY;
	for (guint i = 0; i < history->n; i++)
		json_array_add_int_element(array,
					   (gint64)history->bytes[(first + i) % TN_SERVE_HISTORY]);
	return array;
}

static JsonObject *about(const char *name, gint64 owner)
{
	JsonObject *parameters = json_object_new();

	json_object_set_string_member(parameters, "name", name);
	json_object_set_int_member(parameters, "owner_uid", owner);
	return parameters;
}

JsonObject *tn_serve_events(TnServeState *state, JsonObject *nest, GError **error)
{
	const char *name = json_object_get_string_member_with_default(nest, "name", "");
	gint64 owner = json_object_get_int_member_with_default(nest, "owner_uid", -1);

	if (state->client == NULL)
		state->client = connect_observer(state, error);
	if (state->client == NULL)
		return NULL;
	return tn_client_call_more(state->client, "GetEvents", about(name, owner), error);
}

JsonObject *tn_serve_usage(TnServeState *state, const char *name, gint64 owner, GError **error)
{
	JsonObject *parameters = about(name, owner), *reply = NULL;
	g_autoptr(GError) failure = NULL;

	json_object_set_int_member(parameters, "top", LARGEST);
	g_mutex_lock(&state->usage_lock);
	if (state->usage_client == NULL)
		state->usage_client = connect_observer(state, &failure);
	if (state->usage_client != NULL) {
		tn_client_set_timeout(state->usage_client, USAGE_SECONDS);
		reply = tn_client_call_more(state->usage_client, "GetUsage", parameters, &failure);
	} else {
		json_object_unref(parameters);
	}
	/* Only what the daemon said leaves the connection in order. */
	if (reply == NULL && failure->code == TN_CTL_FAILED)
		g_clear_pointer(&state->usage_client, tn_client_free);
	g_mutex_unlock(&state->usage_lock);
	if (reply == NULL)
		g_propagate_error(error, g_steal_pointer(&failure));
	return reply;
}
