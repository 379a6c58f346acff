/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Varlink server on socket pairs, client and server on one thread. */
#include "varlink-peer.h"
#include "varlink.h"

#include "macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PEERS_MAX 20

typedef struct Fixture {
	GMainContext *context;
	TnVarlinkServer *server;
	TestPeer peers[PEERS_MAX];
	unsigned n_peers;
	int admit_result;
	bool came_with_fd;
	unsigned n_calls;
	TnVarlinkCall *later; /* one that waits for its answer */
	unsigned n_produced, n_wanted;
	bool stream_ended, paused;
	unsigned n_sent;
	unsigned fds_before;
} Fixture;

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* What clients sent may be closed by a thread of its own: see stranger.h. */
static void expect_fds(unsigned wanted)
{
	for (int i = 0; i < 1000 && count_fds() != wanted; i++)
		usleep(5000);
	assert_int_equal(count_fds(), wanted);
}

/* Stands in for peer.c: on a socket pair both ends are ours. */
int tn_peer_get(int sock, TnPeer *ret)
{
	*ret = (TnPeer){.uid = 1000, .gid = 1000, .pid = 1};
	return 0;
}

static int admit(int sock, const TnPeer *peer, int ns_fd, char *why, size_t why_size, void *data)
{
	Fixture *f = data;

	f->came_with_fd = ns_fd >= 0;
	if (f->admit_result < 0)
		g_strlcpy(why, "said by the test", why_size);
	return f->admit_result;
}

static void echo(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	Fixture *f = data;
	const char *text = NULL;
	gint64 number = 0;
	gboolean truth = FALSE;
	g_autofree const char **words = NULL;
	const TnVarlinkParam params[] = {
		{"text", TN_VARLINK_STRING, TRUE, &text},
		{"number", TN_VARLINK_INT, FALSE, &number},
		{"truth", TN_VARLINK_BOOL, FALSE, &truth},
		{"words", TN_VARLINK_STRINGS, FALSE, &words},
	};
	JsonObject *reply;

	f->n_calls++;
	if (!tn_varlink_params(call, parameters, params, G_N_ELEMENTS(params)))
		return;
	reply = json_object_new();
	json_object_set_string_member(reply, "text", text);
	json_object_set_int_member(reply, "number", number);
	json_object_set_boolean_member(reply, "truth", truth);
	json_object_set_int_member(reply, "n_words",
				   words != NULL ? (gint64)g_strv_length((char **)words) : -1);
	tn_varlink_reply(call, reply);
}

static void refuse(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	JsonObject *extra = json_object_new();

	json_object_set_int_member(extra, "count", 3);
	tn_varlink_fail_with(call, "Refused", "thing", "because", "do that", extra);
}

static void later(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	((Fixture *)data)->later = tn_varlink_call_ref(call);
}

static gboolean produce(TnVarlinkCall *call, void *data)
{
	Fixture *f = data;
	JsonObject *reply;
	char *filler;

	if (f->paused)
		return FALSE;
	reply = json_object_new();
	filler = g_strnfill(20000, 'x');
	json_object_set_int_member(reply, "n", f->n_produced++);
	json_object_set_string_member(reply, "filler", filler);
	g_free(filler);
	if (f->n_produced < f->n_wanted)
		tn_varlink_reply_continues(call, reply);
	else
		tn_varlink_reply(call, reply);
	return TRUE;
}

static void stream_ended(void *data)
{
	((Fixture *)data)->stream_ended = true;
}

static void stream(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	Fixture *f = data;

	if (f->paused)
		f->later = tn_varlink_call_ref(call);
	tn_varlink_call_stream(call, produce, data, stream_ended);
}

static void huge(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	JsonObject *reply = json_object_new();
	g_autofree char *text = g_strnfill(TN_VARLINK_MESSAGE_MAX, 'x');

	json_object_set_string_member(reply, "text", text);
	tn_varlink_reply(call, reply);
}

static void count_sent(void *data)
{
	((Fixture *)data)->n_sent++;
}

