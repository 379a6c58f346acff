/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control interface as it runs in the daemon: its threads, a real socket, the real
 * check of who calls; behind it nests that are numbers only.
 */
#include "control-private.h"
#include "fake-nests.h"
#include "varlink-peer.h"

#include "events.h"
#include "macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define OTHER_UID 4242
#define METHOD(name) "{\"method\":\"org.tmpnest.Control." name "\""
#define ERROR(name) "org.tmpnest.Control." name

/* The ones that a caller may see, as the command line promises them. */
static const char *const promised[] = {
	"name",         "owner_uid",        "state",       "ephemeral",   "attachments",
	"store",        "bytes_used",       "bytes_limit", "inodes_used", "inodes_limit",
	"denied_total", "quota_hits_total", "created",     "last_used",
};

typedef struct Fixture {
	TnPaths paths;
	TnWorkerEnv env;
	TnControl *control;
	int listener, ns;
	struct sockaddr_un address;
	socklen_t address_size;
	TestPeer peer;
	unsigned fds_before;
} Fixture;

static gint n_stops;

void tn_worker_stop(TnWorkerStop *stop)
{
	g_atomic_int_inc(&n_stops);
}

/* Only a root daemon with pidfds asks the keeper, which these are not. */
int tn_keeper_peer_userns(TnKeeperLink *link, int pidfd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	fail_msg("the keeper was asked");
	return -EIO;
}

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

/* An abstract address of the kernel's choice: nothing to clean up. */
static void listen_somewhere(Fixture *f)
{
	f->address = (struct sockaddr_un){.sun_family = AF_UNIX};
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(f->listener >= 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&f->address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(f->listener, 64), 0);
	f->address_size = sizeof(f->address);
	assert_int_equal(getsockname(f->listener, (struct sockaddr *)&f->address, &f->address_size),
			 0);
}

static void start(Fixture *f)
{
	assert_int_equal(tn_control_new(&f->control, &f->env, NULL, NULL), 0);
}

static void connect_peer(Fixture *f, TestPeer *peer)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&f->address, f->address_size), 0);
	test_peer_init(peer, fd, NULL);
}

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);
	struct stat st;

	fake_nests_reset();
	g_atomic_int_set(&n_stops, 0);
	f->fds_before = count_fds();
	assert_int_equal(stat("/proc/self/ns/user", &st), 0);
	f->ns = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	g_strlcpy(f->paths.runtime_dir, "/run/test", sizeof(f->paths.runtime_dir));
	g_strlcpy(f->paths.store_dir, "/var/lib/test", sizeof(f->paths.store_dir));
	listen_somewhere(f);
	f->env = (TnWorkerEnv){
		.paths = &f->paths,
		.scope = TN_SCOPE_USER,
		.uid = geteuid(),
		.gid = getegid(),
		.userns_dev = st.st_dev,
		.userns_ino = st.st_ino,
		.instance_id = 0x1234,
		.keeper_pid = 77,
		.control_listener = f->listener,
	};
	start(f);
	connect_peer(f, &f->peer);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	test_peer_clear(&f->peer);
	tn_control_free(f->control);
	tn_close(&f->listener);
	tn_close(&f->ns);
	assert_int_equal(fake_nests_refs(), 0);
	expect_fds(f->fds_before);
	g_free(f);
	return 0;
}

static JsonObject *call(Fixture *f, const char *text)
{
	test_peer_send(&f->peer, text, f->ns);
	return test_peer_expect_reply(&f->peer, false);
}

static JsonObject *call_wrongly(Fixture *f, const char *text, const char *error)
{
	test_peer_send(&f->peer, text, f->ns);
	return test_peer_expect_error(&f->peer, error);
}

static void expect_error(Fixture *f, const char *text, const char *error)
{
	JsonObject *fields = call_wrongly(f, text, error);

	assert_true(json_object_has_member(fields, "name"));
	assert_true(json_object_get_string_member(fields, "reason")[0] != '\0');
	assert_true(json_object_has_member(fields, "hint"));
	json_object_unref(fields);
}

/* --- who may call --- */

static void expect_denied(Fixture *f, int fd)
{
	TestPeer peer;

	connect_peer(f, &peer);
	test_peer_send(&peer, METHOD("ListNests") "}", fd);
	json_object_unref(test_peer_expect_error(&peer, ERROR("PermissionDenied")));
	test_peer_expect_end(&peer);
	test_peer_clear(&peer);
}

static void test_wants_the_callers_namespace(void **state)
{
	Fixture *f = *state;
	TN_AUTOFD other = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	TN_AUTOFD file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	expect_denied(f, -1);
	expect_denied(f, other);
	expect_denied(f, file);
	json_object_unref(call(f, METHOD("ListNests") "}"));
}

static void test_user_daemon_serves_one_uid(void **state)
{
	Fixture *f = *state;

	tn_control_free(f->control);
	f->env.uid = OTHER_UID;
	start(f);
	expect_denied(f, f->ns);
}

