/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-private.h"

#include "macros.h"
#include "scm.h"
#include "syscalls.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

TN_SYSCALLS = {
	{SYS_recvmsg},
	{SYS_sendmsg},
	{SYS_sendto},
};

/* Replies queued before the next one of a stream is asked for; one more always fits. */
#define OUTPUT_HIGH ((gsize)TN_VARLINK_MESSAGE_MAX)
#define READ_CHUNK 16384
#define HELD_US 50000 /* until a client is read again whose descriptors are slow to close */

/* One message on its way out. */
typedef struct Output {
	GBytes *bytes;
	int fd; /* goes with its first byte; -1: none */
} Output;

static void output_free(void *data)
{
	Output *output = data;

	tn_close(&output->fd);
	g_bytes_unref(output->bytes);
	g_free(output);
}

static gboolean may_process(const TnVarlinkConn *conn)
{
	return conn->call == NULL && !conn->closing && conn->output_bytes < OUTPUT_HIGH;
}

static gboolean stream_ready(const TnVarlinkConn *conn)
{
	const TnVarlinkCall *call = conn->call;

	return call != NULL && call->produce != NULL && !call->asleep &&
	       conn->output_bytes < OUTPUT_HIGH;
}

/* Something to do that no descriptor will announce. */
static gboolean has_work(const TnVarlinkConn *conn)
{
	if (conn->dead || stream_ready(conn))
		return TRUE;
	if (conn->closing && conn->output_bytes == 0)
		return TRUE;
	return may_process(conn) && (conn->message >= 0 || conn->eof);
}

static gboolean has_deadline(const TnVarlinkConn *conn)
{
	return !conn->admitted || conn->closing;
}

static gboolean wants_input(const TnVarlinkConn *conn)
{
	return !conn->eof && !conn->held && conn->message < 0 && may_process(conn);
}

/* When to look at it without an event; -1: never. */
static gint64 next_time(const TnVarlinkConn *conn)
{
	if (has_work(conn))
		return 0;
	if (conn->held)
		return g_get_monotonic_time() + HELD_US;
	return has_deadline(conn) ? conn->deadline : -1;
}

void tn_varlink_conn_update(TnVarlinkConn *conn)
{
	int events = 0;

	if (wants_input(conn))
		events |= G_IO_IN;
	if (conn->output_bytes > 0)
		events |= G_IO_OUT;
	g_source_modify_unix_fd(&conn->source, conn->tag, (GIOCondition)events);
	g_source_set_ready_time(&conn->source, next_time(conn));
}

static void find_message(TnVarlinkConn *conn)
{
	const guint8 *nul;

	if (conn->message >= 0 || conn->scanned == conn->input->len)
		return;
	nul = memchr(conn->input->data + conn->scanned, '\0', conn->input->len - conn->scanned);
	conn->scanned = conn->input->len;
	if (nul != NULL)
		conn->message = nul - conn->input->data;
}

static void discard(int *fd, void *data)
{
	TnVarlinkConn *conn = data;

	tn_stranger_close(conn->server->strangers, conn->peer.uid, fd);
}

/* The first descriptor before admission is the peer's proof; all others are closed. */
static void keep_proof(TnVarlinkConn *conn, int *fds, size_t n_fds)
{
	for (size_t i = 0; i < n_fds; i++) {
		if (!conn->admitted && conn->ns_fd < 0)
			conn->ns_fd = tn_steal_fd(&fds[i]);
		discard(&fds[i], conn);
	}
}

static void read_input(TnVarlinkConn *conn)
{
	guint old = conn->input->len;
	int fds[TN_SCM_MAX_FDS];
	size_t n_fds = 0;
	ssize_t n;

	if (!tn_stranger_may_send(conn->server->strangers, conn->peer.uid)) {
		conn->held = TRUE;
		return;
	}
	g_byte_array_set_size(conn->input, old + READ_CHUNK);
	n = tn_scm_recv_with(conn->fd, conn->input->data + old, READ_CHUNK, fds, &n_fds, discard,
			     conn);
	g_byte_array_set_size(conn->input, old + (n > 0 ? (guint)n : 0));
	if (n == 0)
		conn->eof = TRUE;
	else if (n < 0 && n != -EAGAIN && n != -EINTR)
		conn->dead = TRUE;
	if (n > 0)
		keep_proof(conn, fds, n_fds);
	find_message(conn);
}

static void write_output(TnVarlinkConn *conn)
{
	while (conn->output_bytes > 0) {
		Output *first = g_queue_peek_head(&conn->output);
		gsize size;
		const char *data = g_bytes_get_data(first->bytes, &size);
		ssize_t n = tn_scm_send(conn->fd, data + conn->output_offset,
					size - conn->output_offset, &first->fd, first->fd >= 0);

		if (n < 0) {
			if (n != -EAGAIN)
				conn->dead = TRUE;
			return;
		}
		tn_close(&first->fd);
		conn->output_bytes -= (gsize)n;
		conn->output_offset += (gsize)n;
		if (conn->output_offset == size) {
			conn->output_offset = 0;
			output_free(g_queue_pop_head(&conn->output));
		}
	}
}

static void notify_sent(TnVarlinkConn *conn)
{
	void (*sent)(void *data) = conn->sent;

	conn->sent = NULL;
	if (sent != NULL)
		sent(conn->sent_data);
}