static void tell_sent(TnVarlinkCall *call, JsonObject *parameters, void *data)
{
	tn_varlink_call_when_sent(call, count_sent, data);
	tn_varlink_reply(call, NULL);
}

static const TnVarlinkMethod methods[] = {
	{"Echo", echo},     {"Refuse", refuse}, {"Later", later},
	{"Stream", stream}, {"Huge", huge},     {"TellSent", tell_sent},
};

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);
	TnVarlinkConfig config = {
		.interface = "org.example.Test",
		.description = "interface org.example.Test\n",
		.methods = methods,
		.n_methods = G_N_ELEMENTS(methods),
		.data = f,
		.admit = admit,
		.hello_seconds = 1,
	};

	f->context = g_main_context_new();
	/* The first iteration opens the context's own descriptor. */
	g_main_context_iteration(f->context, FALSE);
	f->fds_before = count_fds();
	f->server = tn_varlink_server_new(&config, f->context);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	for (unsigned i = 0; i < f->n_peers; i++)
		test_peer_clear(&f->peers[i]);
	tn_varlink_server_free(f->server);
	tn_varlink_call_unref(f->later);
	expect_fds(f->fds_before);
	g_main_context_unref(f->context);
	g_free(f);
	return 0;
}

/* A connected client; *ret_status: what the server said to it. */
static TestPeer *connect_peer(Fixture *f, int *ret_status)
{
	TestPeer *peer = &f->peers[f->n_peers++];
	int pair[2], r;

	assert_true(f->n_peers <= PEERS_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	test_peer_init(peer, pair[0], f->context);
	r = tn_varlink_server_add(f->server, pair[1]);
	if (ret_status != NULL)
		*ret_status = r;
	else
		assert_int_equal(r, 0);
	return peer;
}

#define CALL_ECHO "{\"method\":\"org.example.Test.Echo\",\"parameters\":{\"text\":\"hi\"}}"

static void expect_text(TestPeer *peer, const char *text)
{
	JsonObject *reply = test_peer_expect_reply(peer, false);

	assert_string_equal(json_object_get_string_member(reply, "text"), text);
	json_object_unref(reply);
}

static void expect_error(TestPeer *peer, const char *name)
{
	json_object_unref(test_peer_expect_error(peer, name));
}

static void test_answers_calls_in_order(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);
	static const char two[] =
		CALL_ECHO "\0"
			  "{\"method\":\"org.example.Test.Echo\",\"parameters\":{\"text\":\"ho\"}}";

	test_peer_send_bytes(peer, two, sizeof(two), -1);
	expect_text(peer, "hi");
	expect_text(peer, "ho");
}

static void test_takes_a_message_in_single_bytes(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);

	for (size_t i = 0; i < sizeof(CALL_ECHO); i++)
		test_peer_send_bytes(peer, &CALL_ECHO[i], 1, -1);
	expect_text(peer, "hi");
}

static void test_first_message_proves_the_peer(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);
	TN_AUTOFD ns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	test_peer_send(peer, CALL_ECHO, ns);
	expect_text(peer, "hi");
	assert_true(f->came_with_fd);
}

static void test_turns_a_wrong_peer_away_unparsed(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);
	JsonObject *error;

	f->admit_result = -EPERM;
	test_peer_send(peer, "no json at all", -1);
	error = test_peer_expect_error(peer, "org.example.Test.PermissionDenied");
	assert_false(f->came_with_fd);
	assert_string_equal(json_object_get_string_member(error, "reason"), "said by the test");
	assert_true(json_object_has_member(error, "hint"));
	json_object_unref(error);
	test_peer_expect_end(peer);
	assert_int_equal(f->n_calls, 0);
}

static void test_keeps_only_one_descriptor(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);
	unsigned before = count_fds();

	test_peer_send(peer, CALL_ECHO, STDIN_FILENO);
	expect_text(peer, "hi");
	for (int i = 0; i < 10; i++) {
		test_peer_send(peer, CALL_ECHO, STDIN_FILENO);
		expect_text(peer, "hi");
	}
	expect_fds(before);
}