static void test_other_namespace_than_the_daemons(void **state)
{
	Fixture *f = *state;

	tn_control_free(f->control);
	f->env.userns_ino++;
	start(f);
	expect_denied(f, f->ns);
}

/* --- listings --- */

static void test_ls_has_all_promised_fields(void **state)
{
	Fixture *f = *state;
	JsonObject *reply, *nest;
	JsonArray *nests;

	fake_nests_add(geteuid(), "one");
	reply = call(f, METHOD("ListNests") "}");
	nests = json_object_get_array_member(reply, "nests");
	assert_int_equal(json_array_get_length(nests), 1);
	nest = json_array_get_object_element(nests, 0);
	for (size_t i = 0; i < G_N_ELEMENTS(promised); i++) {
		if (!json_object_has_member(nest, promised[i]))
			fail_msg("no %s", promised[i]);
	}
	assert_string_equal(json_object_get_string_member(nest, "name"), "one");
	assert_string_equal(json_object_get_string_member(nest, "state"), "idle");
	assert_string_equal(json_object_get_string_member(nest, "store"), "dir");
	assert_string_equal(json_object_get_string_member(nest, "created"),
			    "2023-11-14T22:13:20.123Z");
	assert_int_equal(json_object_get_int_member(nest, "bytes_limit"), 1 << 30);
	assert_true(json_object_get_null_member(nest, "ttl"));
	json_object_unref(reply);
}

static void test_ls_names_every_state(void **state)
{
	static const char *const states[] = {"active", "idle", "frozen", "evicting", "detached"};
	Fixture *f = *state;
	JsonObject *reply;
	JsonArray *nests;

	for (unsigned i = 0; i < G_N_ELEMENTS(states); i++) {
		g_autofree char *name = g_strdup_printf("n%u", i);
		uint64_t id = fake_nests_add(geteuid(), name);
		TnNestInfo info;

		fake_nests_get(id, &info);
		info.state = (TnNestState)i;
		fake_nests_set(id, &info);
	}
	reply = call(f, METHOD("ListNests") "}");
	nests = json_object_get_array_member(reply, "nests");
	for (unsigned i = 0; i < G_N_ELEMENTS(states); i++)
		assert_string_equal(json_object_get_string_member(
					    json_array_get_object_element(nests, i), "state"),
				    states[i]);
	json_object_unref(reply);
}

static void add_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		g_autofree char *name = g_strdup_printf("%064u", i);

		fake_nests_add(geteuid(), name);
	}
}

static void test_long_lists_come_in_parts(void **state)
{
	Fixture *f = *state;
	unsigned n = 0;
	bool more = true;

	add_many(300);
	expect_error(f, METHOD("ListNests") "}", ERROR("ExpectedMore"));
	test_peer_send(&f->peer, METHOD("ListNests") ",\"more\":true}", -1);
	while (more) {
		JsonObject *message = test_peer_receive(&f->peer);
		JsonArray *nests = json_object_get_array_member(
			json_object_get_object_member(message, "parameters"), "nests");

		n += json_array_get_length(nests);
		more = json_object_get_boolean_member_with_default(message, "continues", FALSE);
		json_object_unref(message);
	}
	assert_int_equal(n, 300);
}

/* --- one nest --- */

static void test_show_has_rules_and_counts(void **state)
{
	Fixture *f = *state;
	JsonObject *reply, *rule;
	JsonArray *rules;

	fake_nests_add(geteuid(), "one");
	fake_nests_rules(1, "/tmp/bad\xff");
	reply = call(f, METHOD("GetNest") ",\"parameters\":{\"name\":\"one\"}}");
	assert_int_equal(json_object_get_int_member(
				 json_object_get_object_member(reply, "operations"), "LOOKUP"),
			 12);
	rules = json_object_get_array_member(reply, "rules");
	assert_int_equal(json_array_get_length(rules), 2);
	rule = json_array_get_object_element(rules, 0);
	assert_string_equal(json_object_get_string_member(rule, "pattern"), "/tmp/claude");
	assert_string_equal(json_object_get_string_member(rule, "kind"), "deny");
	assert_true(json_object_get_boolean_member(rule, "built_in"));
	rule = json_array_get_object_element(rules, 1);
	assert_string_equal(json_object_get_string_member(rule, "pattern"), "/tmp/bad\\xff");
	assert_string_equal(json_object_get_string_member(rule, "kind"), "read_only");
	assert_false(json_object_has_member(reply, "recount"));
	json_object_unref(reply);
}

