/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-peer.h"

#include "macros.h"
#include "scm.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define PATIENCE_MS 10000

void test_peer_init(TestPeer *peer, int fd, GMainContext *context)
{
	peer->fd = fd;
	peer->context = context;
	peer->input = g_string_new(NULL);
	peer->received = -1;
}

void test_peer_clear(TestPeer *peer)
{
	tn_close(&peer->fd);
	tn_close(&peer->received);
	g_string_free(peer->input, TRUE);
}

static void turn(TestPeer *peer)
{
	if (peer->context != NULL)
		while (g_main_context_iteration(peer->context, FALSE))
			;
}

void test_peer_send_bytes(TestPeer *peer, const char *bytes, size_t size, int fd)
{
	size_t sent = 0;

	while (sent < size) {
		/* In pieces that fit the socket, so that one thread can be both ends. */
		size_t piece = MIN(size - sent, 32768);
		ssize_t n = tn_scm_send(peer->fd, bytes + sent, piece, &fd, fd >= 0 ? 1 : 0);

		/* The server may have closed; what it said is still to be read. */
		if (n == -EPIPE || n == -ECONNRESET)
			break;
		assert_true(n > 0);
		sent += (size_t)n;
		fd = -1;
		turn(peer);
	}
	turn(peer);
}

void test_peer_send(TestPeer *peer, const char *text, int fd)
{
	test_peer_send_bytes(peer, text, strlen(text) + 1, fd);
}

static JsonObject *take_message(TestPeer *peer)
{
	const char *nul = memchr(peer->input->str, '\0', peer->input->len);
	g_autoptr(JsonParser) parser = NULL;

	if (nul == NULL)
		return NULL;
	parser = json_parser_new();
	assert_true(json_parser_load_from_data(parser, peer->input->str, -1, NULL));
	g_string_erase(peer->input, 0, nul - peer->input->str + 1);
	return json_node_dup_object(json_parser_get_root(parser));
}

/* Bytes read, 0 at the end, -EAGAIN when nothing came in time. */
static ssize_t read_some(TestPeer *peer, int timeout_ms)
{
	gint64 until = g_get_monotonic_time() + (gint64)timeout_ms * 1000;
	char chunk[8192];

	do {
		struct pollfd p = {.fd = peer->fd, .events = POLLIN};
		int fds[TN_SCM_MAX_FDS];
		size_t n_fds;
		ssize_t n;

		turn(peer);
		if (poll(&p, 1, 1) <= 0)
			continue;
		n = tn_scm_recv(peer->fd, chunk, sizeof(chunk), fds, &n_fds);
		for (size_t i = 0; i < n_fds; i++) {
			tn_close(&peer->received);
			peer->received = fds[i];
		}
		if (n > 0)
			g_string_append_len(peer->input, chunk, n);
		if (n >= 0)
			return n;
		assert_int_equal(n, -ECONNRESET);
		return 0;
	} while (g_get_monotonic_time() < until);
	return -EAGAIN;
}

JsonObject *test_peer_receive(TestPeer *peer)
{
	for (;;) {
		JsonObject *message = take_message(peer);
		ssize_t n;

		if (message != NULL)
			return message;
		n = read_some(peer, PATIENCE_MS);
		if (n == -EAGAIN)
			fail_msg("no message came");
		if (n == 0)
			return NULL;
	}
}

void test_peer_expect_silence(TestPeer *peer)
{
	assert_int_equal(read_some(peer, 50), -EAGAIN);
	assert_int_equal(peer->input->len, 0);
}

void test_peer_expect_end(TestPeer *peer)
{
	assert_null(test_peer_receive(peer));
}

static JsonObject *parameters_of(JsonObject *message)
{
	JsonObject *parameters = json_object_get_object_member(message, "parameters");

	assert_non_null(parameters);
	json_object_ref(parameters);
	json_object_unref(message);
	return parameters;
}

JsonObject *test_peer_expect_error(TestPeer *peer, const char *name)
{
	JsonObject *message = test_peer_receive(peer);

	assert_non_null(message);
	assert_true(json_object_has_member(message, "error"));
	assert_string_equal(json_object_get_string_member(message, "error"), name);
	return parameters_of(message);
}

JsonObject *test_peer_expect_reply(TestPeer *peer, bool continues)
{
	JsonObject *message = test_peer_receive(peer);

	assert_non_null(message);
	if (json_object_has_member(message, "error"))
		fail_msg("error %s", json_object_get_string_member(message, "error"));
	assert_int_equal(json_object_get_boolean_member_with_default(message, "continues", FALSE),
			 continues);
	return parameters_of(message);
}