static void check_refused(Fixture *f, const char *bytes, size_t size)
{
	TestPeer *peer = connect_peer(f, NULL);

	test_peer_send_bytes(peer, bytes, size, -1);
	expect_error(peer, "org.example.Test.InvalidMessage");
	test_peer_expect_end(peer);
	assert_int_equal(f->n_calls, 0);
}

static void test_refuses_oversized_messages(void **state)
{
	g_autofree char *bytes = g_strnfill(TN_VARLINK_MESSAGE_MAX + 2, ' ');

	bytes[0] = '{';
	/* One byte too long with its NUL, and without an end in sight. */
	bytes[TN_VARLINK_MESSAGE_MAX] = '}';
	check_refused(*state, bytes, TN_VARLINK_MESSAGE_MAX + 2);
	check_refused(*state, bytes, TN_VARLINK_MESSAGE_MAX + 1);
}

static void test_takes_the_largest_message(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);
	g_autofree char *bytes = g_strnfill(TN_VARLINK_MESSAGE_MAX, ' ');

	memcpy(bytes, CALL_ECHO, strlen(CALL_ECHO));
	test_peer_send(peer, bytes, -1);
	expect_text(peer, "hi");
}

static void test_refuses_bad_messages(void **state)
{
	g_autofree char *deep =
		g_strdup_printf("{\"method\":\"org.example.Test.Echo\",\"parameters\":%s",
				"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
	static const char *const texts[] = {
		"",
		"x",
		"[]",
		"{}",
		"{\"method\":1}",
		"{\"method\":\"\",\"more\":1}",
		"{\"method\":\"a.B\",\"parameters\":[]}",
		"{\"method\":\"a.B\",\"surplus\":1}",
		"{\"method\":\"a.B\",\"oneway\":\"yes\"}",
		"{\"method\":\"\xff\"}",
		"{\"method\":\"\\ud800\"}",
		"/*\"*/{\"method\":\"a.B\"}",
	};

	check_refused(*state, deep, strlen(deep) + 1);
	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		check_refused(*state, texts[i], strlen(texts[i]) + 1);
}

static void test_names_unknown_methods(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);
	JsonObject *error;

	test_peer_send(peer, "{\"method\":\"org.example.Test.Nothing\"}", -1);
	error = test_peer_expect_error(peer, "org.varlink.service.MethodNotFound");
	assert_string_equal(json_object_get_string_member(error, "method"),
			    "org.example.Test.Nothing");
	json_object_unref(error);
	test_peer_send(peer, "{\"method\":\"org.example.Other.Echo\"}", -1);
	error = test_peer_expect_error(peer, "org.varlink.service.InterfaceNotFound");
	assert_string_equal(json_object_get_string_member(error, "interface"), "org.example.Other");
	json_object_unref(error);
	test_peer_send(peer, "{\"method\":\"nodots\"}", -1);
	expect_error(peer, "org.varlink.service.InterfaceNotFound");
	test_peer_send(peer, "{\"method\":\"\"}", -1);
	expect_error(peer, "org.varlink.service.InterfaceNotFound");
	test_peer_send(peer, "{\"method\":\"org.varlink.service.Nothing\"}", -1);
	expect_error(peer, "org.varlink.service.MethodNotFound");
	/* None of them ends the connection. */
	test_peer_send(peer, CALL_ECHO, -1);
	expect_text(peer, "hi");
}