static void test_many_long_rules_come_in_parts(void **state)
{
	static char pattern[4000];
	Fixture *f = *state;
	unsigned n = 0, n_nests = 0;
	bool more = true;

	/* The worst that JSON makes of a byte. */
	memset(pattern, '\x01', sizeof(pattern) - 1);
	fake_nests_rules(40, pattern);
	fake_nests_add(geteuid(), "one");
	expect_error(f, METHOD("GetNest") ",\"parameters\":{\"name\":\"one\"}}",
		     ERROR("ExpectedMore"));
	test_peer_send(&f->peer,
		       METHOD("GetNest") ",\"more\":true,\"parameters\":{\"name\":\"one\"}}", -1);
	while (more) {
		JsonObject *message = test_peer_receive(&f->peer);
		JsonObject *parameters = json_object_get_object_member(message, "parameters");

		assert_false(json_object_has_member(message, "error"));
		n += json_array_get_length(json_object_get_array_member(parameters, "rules"));
		n_nests += json_object_has_member(parameters, "nest");
		more = json_object_get_boolean_member_with_default(message, "continues", FALSE);
		json_object_unref(message);
	}
	assert_int_equal(n, 41);
	assert_int_equal(n_nests, 1);
}

static void check_recount(Fixture *f, bool stable, bool matches)
{
	JsonObject *reply =
		call(f, METHOD("GetNest") ",\"parameters\":{\"name\":\"one\",\"verify\":true}}");
	JsonObject *recount = json_object_get_object_member(reply, "recount");

	assert_int_equal(json_object_get_boolean_member(recount, "stable"), stable);
	assert_int_equal(json_object_get_boolean_member(recount, "matches"), matches);
	json_object_unref(reply);
}

static void test_verify_compares(void **state)
{
	Fixture *f = *state;
	uint64_t id = fake_nests_add(geteuid(), "one");
	TnNestInfo info;

	fake_nests_get(id, &info);
	info.bytes_used = 8192;
	info.inodes_used = 3;
	fake_nests_set(id, &info);
	fake_nests_recount_finds(8192, 3, 0);
	check_recount(f, true, true);
	fake_nests_recount_finds(8192, 4, 0);
	check_recount(f, true, false);
	fake_nests_recount_finds(4096, 3, 0);
	check_recount(f, true, false);
	fake_nests_grow_during_recount(4096);
	check_recount(f, false, false);
	fake_nests_recount_finds(0, 0, -EIO);
	expect_error(f, METHOD("GetNest") ",\"parameters\":{\"name\":\"one\",\"verify\":true}}",
		     ERROR("Failed"));
}

static void test_missing_and_bad_names(void **state)
{
	static const char *const methods[] = {"GetNest", "SetLimits"};
	Fixture *f = *state;

	fake_nests_add(OTHER_UID, "theirs");
	for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
		g_autofree char *missing = g_strdup_printf(
			METHOD("%s") ",\"parameters\":{\"name\":\"none\"}}", methods[i]);
		g_autofree char *bad = g_strdup_printf(
			METHOD("%s") ",\"parameters\":{\"name\":\"../x\"}}", methods[i]);
		g_autofree char *untyped =
			g_strdup_printf(METHOD("%s") ",\"parameters\":{\"name\":7}}", methods[i]);

		expect_error(f, missing, ERROR("NoSuchNest"));
		expect_error(f, bad, ERROR("InvalidArgument"));
		json_object_unref(call_wrongly(f, untyped, "org.varlink.service.InvalidParameter"));
	}
}

/* --- whose nest: these go below the socket, as callers of several uids --- */

static TnNest *find_as(uid_t uid, const char *name, gint64 owner, TnControlError *error)
{
	TnControl control = {.registry = NULL};
	TnPeer peer = {.uid = uid, .gid = uid};

	tn_control_error_clear(error);
	return tn_control_find(&control, &peer, name, owner, error);
}

static void expect_found(uid_t uid, const char *name, gint64 owner, uint64_t id)
{
	TnControlError error = {NULL};
	TnNest *nest = find_as(uid, name, owner, &error);

	assert_non_null(nest);
	assert_int_equal(tn_nest_id(nest), id);
	tn_nest_unref(nest);
}

static void expect_not_found(uid_t uid, const char *name, gint64 owner, const char *wanted)
{
	TnControlError error = {NULL};

	assert_null(find_as(uid, name, owner, &error));
	assert_string_equal(error.error, wanted);
	tn_control_error_clear(&error);
}

static void test_callers_reach_their_own_nests(void **state)
{
	uint64_t a = fake_nests_add(1001, "same"), b = fake_nests_add(1002, "same");
	uint64_t c = fake_nests_add(1002, "single");
	TnControlError error = {NULL};
	JsonArray *owners;

	expect_found(1001, "same", -1, a);
	expect_found(1002, "same", -1, b);
	expect_found(1002, "same", 1002, b);
	expect_not_found(1001, "single", -1, "NoSuchNest");
	/* The same answer whether it is there or not. */
	expect_not_found(1001, "single", 1002, "PermissionDenied");
	expect_not_found(1001, "none", 1002, "PermissionDenied");
	expect_not_found(1001, "same", 0, "PermissionDenied");
	/* Root reaches all, and has to say which. */
	expect_found(0, "single", -1, c);
	expect_found(0, "same", 1001, a);
	expect_found(0, "same", 1002, b);
	expect_not_found(0, "same", 0, "NoSuchNest");
	expect_not_found(0, "none", -1, "NoSuchNest");
	assert_null(find_as(0, "same", -1, &error));
	assert_string_equal(error.error, "AmbiguousName");
	owners = json_object_get_array_member(error.extra, "owners");
	assert_int_equal(json_array_get_length(owners), 2);
	assert_int_equal(json_array_get_int_element(owners, 0), 1001);
	assert_int_equal(json_array_get_int_element(owners, 1), 1002);
	tn_control_error_clear(&error);
}

