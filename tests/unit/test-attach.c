/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The attach server on a real socket, with a registry that only counts. */
#include "attach.h"
#include "fake-registry.h"
#include "lease-names.h"
#include "macros.h"
#include "peer.h"
#include "scm.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define INSTANCE 77

typedef struct Fixture {
	TnWorkerEnv env;
	TnRegistry *registry;
	TnAttachServer *server;
	struct sockaddr_un address;
	socklen_t address_size;
	size_t fds_before;
} Fixture;

/* peer.c asks the keeper only for a root daemon with pidfds, which these tests are not. */
int tn_keeper_peer_userns(TnKeeperLink *link, int pidfd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	fail_msg("the keeper was asked");
	return -EIO;
}

/* Replaces the one of sys.c by --wrap: the wall clock, moved. */
static _Atomic int64_t clock_offset;
int64_t __real_tn_now(void);
int64_t __wrap_tn_now(void);

int64_t __wrap_tn_now(void)
{
	return __real_tn_now() + clock_offset;
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* What clients sent may be closed by a thread of its own: see stranger.h. */
static void expect_fds(size_t wanted)
{
	for (int i = 0; i < 1000 && count_fds() != wanted; i++)
		usleep(5000);
	assert_int_equal(count_fds(), wanted);
}

static void start(Fixture *fixture)
{
	assert_int_equal(tn_attach_server_new(&fixture->server, &fixture->env, fixture->registry),
			 0);
}

static void set_up_env(Fixture *fixture, TnScope scope)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/user", &st), 0);
	fixture->env = (TnWorkerEnv){
		.scope = scope,
		.uid = geteuid(),
		.gid = getegid(),
		.userns_dev = st.st_dev,
		.userns_ino = st.st_ino,
		.store_dev = 1,
		.store_ino = 2,
		.runtime_dev = 3,
		.runtime_ino = 4,
		.instance_id = INSTANCE,
		.runtime = -1,
	};
}

static int set_up_scope(void **state, TnScope scope)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));
	TnRegistryConfig config = {0};

	tn_fake_reset();
	fixture->fds_before = count_fds();
	set_up_env(fixture, scope);
	assert_int_equal(tn_registry_new(&fixture->registry, &config), 0);
	fixture->env.attach_listener =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* An abstract address of the kernel's choice: no file to clean up. */
	fixture->address.sun_family = AF_UNIX;
	assert_int_equal(
		bind(fixture->env.attach_listener, (void *)&fixture->address, sizeof(sa_family_t)),
		0);
	assert_int_equal(listen(fixture->env.attach_listener, 128), 0);
	fixture->address_size = sizeof(fixture->address);
	assert_int_equal(getsockname(fixture->env.attach_listener, (void *)&fixture->address,
				     &fixture->address_size),
			 0);
	*state = fixture;
	return 0;
}

static int set_up_stopped(void **state)
{
	return set_up_scope(state, TN_SCOPE_USER);
}

static int set_up(void **state)
{
	set_up_scope(state, TN_SCOPE_USER);
	start(*state);
	return 0;
}

static int set_up_system(void **state)
{
	set_up_scope(state, TN_SCOPE_SYSTEM);
	start(*state);
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;

	tn_attach_server_free(fixture->server);
	tn_close(&fixture->env.attach_listener);
	assert_int_equal(tn_fake.refs, 0);
	expect_fds(fixture->fds_before);
	free(fixture);
	return 0;
}

/* Client */

static int dial(Fixture *fixture)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(sock >= 0);
	assert_int_equal(connect(sock, (void *)&fixture->address, fixture->address_size), 0);
	return sock;
}

static bool has_answer(int sock, int milliseconds)
{
	struct pollfd poll_fd = {.fd = sock, .events = POLLIN};

	return poll(&poll_fd, 1, milliseconds) == 1;
}

typedef struct Answer {
	uint8_t message[TN_ATTACH_MAX];
	size_t size;
	TnAttachReply head;
	int mount; /* -1: none came */
	char text[512];
} Answer;

