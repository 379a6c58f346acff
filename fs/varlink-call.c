/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-private.h"

#include "macros.h"

#include <errno.h>
#include <string.h>

TnVarlinkCall *tn_varlink_call_new(TnVarlinkConn *conn, gboolean more, gboolean oneway)
{
	TnVarlinkCall *call = g_new0(TnVarlinkCall, 1);

	g_atomic_ref_count_init(&call->refs);
	call->conn = conn;
	call->peer = conn->peer;
	call->more = more;
	call->oneway = oneway;
	return call;
}

TnVarlinkCall *tn_varlink_call_ref(TnVarlinkCall *call)
{
	g_atomic_ref_count_inc(&call->refs);
	return call;
}

void tn_varlink_call_unref(TnVarlinkCall *call)
{
	if (call != NULL && g_atomic_ref_count_dec(&call->refs))
		g_free(call);
}

static void end_stream(TnVarlinkCall *call)
{
	call->produce = NULL;
	if (call->produce_destroy != NULL)
		call->produce_destroy(call->produce_data);
	call->produce_destroy = NULL;
}

void tn_varlink_call_cancel(TnVarlinkCall *call)
{
	call->conn = NULL;
	end_stream(call);
}

const TnPeer *tn_varlink_call_peer(const TnVarlinkCall *call)
{
	return &call->peer;
}

gboolean tn_varlink_call_wants_more(const TnVarlinkCall *call)
{
	return call->more && !call->oneway;
}

void tn_varlink_call_observe_only(TnVarlinkCall *call)
{
	if (call->conn != NULL)
		call->conn->observer = TRUE;
}

JsonObject *tn_varlink_error_fields(const char *name, const char *reason, const char *hint)
{
	JsonObject *fields = json_object_new();

	json_object_set_string_member(fields, "name", name != NULL ? name : "");
	json_object_set_string_member(fields, "reason", reason != NULL ? reason : "");
	json_object_set_string_member(fields, "hint", hint != NULL ? hint : "");
	return fields;
}

/* Takes parameters and fd. */
static int send_message(TnVarlinkCall *call, const char *error, JsonObject *parameters,
			gboolean continues, int fd)
{
	JsonObject *message = json_object_new();

	if (error != NULL)
		json_object_set_string_member(message, "error", error);
	if (continues)
		json_object_set_boolean_member(message, "continues", TRUE);
	json_object_set_object_member(message, "parameters",
				      parameters != NULL ? parameters : json_object_new());
	return tn_varlink_conn_send(call->conn, message, fd);
}

static void answer_too_long(TnVarlinkCall *call)
{
	g_autofree char *name = g_strconcat(call->conn->server->config.interface, ".Failed", NULL);

	send_message(call, name,
		     tn_varlink_error_fields("", "the answer does not fit one message", ""), FALSE,
		     -1);
}

/* Unless it continues, the connection is given back to the next call. */
static void end_answer(TnVarlinkCall *call, gboolean continues)
{
	TnVarlinkConn *conn = call->conn;

	if (conn == NULL || continues)
		return;
	g_assert(conn->call == call);
	conn->call = NULL;
	tn_varlink_call_cancel(call);
	tn_varlink_conn_update(conn);
	tn_varlink_call_unref(call);
}

static void answer_fd(TnVarlinkCall *call, const char *error, JsonObject *parameters,
		      gboolean continues, int fd_taken)
{
	TN_AUTOFD fd = fd_taken;

	if (call->conn == NULL || call->oneway) {
		g_clear_pointer(&parameters, json_object_unref);
	} else if (send_message(call, error, parameters, continues, tn_steal_fd(&fd)) ==
		   -EMSGSIZE) {
		continues = FALSE;
		answer_too_long(call);
	}
	end_answer(call, continues);
}

void tn_varlink_reply_text(TnVarlinkCall *call, const char *parameters, gboolean continues)
{
	g_assert(!continues || tn_varlink_call_wants_more(call));
	if (call->conn != NULL && !call->oneway) {
		char *text = g_strconcat(continues ? "{\"continues\":true," : "{",
					 "\"parameters\":", parameters, "}", NULL);

		if (tn_varlink_conn_send_text(call->conn, text, strlen(text), -1) == -EMSGSIZE) {
			continues = FALSE;
			answer_too_long(call);
		}
	}
	end_answer(call, continues);
}

static void answer(TnVarlinkCall *call, const char *error, JsonObject *parameters,
		   gboolean continues)
{
	answer_fd(call, error, parameters, continues, -1);
}

void tn_varlink_call_when_sent(TnVarlinkCall *call, void (*done)(void *data), void *data)
{
	if (call->conn == NULL) {
		done(data);
		return;
	}
	call->conn->sent = done;
	call->conn->sent_data = data;
}

void tn_varlink_reply(TnVarlinkCall *call, JsonObject *parameters)
{
	answer(call, NULL, parameters, FALSE);
}

void tn_varlink_reply_fd(TnVarlinkCall *call, JsonObject *parameters, int fd)
{
	answer_fd(call, NULL, parameters, FALSE, fd);
}

void tn_varlink_reply_continues(TnVarlinkCall *call, JsonObject *parameters)
{
	g_assert(tn_varlink_call_wants_more(call));
	answer(call, NULL, parameters, TRUE);
}

void tn_varlink_fail_named(TnVarlinkCall *call, const char *error, JsonObject *parameters)
{
	answer(call, error, parameters, FALSE);
}

void tn_varlink_fail_with(TnVarlinkCall *call, const char *error, const char *name,
			  const char *reason, const char *hint, JsonObject *extra)
{
	JsonObject *fields = tn_varlink_error_fields(name, reason, hint);
	g_autofree char *full = NULL;

	if (extra != NULL) {
		JsonObjectIter iter;
		const char *key;
		JsonNode *value;

		json_object_iter_init(&iter, extra);
		while (json_object_iter_next(&iter, &key, &value))
			json_object_set_member(fields, key, json_node_copy(value));
		json_object_unref(extra);
	}
	if (call->conn != NULL)
		full = g_strconcat(call->conn->server->config.interface, ".", error, NULL);
	tn_varlink_fail_named(call, full, fields);
}

void tn_varlink_fail(TnVarlinkCall *call, const char *error, const char *name, const char *reason,
		     const char *hint)
{
	tn_varlink_fail_with(call, error, name, reason, hint, NULL);
}

void tn_varlink_call_stream(TnVarlinkCall *call, TnVarlinkProduce produce, void *data,
			    GDestroyNotify destroy)
{
	call->produce = produce;
	call->produce_data = data;
	call->produce_destroy = destroy;
	if (call->conn == NULL)
		end_stream(call);
	else
		tn_varlink_call_wake(call);
}

void tn_varlink_call_wake(TnVarlinkCall *call)
{
	call->asleep = FALSE;
	if (call->conn != NULL)
		tn_varlink_conn_update(call->conn);
}