static void take_message(TnVarlinkConn *conn)
{
	gsize size = (gsize)conn->message;
	g_autofree char *text = g_strndup((const char *)conn->input->data, size);

	g_byte_array_remove_range(conn->input, 0, (guint)size + 1);
	conn->message = -1;
	conn->scanned = 0;
	find_message(conn);
	tn_varlink_server_message(conn, text, size);
}

static void produce(TnVarlinkConn *conn)
{
	TnVarlinkCall *call = tn_varlink_call_ref(conn->call);

	call->asleep = !call->produce(call, call->produce_data);
	tn_varlink_call_unref(call);
}

/* One step per dispatch, so that no client keeps the thread from the others. */
static void work(TnVarlinkConn *conn)
{
	if (stream_ready(conn))
		produce(conn);
	else if (!may_process(conn))
		return;
	else if (conn->message >= 0)
		take_message(conn);
	else if (conn->input->len > TN_VARLINK_MESSAGE_MAX)
		tn_varlink_server_refuse(conn, "InvalidMessage", tn_varlink_guard_text(-EMSGSIZE),
					 "send less at once");
	else if (conn->eof)
		conn->dead = TRUE;
}

static gboolean conn_dispatch(GSource *source, GSourceFunc callback, void *data)
{
	TnVarlinkConn *conn = (TnVarlinkConn *)source;
	GIOCondition got = g_source_query_unix_fd(source, conn->tag);

	/* HUP: nobody is left to read a reply, but what was sent before is still to be done. */
	if ((got & (G_IO_HUP | G_IO_ERR)) != 0 && (conn->call != NULL || conn->output_bytes > 0))
		conn->dead = TRUE;
	conn->held = FALSE;
	if (!conn->dead && (got & (G_IO_IN | G_IO_HUP)) != 0 && wants_input(conn))
		read_input(conn);
	if (conn->held && (got & (G_IO_HUP | G_IO_ERR)) != 0)
		conn->dead = TRUE;
	if (!conn->dead)
		work(conn);
	if (!conn->dead && conn->output_bytes > 0)
		write_output(conn);
	if (conn->call == NULL && conn->output_bytes == 0)
		notify_sent(conn);
	if (has_deadline(conn) && g_get_monotonic_time() >= conn->deadline)
		conn->dead = TRUE;
	if (conn->dead || (conn->closing && conn->output_bytes == 0)) {
		tn_varlink_conn_drop(conn);
		return G_SOURCE_REMOVE;
	}
	tn_varlink_conn_update(conn);
	return G_SOURCE_CONTINUE;
}

static void conn_finalize(GSource *source)
{
	TnVarlinkConn *conn = (TnVarlinkConn *)source;

	g_byte_array_unref(conn->input);
	g_queue_clear_full(&conn->output, output_free);
}

static GSourceFuncs conn_funcs = {
	.dispatch = conn_dispatch,
	.finalize = conn_finalize,
};

static void restart_deadline(TnVarlinkConn *conn)
{
	unsigned seconds = conn->server->config.hello_seconds;

	conn->deadline = g_get_monotonic_time() + (gint64)seconds * G_USEC_PER_SEC;
}

void tn_varlink_conn_close_soon(TnVarlinkConn *conn)
{
	conn->closing = TRUE;
	restart_deadline(conn);
	tn_varlink_conn_update(conn);
}

TnVarlinkConn *tn_varlink_conn_new(TnVarlinkServer *server, int fd, const TnPeer *peer)
{
	TnVarlinkConn *conn = (TnVarlinkConn *)g_source_new(&conn_funcs, sizeof(*conn));

	conn->server = server;
	conn->fd = fd;
	conn->peer = *peer;
	conn->ns_fd = -1;
	conn->message = -1;
	conn->input = g_byte_array_new();
	g_queue_init(&conn->output);
	restart_deadline(conn);
	conn->tag = g_source_add_unix_fd(&conn->source, fd, G_IO_IN);
	g_source_set_name(&conn->source, "varlink connection");
	g_queue_push_tail(&server->conns, conn);
	g_source_attach(&conn->source, server->context);
	tn_varlink_conn_update(conn);
	return conn;
}

void tn_varlink_conn_drop(TnVarlinkConn *conn)
{
	TnVarlinkServer *server = conn->server;

	g_queue_remove(&server->conns, conn);
	if (conn->call != NULL)
		tn_varlink_call_cancel(conn->call);
	g_clear_pointer(&conn->call, tn_varlink_call_unref);
	g_source_remove_unix_fd(&conn->source, conn->tag);
	tn_close(&conn->fd);
	discard(&conn->ns_fd, conn);
	conn->output_bytes = 0;
	g_source_destroy(&conn->source);
	notify_sent(conn);
	g_source_unref(&conn->source);
}

int tn_varlink_conn_send_text(TnVarlinkConn *conn, char *text, gsize length, int fd_taken)
{
	TN_AUTOFD fd = fd_taken;
	gsize size = length + 1;
	Output *output;

	if (size > TN_VARLINK_MESSAGE_MAX + 1) {
		g_free(text);
		return -EMSGSIZE;
	}
	output = g_new(Output, 1);
	*output = (Output){.bytes = g_bytes_new_take(text, size), .fd = tn_steal_fd(&fd)};
	g_queue_push_tail(&conn->output, output);
	conn->output_bytes += size;
	return 0;
}

int tn_varlink_conn_send(TnVarlinkConn *conn, JsonObject *object, int fd)
{
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
	char *text;

	json_node_take_object(node, object);
	text = json_to_string(node, FALSE);
	return tn_varlink_conn_send_text(conn, text, strlen(text), fd);
}