static void test_callers_see_their_own_nests(void **state)
{
	TnControl control = {.registry = NULL};
	static const struct {
		uid_t uid;
		size_t n;
	} cases[] = {{1001, 1}, {1002, 2}, {1003, 0}, {0, 3}};

	fake_nests_add(1001, "a");
	fake_nests_add(1002, "a");
	fake_nests_add(1002, "b");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		TnPeer peer = {.uid = cases[i].uid};
		size_t n;
		g_autofree TnNest **nests = tn_control_visible(&control, &peer, &n);

		assert_int_equal(n, cases[i].n);
		for (size_t j = 0; j < n; j++)
			tn_nest_unref(nests[j]);
	}
}

/* --- changes --- */

static void test_create(void **state)
{
	Fixture *f = *state;
	JsonObject *reply = call(
		f, METHOD("CreateNest") ",\"parameters\":{\"name\":\"new\",\"bytes_limit\":4096,"
					"\"inodes_limit\":-1,\"ttl\":null,\"durable\":true,"
					"\"store\":\"memory\","
					"\"deny\":[\"a\",\"b\"],\"read_only\":[\"c\"]}}");
	const TnNestSpec *spec = fake_nests_last_spec();

	assert_string_equal(
		json_object_get_string_member(json_object_get_object_member(reply, "nest"), "name"),
		"new");
	json_object_unref(reply);
	assert_int_equal(spec->uid, geteuid());
	assert_int_equal(spec->gid, getegid());
	assert_int_equal(spec->bytes, 4096);
	assert_true(spec->inodes == TN_UNLIMITED);
	assert_int_equal(spec->ttl, 0);
	assert_int_equal(spec->store, TN_STORE_MEMORY);
	assert_true(spec->durable);
	assert_int_equal(spec->n_deny, 2);
	assert_int_equal(spec->n_read_only, 1);
	expect_error(f, METHOD("CreateNest") ",\"parameters\":{\"name\":\"new\"}}",
		     ERROR("NestExists"));
}

static void test_create_refuses(void **state)
{
	static const struct {
		const char *parameters, *error;
	} cases[] = {
		{"{\"name\":\"\"}", ERROR("InvalidArgument")},
		{"{\"name\":\".x\"}", ERROR("InvalidArgument")},
		{"{\"name\":\"a/b\"}", ERROR("InvalidArgument")},
		{"{\"name\":\"x\",\"bytes_limit\":0}", ERROR("InvalidArgument")},
		{"{\"name\":\"x\",\"bytes_limit\":-2}", ERROR("InvalidArgument")},
		{"{\"name\":\"x\",\"idle_ttl\":-9223372036854775807}", ERROR("InvalidArgument")},
		{"{\"name\":\"x\",\"store\":\"cloud\"}", ERROR("InvalidArgument")},
	};
	Fixture *f = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *text = g_strdup_printf(METHOD("CreateNest") ",\"parameters\":%s}",
							cases[i].parameters);

		expect_error(f, text, cases[i].error);
	}
}

static void test_registry_errors_have_names(void **state)
{
	static const struct {
		int r;
		const char *error;
	} cases[] = {
		{-EINVAL, ERROR("InvalidArgument")},
		{-ENOTSUP, ERROR("NotSupported")},
		{-ENOSPC, ERROR("NoSpace")},
		{-EEXIST, ERROR("NestExists")},
		{-EIO, ERROR("Failed")},
	};
	Fixture *f = *state;

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		JsonObject *fields;

		fake_nests_fail_create(cases[i].r, "the store says so");
		fields = call_wrongly(f, METHOD("CreateNest") ",\"parameters\":{\"name\":\"x\"}}",
				      cases[i].error);
		assert_string_equal(json_object_get_string_member(fields, "name"), "x");
		assert_string_equal(json_object_get_string_member(fields, "reason"),
				    "the store says so");
		json_object_unref(fields);
	}
}

static void test_limits(void **state)
{
	Fixture *f = *state;
	uint64_t id = fake_nests_add(geteuid(), "one");
	TnNestInfo info;

	json_object_unref(call(f, METHOD("SetLimits") ",\"parameters\":{\"name\":\"one\","
						      "\"bytes_limit\":8192,\"ttl\":60}}"));
	fake_nests_get(id, &info);
	assert_int_equal(info.bytes_limit, 8192);
	assert_int_equal(info.inodes_limit, 1000);
	assert_int_equal(info.ttl, 60);
	json_object_unref(call(f, METHOD("SetLimits") ",\"parameters\":{\"name\":\"one\","
						      "\"bytes_limit\":-1,\"ttl\":-1}}"));
	fake_nests_get(id, &info);
	assert_true(info.bytes_limit == TN_UNLIMITED);
	assert_true(info.ttl == TN_UNLIMITED);
	fake_nests_fail_limits(-EIO);
	expect_error(f, METHOD("SetLimits") ",\"parameters\":{\"name\":\"one\",\"ttl\":1}}",
		     ERROR("Failed"));
}