static void test_names_wrong_parameters(void **state)
{
	static const struct {
		const char *parameters, *wrong;
	} cases[] = {
		{"{}", "text"},
		{"{\"text\":null}", "text"},
		{"{\"text\":1}", "text"},
		{"{\"text\":{}}", "text"},
		{"{\"text\":\"a\",\"number\":\"1\"}", "number"},
		{"{\"text\":\"a\",\"number\":1.5}", "number"},
		{"{\"text\":\"a\",\"number\":true}", "number"},
		{"{\"text\":\"a\",\"truth\":1}", "truth"},
		{"{\"text\":\"a\",\"words\":\"w\"}", "words"},
		{"{\"text\":\"a\",\"words\":{}}", "words"},
		{"{\"text\":\"a\",\"words\":[\"w\",1]}", "words"},
		{"{\"text\":\"a\",\"words\":[null]}", "words"},
		{"{\"text\":\"a\",\"words\":[\"w\"],\"number\":[]}", "number"},
		{"{\"text\":\"a\",\"words\":[\"w\"],\"surplus\":1}", "surplus"},
	};
	TestPeer *peer = connect_peer(*state, NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *call =
			g_strdup_printf("{\"method\":\"org.example.Test.Echo\",\"parameters\":%s}",
					cases[i].parameters);
		JsonObject *error;

		test_peer_send(peer, call, -1);
		error = test_peer_expect_error(peer, "org.varlink.service.InvalidParameter");
		assert_string_equal(json_object_get_string_member(error, "parameter"),
				    cases[i].wrong);
		json_object_unref(error);
	}
}

static void test_reads_every_type(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);
	JsonObject *reply;

	test_peer_send(peer,
		       "{\"method\":\"org.example.Test.Echo\",\"parameters\":{\"text\":\"\\u00e9\","
		       "\"number\":-9223372036854775808,\"truth\":true,\"words\":[\"a\",\"b\"]}}",
		       -1);
	reply = test_peer_expect_reply(peer, false);
	assert_string_equal(json_object_get_string_member(reply, "text"), "\u00e9");
	assert_int_equal(json_object_get_int_member(reply, "number"), INT64_MIN);
	assert_true(json_object_get_boolean_member(reply, "truth"));
	assert_int_equal(json_object_get_int_member(reply, "n_words"), 2);
	json_object_unref(reply);
}

static void test_errors_have_their_fields(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);
	JsonObject *error;

	test_peer_send(peer, "{\"method\":\"org.example.Test.Refuse\"}", -1);
	error = test_peer_expect_error(peer, "org.example.Test.Refused");
	assert_string_equal(json_object_get_string_member(error, "name"), "thing");
	assert_string_equal(json_object_get_string_member(error, "reason"), "because");
	assert_string_equal(json_object_get_string_member(error, "hint"), "do that");
	assert_int_equal(json_object_get_int_member(error, "count"), 3);
	json_object_unref(error);
}

static void test_describes_itself(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);
	JsonObject *reply;

	test_peer_send(peer, "{\"method\":\"org.varlink.service.GetInfo\"}", -1);
	reply = test_peer_expect_reply(peer, false);
	assert_int_equal(json_array_get_length(json_object_get_array_member(reply, "interfaces")),
			 2);
	assert_true(json_object_has_member(reply, "vendor"));
	json_object_unref(reply);
	test_peer_send(
		peer,
		"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{"
		"\"interface\":\"org.example.Test\"}}",
		-1);
	reply = test_peer_expect_reply(peer, false);
	assert_string_equal(json_object_get_string_member(reply, "description"),
			    "interface org.example.Test\n");
	json_object_unref(reply);
	test_peer_send(
		peer,
		"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{"
		"\"interface\":\"org.example.Other\"}}",
		-1);
	expect_error(peer, "org.varlink.service.InterfaceNotFound");
}

static void test_turns_the_17th_connection_away(void **state)
{
	Fixture *f = *state;
	TestPeer *surplus;
	int r;

	for (int i = 0; i < 16; i++)
		connect_peer(f, NULL);
	surplus = connect_peer(f, &r);
	assert_int_equal(r, -EUSERS);
	test_peer_send(surplus, CALL_ECHO, -1);
	expect_error(surplus, "org.example.Test.TooManyConnections");
	test_peer_expect_end(surplus);
	/* One that ends makes room. */
	tn_close(&f->peers[0].fd);
	while (g_main_context_iteration(f->context, FALSE))
		;
	assert_int_equal(tn_varlink_server_connections(f->server), 15);
	test_peer_send(connect_peer(f, NULL), CALL_ECHO, -1);
	expect_text(&f->peers[17], "hi");
}

