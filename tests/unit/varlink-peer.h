/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Varlink client for tests that can also misbehave. Between two looks at the socket it
 * turns a GMainContext, so that server and client share one thread; with context NULL the
 * server has a thread of its own.
 */
#pragma once

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>

typedef struct TestPeer {
	int fd;
	GMainContext *context; /* borrowed */
	GString *input;
	int received; /* the last descriptor that came along, or -1 */
} TestPeer;

/* Takes fd. */
void test_peer_init(TestPeer *peer, int fd, GMainContext *context);
void test_peer_clear(TestPeer *peer);

/* Sends bytes as they are, with one descriptor unless it is -1. */
void test_peer_send_bytes(TestPeer *peer, const char *bytes, size_t size, int fd);
/* Sends a message with its NUL. */
void test_peer_send(TestPeer *peer, const char *text, int fd);

/* The next message; NULL at the end of file, fails the test after some seconds. */
JsonObject *test_peer_receive(TestPeer *peer);
/* Nothing comes within a few turns of the loop. */
void test_peer_expect_silence(TestPeer *peer);
/* The connection ends without a further message. */
void test_peer_expect_end(TestPeer *peer);

/* Receives an error of that name (with its interface). Its parameters. */
JsonObject *test_peer_expect_error(TestPeer *peer, const char *name);
/* Receives a reply; its parameters. */
JsonObject *test_peer_expect_reply(TestPeer *peer, bool continues);