static void test_evict_gives_one_result_each(void **state)
{
	Fixture *f = *state;
	uint64_t busy = fake_nests_add(geteuid(), "busy");
	JsonObject *reply, *result;
	JsonArray *results;
	TnNestInfo info;

	fake_nests_add(geteuid(), "idle");
	fake_nests_get(busy, &info);
	info.attachments = 2;
	fake_nests_set(busy, &info);
	reply = call(f, METHOD("EvictNests") ",\"parameters\":{\"names\":[\"busy\",\"none\","
					     "\"idle\",\"idle\",\"/\"]}}");
	results = json_object_get_array_member(reply, "results");
	assert_int_equal(json_array_get_length(results), 5);
	result = json_array_get_object_element(results, 0);
	assert_false(json_object_get_boolean_member(result, "evicted"));
	assert_string_equal(json_object_get_string_member(result, "error"), ERROR("InUse"));
	assert_string_equal(json_object_get_string_member(result, "reason"), "2 sandboxes use it");
	assert_int_equal(json_object_get_int_member(result, "attachments"), 2);
	result = json_array_get_object_element(results, 1);
	assert_string_equal(json_object_get_string_member(result, "error"), ERROR("NoSuchNest"));
	result = json_array_get_object_element(results, 2);
	assert_true(json_object_get_boolean_member(result, "evicted"));
	assert_false(json_object_has_member(result, "error"));
	result = json_array_get_object_element(results, 3);
	assert_string_equal(json_object_get_string_member(result, "error"), ERROR("NoSuchNest"));
	result = json_array_get_object_element(results, 4);
	assert_string_equal(json_object_get_string_member(result, "error"),
			    ERROR("InvalidArgument"));
	json_object_unref(reply);
	json_object_unref(call(
		f, METHOD("EvictNests") ",\"parameters\":{\"names\":[\"busy\"],\"force\":true}}"));
	expect_error(f, METHOD("GetNest") ",\"parameters\":{\"name\":\"busy\"}}",
		     ERROR("NoSuchNest"));
}

static void test_evict_takes_a_hundred_names(void **state)
{
	Fixture *f = *state;
	g_autoptr(GString) text =
		g_string_new(METHOD("EvictNests") ",\"parameters\":{\"names\":[\"n\"");

	for (int i = 0; i < 99; i++)
		g_string_append(text, ",\"n\"");
	g_string_append(text, "]}}");
	json_object_unref(call(f, text->str));
	g_string_insert(text, (gssize)text->len - 3, ",\"n\"");
	expect_error(f, text->str, ERROR("InvalidArgument"));
}

/* --- the life cycle --- */

static void test_evicted_ones_are_listed_until_wiped(void **state)
{
	Fixture *f = *state;
	JsonObject *reply, *last;
	JsonArray *nests;

	fake_nests_add(geteuid(), "here");
	fake_nests_going();
	reply = call(f, METHOD("ListNests") "}");
	nests = json_object_get_array_member(reply, "nests");
	assert_int_equal(json_array_get_length(nests), 2);
	last = json_array_get_object_element(nests, 1);
	assert_string_equal(json_object_get_string_member(last, "name"), "going");
	assert_string_equal(json_object_get_string_member(last, "state"), "evicting");
	json_object_unref(reply);
	/* Nobody reaches it by its name. */
	expect_error(f, METHOD("GetNest") ",\"parameters\":{\"name\":\"going\"}}",
		     ERROR("NoSuchNest"));
}

static void test_freeze(void **state)
{
	Fixture *f = *state;
	uint64_t id = fake_nests_add(geteuid(), "cold");
	TnNestInfo info;

	json_object_unref(call(
		f, METHOD("SetFrozen") ",\"parameters\":{\"name\":\"cold\",\"frozen\":true}}"));
	fake_nests_get(id, &info);
	assert_int_equal(info.state, TN_NEST_FROZEN);
	expect_error(f, METHOD("SetFrozen") ",\"parameters\":{\"name\":\"none\",\"frozen\":true}}",
		     ERROR("NoSuchNest"));
}

static void test_change_rules(void **state)
{
	Fixture *f = *state;

	fake_nests_add(geteuid(), "strict");
	json_object_unref(call(f, METHOD("ChangeRules") ",\"parameters\":{\"name\":\"strict\","
							"\"kind\":\"deny\",\"add\":[\"x\"]}}"));
	expect_error(
		f,
		METHOD("ChangeRules") ",\"parameters\":{\"name\":\"strict\",\"kind\":\"other\"}}",
		ERROR("InvalidArgument"));
	expect_error(f,
		     METHOD("ChangeRules") ",\"parameters\":{\"name\":\"strict\","
					   "\"kind\":\"deny\",\"add\":[\"..\"]}}",
		     ERROR("InvalidArgument"));
	expect_error(f,
		     METHOD("ChangeRules") ",\"parameters\":{\"name\":\"none\",\"kind\":\"deny\"}}",
		     ERROR("NoSuchNest"));
}