static void test_oneway_calls_get_no_answer(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);

	test_peer_send(peer,
		       "{\"method\":\"org.example.Test.Echo\",\"oneway\":true,\"parameters\":{"
		       "\"text\":\"x\"}}",
		       -1);
	test_peer_send(peer, "{\"method\":\"org.example.Test.Nothing\",\"oneway\":true}", -1);
	test_peer_expect_silence(peer);
	assert_int_equal(f->n_calls, 1);
	test_peer_send(peer, CALL_ECHO, -1);
	expect_text(peer, "hi");
}

static void test_does_what_was_sent_before_the_end(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);
	static const char two[] = "{\"method\":\"org.example.Test.Echo\",\"oneway\":true,"
				  "\"parameters\":{\"text\":\"x\"}}\0"
				  "{\"method\":\"org.example.Test.Echo\",\"oneway\":true,"
				  "\"parameters\":{\"text\":\"x\"}}";

	assert_int_equal(send(peer->fd, two, sizeof(two), 0), sizeof(two));
	tn_close(&peer->fd);
	while (g_main_context_iteration(f->context, FALSE))
		;
	assert_int_equal(f->n_calls, 2);
	assert_int_equal(tn_varlink_server_connections(f->server), 0);
}

static void test_answers_later_and_in_order(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);

	test_peer_send(peer, "{\"method\":\"org.example.Test.Later\"}", -1);
	test_peer_send(peer, CALL_ECHO, -1);
	test_peer_expect_silence(peer);
	assert_int_equal(f->n_calls, 0);
	tn_varlink_fail(f->later, "Refused", "", "", "");
	expect_error(peer, "org.example.Test.Refused");
	expect_text(peer, "hi");
}

static void test_answers_to_nobody_go_nowhere(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);

	test_peer_send(peer, "{\"method\":\"org.example.Test.Later\"}", -1);
	assert_non_null(f->later);
	tn_close(&peer->fd);
	while (g_main_context_iteration(f->context, FALSE))
		;
	assert_int_equal(tn_varlink_server_connections(f->server), 0);
	tn_varlink_reply(f->later, json_object_new());
	tn_varlink_fail(f->later, "Refused", "", "", "");
}

#define CALL_STREAM "{\"method\":\"org.example.Test.Stream\",\"more\":true}"

static void test_streams_no_faster_than_read(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);
	int small = 4096;
	unsigned before;

	setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	f->n_wanted = 200;
	test_peer_send(peer, CALL_STREAM, -1);
	test_peer_send(peer, CALL_ECHO, -1);
	/* What the socket takes and a short queue, not four megabytes. */
	before = f->n_produced;
	assert_in_range(before, 1, 60);
	while (g_main_context_iteration(f->context, FALSE))
		;
	assert_int_equal(f->n_produced, before);
	for (unsigned i = 0; i < f->n_wanted; i++) {
		JsonObject *reply = test_peer_expect_reply(peer, i + 1 < f->n_wanted);

		assert_int_equal(json_object_get_int_member(reply, "n"), i);
		json_object_unref(reply);
	}
	assert_true(f->stream_ended);
	expect_text(peer, "hi");
}

static void test_streams_wait_to_be_woken(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);

	f->paused = true;
	f->n_wanted = 1;
	test_peer_send(peer, CALL_STREAM, -1);
	test_peer_expect_silence(peer);
	f->paused = false;
	test_peer_expect_silence(peer);
	tn_varlink_call_wake(f->later);
	json_object_unref(test_peer_expect_reply(peer, false));
	assert_true(f->stream_ended);
}

static void test_streams_end_with_their_client(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);

	f->n_wanted = 1000;
	test_peer_send(peer, CALL_STREAM, -1);
	assert_false(f->stream_ended);
	tn_close(&peer->fd);
	while (g_main_context_iteration(f->context, FALSE))
		;
	assert_true(f->stream_ended);
	assert_int_equal(tn_varlink_server_connections(f->server), 0);
}