static Answer answer; /* too large for a test's stack */

static void receive(int sock)
{
	int fds[TN_SCM_MAX_FDS];
	TnAttachRecord record;
	size_t n_fds, offset = 0;
	ssize_t n;

	assert_true(has_answer(sock, 3000));
	n = tn_scm_recv(sock, answer.message, sizeof(answer.message), fds, &n_fds);
	assert_true(n > 0);
	assert_true(n_fds <= 1);
	answer.size = (size_t)n;
	answer.mount = fds[0];
	answer.text[0] = '\0';
	assert_int_equal(tn_attach_check_reply(answer.message, answer.size, &answer.head), 0);
	while (tn_attach_next(answer.message, answer.size, true, &offset, &record))
		if (record.type == TN_RECORD_TEXT)
			snprintf(answer.text, sizeof(answer.text), "%s", (const char *)record.data);
	if (answer.head.status == 0)
		assert_int_equal(answer.text[0], '\0');
	else
		assert_true(answer.text[0] && !strchr(answer.text, '\n'));
}

static int open_userns(void)
{
	int fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Sends message with our namespace and up to one more descriptor; fills `answer`. */
static void ask(Fixture *fixture, const void *message, size_t size, int second)
{
	TN_AUTOFD sock = dial(fixture);
	TN_AUTOFD userns = open_userns();
	int fds[] = {userns, second};

	assert_int_equal(tn_scm_send(sock, message, size, fds, second >= 0 ? 2 : 1), size);
	receive(sock);
}

static uint8_t request[TN_ATTACH_MAX];

static size_t build(const TnAttachRequest *head, const char *name)
{
	TnAttachWriter writer;

	tn_attach_begin_request(&writer, request, head);
	if (name)
		tn_attach_add_string(&writer, TN_RECORD_NAME, name);
	return (size_t)tn_attach_end(&writer);
}

static size_t build_ephemeral(uint8_t id)
{
	return build(&(TnAttachRequest){.verb = TN_ATTACH_ATTACH,
					.flags = TN_ATTACH_EPHEMERAL,
					.request_id = {id}},
		     NULL);
}

static size_t build_named(uint16_t verb, const char *name, uint8_t id)
{
	return build(&(TnAttachRequest){.verb = verb, .request_id = {id}}, name);
}

static void wait_for(const _Atomic unsigned *counter, unsigned value)
{
	for (int i = 0; i < 3000 && *counter < value; i++)
		usleep(1000);
	assert_int_equal(*counter, value);
}

/* Tests */

static void test_ping(void **state)
{
	ask(*state, request, build_named(TN_ATTACH_PING, NULL, 0), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_equal(answer.head.instance_id, INSTANCE);
	assert_int_equal(answer.head.store_dev, 1);
	assert_int_equal(answer.head.store_ino, 2);
	assert_int_equal(answer.head.runtime_dev, 3);
	assert_int_equal(answer.head.runtime_ino, 4);
	assert_int_equal(answer.mount, -1);
}

static void test_ephemeral(void **state)
{
	TnAttachRecord record;
	size_t offset = 0;

	ask(*state, request, build_ephemeral(1), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_equal(answer.head.flags, TN_ATTACHED_CREATED);
	assert_int_not_equal(answer.head.nest_id, 0);
	assert_int_not_equal(answer.head.attachment_id, 0);
	assert_true(answer.mount >= 0);
	tn_close(&answer.mount);
	assert_true(tn_attach_next(answer.message, answer.size, true, &offset, &record));
	assert_int_equal(record.type, TN_RECORD_DENIED);
	assert_string_equal(record.data, "/tmp/claude");
	assert_int_equal(tn_fake.created, 1);
	assert_int_equal(tn_fake.attached, 1);
	assert_int_equal(tn_fake.detached, 0);
	assert_int_equal(tn_fake.evicted, 0);
}

static void test_named_is_found_again(void **state)
{
	uint64_t nest;

	ask(*state, request, build_named(TN_ATTACH_ATTACH, "work", 1), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_equal(answer.head.flags, TN_ATTACHED_CREATED);
	nest = answer.head.nest_id;
	tn_close(&answer.mount);
	ask(*state, request, build_named(TN_ATTACH_ATTACH, "work", 2), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_equal(answer.head.flags, 0);
	assert_int_equal(answer.head.nest_id, nest);
	tn_close(&answer.mount);
	assert_int_equal(tn_fake.created, 1);
	assert_int_equal(tn_fake.attached, 2);
}

static void test_create(void **state)
{
	ask(*state, request, build_named(TN_ATTACH_CREATE, "work", 1), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_equal(answer.mount, -1);
	assert_int_equal(tn_fake.attached, 0);
	/* The same request again: its reply was lost, so it succeeds. */
	ask(*state, request, build_named(TN_ATTACH_CREATE, "work", 1), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_equal(answer.head.flags, TN_ATTACHED_CREATED);
	/* Another one: it is there. */
	ask(*state, request, build_named(TN_ATTACH_CREATE, "work", 2), -1);
	assert_int_equal(answer.head.status, EEXIST);
	assert_non_null(strstr(answer.text, "work"));
	assert_int_equal(tn_fake.created, 1);
}

static void test_repeated_request_undoes_the_first(void **state)
{
	uint64_t first;

	ask(*state, request, build_ephemeral(9), -1);
	tn_close(&answer.mount);
	first = answer.head.nest_id;
	ask(*state, request, build_ephemeral(9), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_not_equal(answer.head.nest_id, first);
	tn_close(&answer.mount);
	assert_int_equal(tn_fake.detached, 1);
	assert_int_equal(tn_fake.evicted, 1);
	assert_int_equal(tn_fake.created, 2);
}

static void test_repeated_named_request_still_says_created(void **state)
{
	ask(*state, request, build_named(TN_ATTACH_ATTACH, "work", 9), -1);
	tn_close(&answer.mount);
	ask(*state, request, build_named(TN_ATTACH_ATTACH, "work", 9), -1);
	assert_int_equal(answer.head.status, 0);
	assert_int_equal(answer.head.flags, TN_ATTACHED_CREATED);
	tn_close(&answer.mount);
	assert_int_equal(tn_fake.detached, 1);
	assert_int_equal(tn_fake.evicted, 0);
	assert_int_equal(tn_fake.created, 1);
}

static void test_lost_reply_is_undone(void **state)
{
	Fixture *fixture = *state;
	size_t size = build_ephemeral(1);
	int sock = dial(fixture), userns = open_userns();

	/* Gone before the server even runs: the reply cannot arrive. */
	assert_int_equal(tn_scm_send(sock, request, size, &userns, 1), size);
	tn_close(&sock);
	tn_close(&userns);
	start(fixture);
	wait_for(&tn_fake.evicted, 1);
	assert_int_equal(tn_fake.detached, 1);
}

static size_t build_leased(void)
{
	return build(&(TnAttachRequest){.verb = TN_ATTACH_ATTACH,
					.flags = TN_ATTACH_EPHEMERAL | TN_ATTACH_HAS_LEASE},
		     NULL);
}

static void test_lease_end_detaches(void **state)
{
	int lease[2];

	assert_int_equal(pipe2(lease, O_CLOEXEC), 0);
	ask(*state, request, build_leased(), lease[0]);
	assert_int_equal(answer.head.status, 0);
	tn_close(&answer.mount);
	tn_close(&lease[0]);
	/* What a holder writes into it means nothing. */
	assert_int_equal(write(lease[1], "x", 1), 1);
	ask(*state, request, build_named(TN_ATTACH_PING, NULL, 0), -1);
	assert_int_equal(tn_fake.detached, 0);
	tn_close(&lease[1]);
	wait_for(&tn_fake.detached, 1);
	assert_int_equal(tn_fake.evicted, 0);
}

static void make_lease(int leases, const char *name, int ends[2])
{
	assert_int_equal(mkfifoat(leases, name, 0600), 0);
	ends[0] = openat(leases, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ends[1] = openat(leases, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(ends[0] >= 0 && ends[1] >= 0);
}

static bool exists(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_lease_names(void **state)
{
	Fixture *fixture = *state;
	char place[] = "/tmp/tn-test-XXXXXX";
	TN_AUTOFD runtime = -1, leases = -1;
	int ours[2], other[2];

	assert_non_null(mkdtemp(place));
	runtime = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(runtime, "leases", 0700), 0);
	leases = openat(runtime, "leases", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_lease(leases, "ours", ours);
	make_lease(leases, "other", other);
	fixture->env.runtime = runtime;
	start(fixture);
	ask(fixture, request, build_leased(), ours[0]);
	assert_int_equal(answer.head.status, 0);
	tn_close(&answer.mount);
	tn_close(&ours[0]);
	assert_true(exists(leases, "ours"));
	tn_close(&ours[1]);
	wait_for(&tn_fake.detached, 1);
	assert_false(exists(leases, "ours"));
	assert_true(exists(leases, "other"));

	/* Another file under the name of a held lease stays. */
	ask(fixture, request, build_leased(), other[0]);
	tn_close(&answer.mount);
	assert_int_equal(renameat(leases, "other", leases, "elsewhere"), 0);
	assert_int_equal(unlinkat(leases, "elsewhere", 0), 0);
	assert_int_equal(mkfifoat(leases, "other", 0600), 0);
	tn_close(&other[0]);
	tn_close(&other[1]);
	wait_for(&tn_fake.detached, 2);
	assert_true(exists(leases, "other"));
	assert_int_equal(unlinkat(leases, "other", 0), 0);

	assert_int_equal(unlinkat(runtime, "leases", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(place), 0);
}

/* One whose launcher was killed before it asked: it is too fresh at the start. */
static void test_lease_names_later(void **state)
{
	Fixture *fixture = *state;
	char place[] = "/tmp/tn-test-XXXXXX";
	TN_AUTOFD runtime = -1, leases = -1;

	assert_non_null(mkdtemp(place));
	runtime = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(runtime, "leases", 0700), 0);
	leases = openat(runtime, "leases", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkfifoat(leases, "ended", 0600), 0);
	fixture->env.runtime = runtime;
	start(fixture);
	ask(fixture, request, build_named(TN_ATTACH_PING, NULL, 0), -1);
	assert_true(exists(leases, "ended"));
	clock_offset = 61 * INT64_C(1000000000);
	for (int i = 0; i < 3000 && exists(leases, "ended"); i++) {
		ask(fixture, request, build_named(TN_ATTACH_PING, NULL, 0), -1);
		usleep(1000);
	}
	clock_offset = 0;
	assert_false(exists(leases, "ended"));
	assert_int_equal(unlinkat(runtime, "leases", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(place), 0);
}

static void test_lease_names_of_before(void **state)
{
	static const char *const names[] = {"fresh", "held", "ended", "file"};
	static const bool stays[] = {true, true, false, true};
	char place[] = "/tmp/tn-test-XXXXXX";
	TN_AUTOFD runtime = -1, leases = -1;
	int ends[2];

	assert_non_null(mkdtemp(place));
	runtime = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(runtime, "leases", 0700), 0);
	leases = openat(runtime, "leases", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_lease(leases, "held", ends);
	assert_int_equal(mkfifoat(leases, "ended", 0600), 0);
	tn_close(&ends[0]);
	clock_offset = 61 * INT64_C(1000000000);
	assert_int_equal(mknodat(leases, "file", S_IFREG | 0600, 0), 0);
	tn_lease_names_prune(runtime);
	clock_offset = 0;
	assert_int_equal(mkfifoat(leases, "fresh", 0600), 0);
	tn_lease_names_prune(runtime);
	for (size_t i = 0; i < TN_ARRAY_LEN(names); i++) {
		if (exists(leases, names[i]) != stays[i])
			fail_msg("%s", names[i]);
		unlinkat(leases, names[i], 0);
	}
	tn_close(&ends[1]);
	assert_int_equal(unlinkat(runtime, "leases", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(place), 0);
}

static void test_bad_leases(void **state)
{
	int lease[2];

	assert_int_equal(pipe2(lease, O_CLOEXEC), 0);
	/* the wrong end */
	ask(*state, request, build_leased(), lease[1]);
	assert_int_equal(answer.head.status, EPROTO);
	tn_close(&lease[1]);
	/* nobody holds it */
	ask(*state, request, build_leased(), lease[0]);
	assert_int_equal(answer.head.status, EPROTO);
	tn_close(&lease[0]);
	/* no fifo */
	lease[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ask(*state, request, build_leased(), lease[0]);
	assert_int_equal(answer.head.status, EPROTO);
	tn_close(&lease[0]);
	assert_int_equal(tn_fake.created, 0);
}

static void test_errors_of_the_registry(void **state)
{
	tn_fake.create_error = -ENOSPC;
	ask(*state, request, build_ephemeral(1), -1);
	assert_int_equal(answer.head.status, ENOSPC);
	assert_non_null(strstr(answer.text, "made to fail"));
	assert_int_equal(answer.mount, -1);
	/* A nest that was made for nothing goes. */
	tn_fake.attach_error = -EIO;
	ask(*state, request, build_ephemeral(2), -1);
	assert_int_equal(answer.head.status, EIO);
	assert_int_equal(tn_fake.created, 1);
	assert_int_equal(tn_fake.evicted, 1);
}

static void test_evicted_meanwhile_is_made_anew(void **state)
{
	tn_fake.attach_error = -ENOENT;
	ask(*state, request, build_named(TN_ATTACH_ATTACH, "work", 1), -1);
	assert_int_equal(answer.head.status, 0);
	tn_close(&answer.mount);
	assert_int_equal(tn_fake.attached, 1);
}

static void test_reply_that_does_not_fit(void **state)
{
	tn_fake.huge_rules = TN_ATTACH_MAX / PATH_MAX + 4;
	ask(*state, request, build_ephemeral(1), -1);
	assert_int_equal(answer.head.status, EMSGSIZE);
	assert_int_equal(answer.mount, -1);
	assert_int_equal(tn_fake.detached, 1);
	assert_int_equal(tn_fake.evicted, 1);
}

static void test_mount_points(void **state)
{
	static const struct {
		const char *path;
		uint32_t state;
	} cases[] = {
		{"/tmp/work", TN_POINT_PINNED},       {"/tmp/claude/x", TN_POINT_DENIED},
		{"/tmp/secret", TN_POINT_DENIED},     {"/tmp/frozen/deep/er", TN_POINT_READ_ONLY},
		{"/var/tmp/secret", TN_POINT_PINNED},
	};
	TnAttachRequest head = {.verb = TN_ATTACH_ATTACH, .flags = TN_ATTACH_EPHEMERAL};
	TnAttachWriter writer;
	TnAttachRecord record;
	size_t offset = 0, n = 0;

	tn_attach_begin_request(&writer, request, &head);
	tn_attach_add_string(&writer, TN_RECORD_DENY, "/tmp/secret");
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++)
		tn_attach_add_mount_point(&writer, TN_MOUNT_POINT_DIR, cases[i].path);
	tn_attach_add_string(&writer, TN_RECORD_READ_ONLY, "/tmp/frozen");
	ask(*state, request, (size_t)tn_attach_end(&writer), -1);
	assert_int_equal(answer.head.status, 0);
	tn_close(&answer.mount);
	while (tn_attach_next(answer.message, answer.size, true, &offset, &record)) {
		uint32_t value;

		if (record.type != TN_RECORD_POINT_STATE)
			continue;
		memcpy(&value, record.data, sizeof(value));
		assert_true(n < TN_ARRAY_LEN(cases));
		assert_int_equal(value, cases[n].state);
		n++;
	}
	assert_int_equal(n, TN_ARRAY_LEN(cases));
}

static void test_bad_mount_point_makes_nothing(void **state)
{
	TnAttachRequest head = {.verb = TN_ATTACH_ATTACH, .flags = TN_ATTACH_EPHEMERAL};
	TnAttachWriter writer;

	tn_attach_begin_request(&writer, request, &head);
	tn_attach_add_mount_point(&writer, TN_MOUNT_POINT_DIR, "/tmp/a/../b");
	ask(*state, request, (size_t)tn_attach_end(&writer), -1);
	assert_int_equal(answer.head.status, EPROTO);
	assert_non_null(strstr(answer.text, "/tmp/a/../b"));
	assert_int_equal(answer.mount, -1);
	assert_int_equal(tn_fake.created, tn_fake.evicted);
}

/* One valid request with one byte range overwritten. */
typedef struct Damage {
	const char *what;
	size_t offset, length;
	uint64_t value;
	int expected;
} Damage;

#define FIELD(name, value, expected) \
	{ \
#name " = " #value, offsetof(TnAttachRequest, name), \
			sizeof(((TnAttachRequest *)NULL)->name), value, expected \
	}

static void test_damaged_fields(void **state)
{
	static const Damage damages[] = {
		FIELD(magic, 0, EPROTO),
		FIELD(version, 0, EPROTONOSUPPORT),
		FIELD(version, 2, EPROTONOSUPPORT),
		FIELD(verb, 0, EPROTO),
		FIELD(verb, 4, EPROTO),
		FIELD(verb, 65535, EPROTO),
		FIELD(size, 0, EPROTO),
		FIELD(size, 16, EPROTO),
		FIELD(size, 4294967295, EPROTO),
		FIELD(flags, TN_ATTACH_EPHEMERAL, EPROTO), /* and a name */
		FIELD(flags, TN_ATTACH_HAS_LEASE, EPROTO), /* and no descriptor */
		FIELD(flags, 1U << 31, EPROTO),
		FIELD(store, 99, EPROTO),
		FIELD(reserved, 1, EPROTO),
		{"record type", sizeof(TnAttachRequest), 4, 99, EPROTO},
		{"record type of a reply", sizeof(TnAttachRequest), 4, TN_RECORD_TEXT, EPROTO},
		{"record length", sizeof(TnAttachRequest) + 4, 4, 0, EPROTO},
		{"record length", sizeof(TnAttachRequest) + 4, 4, 9, EPROTO},
		{"record length", sizeof(TnAttachRequest) + 4, 4, 4294967295, EPROTO},
		{"NUL inside", sizeof(TnAttachRequest) + 8, 1, 0, EPROTO},
		{"no NUL", sizeof(TnAttachRequest) + 12, 1, 'x', EPROTO},
		{"padding", sizeof(TnAttachRequest) + 15, 1, 1, EPROTO},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(damages); i++) {
		const Damage *damage = &damages[i];
		size_t size = build_named(TN_ATTACH_ATTACH, "work", 1);

		memcpy(request + damage->offset, &damage->value, damage->length);
		ask(*state, request, size, -1);
		tn_close(&answer.mount);
		if (answer.head.status != damage->expected)
			fail_msg("%s: status %d", damage->what, answer.head.status);
		/* Nothing of ours for one that is not understood. */
		assert_int_equal(answer.head.instance_id, 0);
	}
	assert_int_equal(tn_fake.created, 0);
	/* The server is alive, and the undamaged one passes. */
	ask(*state, request, build_named(TN_ATTACH_ATTACH, "work", 1), -1);
	assert_int_equal(answer.head.status, 0);
	tn_close(&answer.mount);
}

static void test_other_version_is_named(void **state)
{
	size_t size = build_named(TN_ATTACH_PING, NULL, 0);
	uint16_t version = 4711;

	memcpy(request + offsetof(TnAttachRequest, version), &version, sizeof(version));
	ask(*state, request, size, -1);
	assert_int_equal(answer.head.status, EPROTONOSUPPORT);
	assert_non_null(strstr(answer.text, "4711"));
	assert_int_equal(answer.head.version, TN_ATTACH_VERSION);
}

static void test_every_truncation(void **state)
{
	size_t size = build_named(TN_ATTACH_ATTACH, "work", 1);

	for (size_t cut = 1; cut < size; cut++) {
		ask(*state, request, cut, -1);
		tn_close(&answer.mount);
		if (answer.head.status != EPROTO)
			fail_msg("%zu bytes: status %d", cut, answer.head.status);
	}
	/* One byte more than it says. */
	request[size] = 0;
	ask(*state, request, size + 1, -1);
	assert_int_equal(answer.head.status, EPROTO);
	assert_int_equal(tn_fake.created, 0);
}

static void test_descriptors(void **state)
{
	TN_AUTOFD userns = open_userns();
	TN_AUTOFD null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct {
		int fds[4];
		size_t n;
		int expected;
	} cases[] = {
		{{-1}, 0, EPERM},
		{{null}, 1, EPERM},
		{{null, userns}, 2, EPERM},
		{{userns, null}, 2, EPROTO},
		{{userns, userns, userns, userns}, 4, EPROTO},
		{{userns}, 1, 0},
	};
	size_t size = build_ephemeral(0);

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TN_AUTOFD sock = dial(*state);

		assert_int_equal(tn_scm_send(sock, request, size, cases[i].fds, cases[i].n), size);
		receive(sock);
		tn_close(&answer.mount);
		if (answer.head.status != cases[i].expected)
			fail_msg("case %zu: status %d", i, answer.head.status);
	}
	assert_int_equal(tn_fake.created, 1);
}

static void test_more_descriptors_than_fit(void **state)
{
	TN_AUTOFD sock = dial(*state);
	char control[CMSG_SPACE(sizeof(int) * 20)] = {0};
	struct iovec part = {.iov_base = request, .iov_len = build_ephemeral(0)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	int userns = open_userns();

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int) * 20);
	for (size_t i = 0; i < 20; i++)
		memcpy(CMSG_DATA(head) + i * sizeof(int), &userns, sizeof(userns));
	assert_true(sendmsg(sock, &message, 0) > 0);
	tn_close(&userns);
	receive(sock);
	assert_int_equal(answer.head.status, EPROTO);
	assert_int_equal(tn_fake.created, 0);
}

/* A request for a nest named after "/", whose device and inode are given as they are, or not. */
static size_t build_from(uint64_t dev, uint64_t ino)
{
	TnAttachRequest head = {.verb = TN_ATTACH_ATTACH};
	struct {
		TnAttachFrom from;
		char path[8];
	} record = {.from = {.dev = dev, .ino = ino}, .path = "/"};
	TnAttachWriter writer;

	tn_attach_begin_request(&writer, request, &head);
	tn_attach_add(&writer, TN_RECORD_FROM, &record, sizeof(record.from) + 2);
	return (size_t)tn_attach_end(&writer);
}

static void test_directory_names(void **state)
{
	TN_AUTOFD dir = open("/", O_PATH | O_CLOEXEC), other = open("/proc", O_PATH | O_CLOEXEC);
	TN_AUTOFD file = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	struct stat st, file_st;

	assert_int_equal(fstat(dir, &st), 0);
	assert_int_equal(fstat(file, &file_st), 0);
	ask(*state, request, build_from(st.st_dev, st.st_ino), other);
	assert_int_equal(answer.head.status, EPROTO);
	ask(*state, request, build_from(st.st_dev, st.st_ino + 1), dir);
	assert_int_equal(answer.head.status, EPROTO);
	ask(*state, request, build_from(file_st.st_dev, file_st.st_ino), file);
	assert_int_equal(answer.head.status, EPROTO);
	assert_int_equal(tn_fake.created, 0);
	ask(*state, request, build_from(st.st_dev, st.st_ino), dir);
	assert_int_equal(answer.head.status, 0);
	tn_close(&answer.mount);
	assert_int_equal(tn_fake.created, 1);
	ask(*state, request, build_from(st.st_dev, st.st_ino), dir);
	assert_int_equal(answer.head.status, 0);
	tn_close(&answer.mount);
	assert_int_equal(tn_fake.created, 1);
}

static void test_other_group_is_refused(void **state)
{
	Fixture *fixture = *state;

	if (geteuid() == 0)
		fixture->env.uid = 12345; /* a root daemon's mounts admit every group */
	fixture->env.gid = getegid() + 1;
	start(fixture);
	ask(fixture, request, build_ephemeral(1), -1);
	assert_int_equal(answer.head.status, EACCES);
	assert_int_equal(tn_fake.created, 0);
}

static void test_connections_per_uid(void **state)
{
	int socks[17];

	for (size_t i = 0; i < TN_ARRAY_LEN(socks); i++)
		socks[i] = dial(*state);
	receive(socks[16]);
	assert_int_equal(answer.head.status, EAGAIN);
	assert_false(has_answer(socks[0], 0));
	/* One of them goes: there is room again. */
	tn_close(&socks[0]);
	ask(*state, request, build_named(TN_ATTACH_PING, NULL, 0), -1);
	assert_int_equal(answer.head.status, 0);
	for (size_t i = 1; i < TN_ARRAY_LEN(socks); i++)
		tn_close(&socks[i]);
}

static void test_connections_in_total(void **state)
{
	int socks[64];
	size_t size = build_named(TN_ATTACH_PING, NULL, 0);
	TN_AUTOFD userns = open_userns();
	TN_AUTOFD late = -1;

	for (size_t i = 0; i < TN_ARRAY_LEN(socks); i++)
		socks[i] = dial(*state);
	late = dial(*state);
	assert_int_equal(tn_scm_send(late, request, size, &userns, 1), size);
	assert_false(has_answer(late, 100));
	tn_close(&socks[7]);
	receive(late);
	assert_int_equal(answer.head.status, 0);
	for (size_t i = 0; i < TN_ARRAY_LEN(socks); i++)
		tn_close(&socks[i]);
}

static void test_silent_connection_ends(void **state)
{
	TN_AUTOFD sock = dial(*state);
	char byte;

	assert_false(has_answer(sock, 3000));
	assert_true(has_answer(sock, 4000));
	assert_int_equal(recv(sock, &byte, 1, 0), 0);
}

static void test_stop_closes_leases(void **state)
{
	Fixture *fixture = *state;
	int lease[2];

	assert_int_equal(pipe2(lease, O_CLOEXEC), 0);
	ask(fixture, request, build_leased(), lease[0]);
	tn_close(&answer.mount);
	tn_close(&lease[0]);
	tn_attach_server_free(fixture->server);
	fixture->server = NULL;
	assert_int_equal(tn_fake.detached, 1);
	assert_true(write(lease[1], "x", 1) < 0); /* no reader is left */
	tn_close(&lease[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ping, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ephemeral, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_named_is_found_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_create, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_repeated_request_undoes_the_first, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_repeated_named_request_still_says_created,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost_reply_is_undone, set_up_stopped,
						tear_down),
		cmocka_unit_test_setup_teardown(test_lease_end_detaches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lease_names, set_up_stopped, tear_down),
		cmocka_unit_test_setup_teardown(test_lease_names_later, set_up_stopped, tear_down),
		cmocka_unit_test(test_lease_names_of_before),
		cmocka_unit_test_setup_teardown(test_bad_leases, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_errors_of_the_registry, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_evicted_meanwhile_is_made_anew, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_reply_that_does_not_fit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mount_points, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_mount_point_makes_nothing, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_damaged_fields, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_version_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_every_truncation, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_descriptors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_more_descriptors_than_fit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_directory_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_group_is_refused, set_up_stopped,
						tear_down),
		cmocka_unit_test_setup_teardown(test_connections_per_uid, set_up_system, tear_down),
		cmocka_unit_test_setup_teardown(test_connections_in_total, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_silent_connection_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop_closes_leases, set_up, tear_down),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