static void test_collect_garbage(void **state)
{
	Fixture *f = *state;
	JsonObject *reply, *item;
	JsonArray *evicted;
	TnNestInfo info;
	uint64_t id;

	fake_nests_add(geteuid(), "stays");
	id = fake_nests_add(geteuid(), "over");
	fake_nests_get(id, &info);
	info.ttl = 0; /* the fake's mark of what is to go */
	fake_nests_set(id, &info);
	for (int dry = 1; dry >= 0; dry--) {
		reply = call(f, dry ? METHOD("CollectGarbage") ",\"parameters\":{\"dry_run\":true}}"
				    : METHOD("CollectGarbage") "}");
		evicted = json_object_get_array_member(reply, "evicted");
		assert_int_equal(json_array_get_length(evicted), 1);
		item = json_array_get_object_element(evicted, 0);
		assert_string_equal(json_object_get_string_member(item, "name"), "over");
		assert_string_equal(json_object_get_string_member(item, "reason"), "made to go");
		/* A name of any bytes is text in an answer. */
		assert_int_equal(
			json_array_get_length(json_object_get_array_member(reply, "damaged")), 1);
		assert_true(json_object_get_boolean_member(reply, "complete"));
		assert_int_equal(json_object_get_int_member(
					 json_object_get_object_member(reply, "store"), "stuck"),
				 3);
		json_object_unref(reply);
	}
	reply = call(f, METHOD("CollectGarbage") "}");
	assert_int_equal(json_array_get_length(json_object_get_array_member(reply, "evicted")), 0);
	json_object_unref(reply);
	expect_error(f, METHOD("CollectGarbage") ",\"parameters\":{\"unused_for\":-1}}",
		     ERROR("InvalidArgument"));
}

/* --- the daemon --- */

static void test_status(void **state)
{
	static const char *const fields[] = {"scope",       "uid",     "keeper_pid",  "worker_pid",
					     "instance",    "version", "runtime_dir", "store_dir",
					     "started",     "uptime",  "nests",       "attachments",
					     "connections", "features"};
	Fixture *f = *state;
	JsonObject *reply;

	fake_nests_add(geteuid(), "one");
	reply = call(f, METHOD("Status") "}");
	for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
		if (!json_object_has_member(reply, fields[i]))
			fail_msg("no %s", fields[i]);
	}
	assert_string_equal(json_object_get_string_member(reply, "scope"), "user");
	assert_string_equal(json_object_get_string_member(reply, "store_dir"), "/var/lib/test");
	assert_string_equal(json_object_get_string_member(reply, "instance"), "0000000000001234");
	assert_int_equal(json_object_get_int_member(reply, "nests"), 1);
	assert_int_equal(json_object_get_int_member(reply, "connections"), 1);
	json_object_unref(reply);
}

static void wait_for_stop(void)
{
	gint64 until = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;

	while (g_atomic_int_get(&n_stops) == 0 && g_get_monotonic_time() < until)
		g_usleep(1000);
	assert_int_equal(g_atomic_int_get(&n_stops), 1);
}

static void test_stop(void **state)
{
	Fixture *f = *state;

	json_object_unref(call(f, METHOD("Stop") "}"));
	wait_for_stop();
}

static void test_stop_is_refused_while_in_use(void **state)
{
	Fixture *f = *state;
	uint64_t id = fake_nests_add(geteuid(), "busy");
	JsonObject *fields;
	TnNestInfo info;

	fake_nests_get(id, &info);
	info.attachments = 3;
	fake_nests_set(id, &info);
	fields = call_wrongly(f, METHOD("Stop") "}", ERROR("InUse"));
	assert_int_equal(json_object_get_int_member(fields, "attachments"), 3);
	json_object_unref(fields);
	assert_int_equal(g_atomic_int_get(&n_stops), 0);
	json_object_unref(call(f, METHOD("Stop") ",\"parameters\":{\"force\":true}}"));
	wait_for_stop();
}

static void test_a_slow_reader_holds_no_nest(void **state)
{
	Fixture *f = *state;

	add_many(FAKE_NESTS_MAX);
	for (int i = 0; i < 20; i++)
		test_peer_send(&f->peer, METHOD("ListNests") ",\"more\":true}",
			       i == 0 ? f->ns : -1);
	g_usleep(100000);
	assert_int_equal(fake_nests_refs(), 0);
}

/* --- what is in a nest --- */

/* A directory of this test's own with some hostile entries; the caller removes it. */
static int make_content(char path[32])
{
	TN_AUTOFD file = -1;
	int dir;

	strcpy(path, "/tmp/control-XXXXXX");
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	file = openat(dir, "a\\b\n\xff", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(file, "text", 4), 4);
	assert_int_equal(symlinkat("/etc/passwd", dir, "link"), 0);
	fake_nests_content(dir);
	return dir;
}