static void test_a_client_that_does_not_read_is_not_read(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);
	g_autofree char *filler = g_strnfill(30000, 'x');
	g_autofree char *call = g_strdup_printf(
		"{\"method\":\"org.example.Test.Echo\",\"parameters\":{\"text\":\"%s\"}}", filler);
	unsigned sent = 0;

	/* Until the sockets are full in both directions. */
	while (send(peer->fd, call, strlen(call) + 1, MSG_DONTWAIT) == (ssize_t)strlen(call) + 1) {
		sent++;
		while (g_main_context_iteration(f->context, FALSE))
			;
		assert_in_range(sent, 1, 100);
	}
	assert_in_range(f->n_calls, 1, sent);
	/* Others are served meanwhile. */
	test_peer_send(connect_peer(f, NULL), CALL_ECHO, -1);
	expect_text(&f->peers[1], "hi");
}

static void test_an_answer_too_long_becomes_an_error(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);

	test_peer_send(peer, "{\"method\":\"org.example.Test.Huge\"}", -1);
	expect_error(peer, "org.example.Test.Failed");
	test_peer_send(peer, CALL_ECHO, -1);
	expect_text(peer, "hi");
}

static void test_upgrade_is_refused(void **state)
{
	TestPeer *peer = connect_peer(*state, NULL);

	test_peer_send(peer, "{\"method\":\"org.example.Test.Echo\",\"upgrade\":true}", -1);
	expect_error(peer, "org.varlink.service.InvalidParameter");
}

static void test_tells_when_a_reply_has_gone_out(void **state)
{
	Fixture *f = *state;
	TestPeer *peer = connect_peer(f, NULL);

	test_peer_send(peer, "{\"method\":\"org.example.Test.TellSent\"}", -1);
	json_object_unref(test_peer_expect_reply(peer, false));
	assert_int_equal(f->n_sent, 1);
	test_peer_send(peer, "{\"method\":\"org.example.Test.TellSent\",\"oneway\":true}", -1);
	assert_int_equal(f->n_sent, 2);
}

static void test_closes_silent_connections(void **state)
{
	Fixture *f = *state;
	TestPeer *silent = connect_peer(f, NULL);
	TestPeer *talking = connect_peer(f, NULL);

	test_peer_send(talking, CALL_ECHO, -1);
	expect_text(talking, "hi");
	test_peer_expect_end(silent);
	test_peer_send(talking, CALL_ECHO, -1);
	expect_text(talking, "hi");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers_calls_in_order),
		TEST(test_takes_a_message_in_single_bytes),
		TEST(test_first_message_proves_the_peer),
		TEST(test_turns_a_wrong_peer_away_unparsed),
		TEST(test_keeps_only_one_descriptor),
		TEST(test_refuses_oversized_messages),
		TEST(test_takes_the_largest_message),
		TEST(test_refuses_bad_messages),
		TEST(test_names_unknown_methods),
		TEST(test_names_wrong_parameters),
		TEST(test_reads_every_type),
		TEST(test_errors_have_their_fields),
		TEST(test_describes_itself),
		TEST(test_turns_the_17th_connection_away),
		TEST(test_oneway_calls_get_no_answer),
		TEST(test_does_what_was_sent_before_the_end),
		TEST(test_answers_later_and_in_order),
		TEST(test_answers_to_nobody_go_nowhere),
		TEST(test_streams_no_faster_than_read),
		TEST(test_streams_wait_to_be_woken),
		TEST(test_streams_end_with_their_client),
		TEST(test_a_client_that_does_not_read_is_not_read),
		TEST(test_an_answer_too_long_becomes_an_error),
		TEST(test_upgrade_is_refused),
		TEST(test_tells_when_a_reply_has_gone_out),
		TEST(test_closes_silent_connections),
	};

	g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING | G_LOG_FATAL_MASK);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