static void remove_content(int dir, const char *path)
{
	unlinkat(dir, "a\\b\n\xff", 0);
	unlinkat(dir, "link", 0);
	rmdir(path);
	close(dir);
}

static void test_lists_and_opens_by_hostile_names(void **state)
{
	static const char open_it[] =
		METHOD("OpenFile") ",\"parameters\":{\"name\":\"one\",\"path\":"
				   "\"/tmp/a\\\\\\\\b\\n\\\\xff\"}}";
	Fixture *f = *state;
	char path[32], text[8] = "";
	int dir = make_content(path);
	JsonObject *reply;
	gboolean seen = FALSE;
	JsonArray *entries;

	fake_nests_add(geteuid(), "one");
	reply = call(f, METHOD("ListFiles") ",\"parameters\":{\"name\":\"one\"}}");
	entries = json_object_get_array_member(reply, "entries");
	assert_int_equal(json_array_get_length(entries), 2);
	for (guint i = 0; i < 2; i++) {
		JsonObject *entry = json_array_get_object_element(entries, i);
		const char *name = json_object_get_string_member(entry, "name");

		seen |= strcmp(name, "a\\\\b\n\\xff") == 0;
		if (strcmp(name, "link") == 0)
			assert_string_equal(json_object_get_string_member(entry, "target"),
					    "/etc/passwd");
	}
	assert_true(seen);
	json_object_unref(reply);
	json_object_unref(call(f, open_it));
	assert_true(f->peer.received >= 0);
	assert_int_equal(read(f->peer.received, text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	tn_close(&f->peer.received);
	expect_error(f, METHOD("OpenFile") ",\"parameters\":{\"name\":\"one\",\"path\":\"link\"}}",
		     ERROR("NoSuchFile"));
	assert_int_equal(f->peer.received, -1);
	expect_error(f, METHOD("OpenFile") ",\"parameters\":{\"name\":\"one\",\"path\":\"\\\\q\"}}",
		     ERROR("InvalidArgument"));
	remove_content(dir, path);
}

static void test_usage_comes_in_parts(void **state)
{
	static char name[250];
	Fixture *f = *state;
	unsigned n = 0;
	bool more = true;

	/* The worst that the text of a name takes. */
	memset(name, '\x01', sizeof(name) - 1);
	fake_nests_rules(0, name);
	fake_nests_add(geteuid(), "one");
	test_peer_send(
		&f->peer,
		METHOD("GetUsage") ",\"parameters\":{\"name\":\"one\",\"top\":200},\"more\":true}",
		f->ns);
	while (more) {
		JsonObject *message = test_peer_receive(&f->peer);
		JsonObject *part = json_object_get_object_member(message, "parameters");

		assert_false(json_object_has_member(message, "error"));
		assert_int_equal(json_object_has_member(part, "bytes"), n == 0);
		n += json_array_get_length(json_object_get_array_member(part, "entries"));
		more = json_object_get_boolean_member_with_default(message, "continues", FALSE);
		json_object_unref(message);
	}
	assert_int_equal(n, 200);
	expect_error(f, METHOD("GetUsage") ",\"parameters\":{\"name\":\"one\",\"top\":1001}}",
		     ERROR("InvalidArgument"));
}

static void expect_event(Fixture *f, const char *event, const char *nest)
{
	JsonObject *part = test_peer_expect_reply(&f->peer, true);
	JsonArray *events = json_object_get_array_member(part, "events");
	JsonObject *json = json_array_get_object_element(events, 0);

	assert_int_equal(json_array_get_length(events), 1);
	assert_string_equal(json_object_get_string_member(json, "event"), event);
	assert_string_equal(json_object_get_string_member(json, "nest"), nest);
	json_object_unref(part);
}

static void test_events_are_followed(void **state)
{
	Fixture *f = *state;
	TnEvent denied = {.kind = TN_EVENT_DENIED, .error = EACCES, .operation = "MKDIR"};
	JsonObject *reply, *json;
	TnEventHub *hub;
	TnEvents *mine, *other;

	assert_int_equal(tn_event_hub_new(&hub), 0);
	tn_control_free(f->control);
	fake_nests_hub(hub);
	start(f);
	test_peer_clear(&f->peer);
	connect_peer(f, &f->peer);
	mine = tn_events_new(hub, fake_nests_add(geteuid(), "mine"), geteuid(), "mine");
	other = tn_events_new(hub, fake_nests_add(OTHER_UID, "other"), OTHER_UID, "other");
	memset(denied.path, 0xff, sizeof(denied.path) - 1);
	assert_true(tn_events_admit(mine, denied.kind));
	tn_events_note(mine, &denied);
	reply = call(f, METHOD("GetEvents") ",\"parameters\":{\"name\":\"mine\"}}");
	assert_int_equal(json_object_get_int_member(reply, "next"), 1);
	json = json_array_get_object_element(json_object_get_array_member(reply, "events"), 0);
	assert_string_equal(json_object_get_string_member(json, "operation"), "MKDIR");
	assert_true(g_str_has_prefix(json_object_get_string_member(json, "path"), "\\xff\\xff"));
	json_object_unref(reply);
	expect_error(f, METHOD("GetEvents") ",\"parameters\":{\"follow\":true}}",
		     ERROR("ExpectedMore"));
	test_peer_send(&f->peer,
		       METHOD("GetEvents") ",\"parameters\":{\"name\":\"mine\",\"follow\":true,"
					   "\"since\":1},\"more\":true}",
		       -1);
	test_peer_expect_silence(&f->peer);
	tn_events_add(other, TN_EVENT_ATTACH);
	test_peer_expect_silence(&f->peer);
	tn_events_add(mine, TN_EVENT_ATTACH);
	expect_event(f, "attach", "mine");
	tn_events_add(mine, TN_EVENT_DETACH);
	expect_event(f, "detach", "mine");
	tn_control_free(f->control);
	fake_nests_hub(NULL);
	start(f);
	tn_events_free(mine);
	tn_events_free(other);
	tn_event_hub_free(hub);
}

static void test_an_observer_only_looks(void **state)
{
	static const char *const refused[] = {
		METHOD("CreateNest") ",\"parameters\":{\"name\":\"two\"}}",
		METHOD("SetLimits") ",\"parameters\":{\"name\":\"one\",\"bytes_limit\":5}}",
		METHOD("EvictNests") ",\"parameters\":{\"names\":[\"one\"]}}",
		METHOD("Stop") "}",
		METHOD("ListFiles") ",\"parameters\":{\"name\":\"one\"}}",
		METHOD("StatFile") ",\"parameters\":{\"name\":\"one\"}}",
		METHOD("OpenFile") ",\"parameters\":{\"name\":\"one\"}}",
		METHOD("GetXattrs") ",\"parameters\":{\"name\":\"one\"}}",
	};
	Fixture *f = *state;

	fake_nests_add(geteuid(), "one");
	json_object_unref(call(f, METHOD("Observe") "}"));
	for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
		expect_error(f, refused[i], ERROR("PermissionDenied"));
	json_object_unref(call(f, METHOD("ListNests") "}"));
	json_object_unref(call(f, METHOD("Status") "}"));
	json_object_unref(call(f, METHOD("GetNest") ",\"parameters\":{\"name\":\"one\"}}"));
	assert_int_equal(g_atomic_int_get(&n_stops), 0);
}

static void test_serves_its_interface_file(void **state)
{
	Fixture *f = *state;
	JsonObject *reply = call(
		f, "{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{"
		   "\"interface\":\"org.tmpnest.Control\"}}");
	const char *text = json_object_get_string_member(reply, "description");
	size_t n;
	const TnVarlinkMethod *methods = tn_control_methods(&n);

	assert_non_null(strstr(text, "interface org.tmpnest.Control\n"));
	for (size_t i = 0; i < n; i++) {
		g_autofree char *line = g_strdup_printf("\nmethod %s(", methods[i].name);

		if (strstr(text, line) == NULL)
			fail_msg("%s is not in the interface file", methods[i].name);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(promised); i++) {
		g_autofree char *line = g_strdup_printf("\n  %s: ", promised[i]);

		if (strstr(text, line) == NULL)
			fail_msg("%s is not in the interface file", promised[i]);
	}
	json_object_unref(reply);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wants_the_callers_namespace),
		TEST(test_user_daemon_serves_one_uid),
		TEST(test_other_namespace_than_the_daemons),
		TEST(test_ls_has_all_promised_fields),
		TEST(test_ls_names_every_state),
		TEST(test_long_lists_come_in_parts),
		TEST(test_show_has_rules_and_counts),
		TEST(test_many_long_rules_come_in_parts),
		TEST(test_verify_compares),
		TEST(test_missing_and_bad_names),
		TEST(test_callers_reach_their_own_nests),
		TEST(test_callers_see_their_own_nests),
		TEST(test_create),
		TEST(test_create_refuses),
		TEST(test_registry_errors_have_names),
		TEST(test_limits),
		TEST(test_evict_gives_one_result_each),
		TEST(test_evict_takes_a_hundred_names),
		TEST(test_evicted_ones_are_listed_until_wiped),
		TEST(test_freeze),
		TEST(test_change_rules),
		TEST(test_collect_garbage),
		TEST(test_status),
		TEST(test_stop),
		TEST(test_stop_is_refused_while_in_use),
		TEST(test_a_slow_reader_holds_no_nest),
		TEST(test_serves_its_interface_file),
		TEST(test_lists_and_opens_by_hostile_names),
		TEST(test_usage_comes_in_parts),
		TEST(test_events_are_followed),
		TEST(test_an_observer_only_looks),
	};

	/* Has a descriptor for ever, from its first use on. */
	g_main_context_default();
	g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING | G_LOG_FATAL_MASK);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
