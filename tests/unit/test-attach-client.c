/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * attach-client against a scripted daemon: what it sends, how it asks again, and what it
 * makes of every wrong answer. The daemon here is a child that plays one script per
 * connection; no mount, no root.
 */
#include "attach-client.h"

#include "macros.h"
#include "message.h"
#include "scm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* What the daemon does with one connection. */
typedef enum Act {
	ACT_END = 0,
	ACT_ANSWER,  /* a good answer with one descriptor */
	ACT_HANG_UP, /* read the request, close */
	ACT_NO_FD,   /* a good answer without its descriptor */
	ACT_TWO_FDS,
	ACT_REFUSE,      /* EACCES with a text */
	ACT_REFUSE_BARE, /* EBUSY without one */
	ACT_OTHER_VERSION,
	ACT_RUBBISH,
	ACT_POINTS, /* a good answer with states of mount points */
} Act;

#define ACTS_MAX 4

typedef struct Fixture {
	char dir[64];
	char runtime[80], store[80], leases[96];
	int listener;
	int log; /* what the daemon received, for the test to look at */
	pid_t daemon;
	size_t open_before;
	char said[4096];
} Fixture;

/* One received request, as the daemon writes it to the log. */
typedef struct Received {
	uint8_t request_id[16];
	uint32_t flags;
	uint64_t bytes;
	size_t n_fds;
	ino_t userns;
	mode_t lease_mode;
	ino_t lease_ino;
	char records[256]; /* "type=text " ... */
} Received;

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void describe_records(const uint8_t *message, size_t size, char *ret, size_t ret_size)
{
	size_t offset = 0;
	size_t used = 0;
	TnAttachRecord record;

	while (tn_attach_next(message, size, false, &offset, &record)) {
		TnMountPointKind kind;
		const char *text = record.type == TN_RECORD_MOUNT_POINT
					   ? tn_attach_mount_point(&record, &kind)
					   : record.data;

		used += (size_t)snprintf(ret + used, ret_size - used, "%d=%s ", record.type, text);
	}
}

/* Runs in the child. False: the request was no good, and so the test must fail. */
static bool note_request(const Fixture *fixture, const uint8_t *message, ssize_t size,
			 const int *fds, size_t n_fds)
{
	Received received = {.n_fds = n_fds};
	TnAttachRequest head;
	struct stat st;

	if (size <= 0 || tn_attach_check_request(message, (size_t)size, &head) < 0)
		return false;
	memcpy(received.request_id, head.request_id, sizeof(head.request_id));
	received.flags = head.flags;
	received.bytes = head.bytes;
	describe_records(message, (size_t)size, received.records, sizeof(received.records));
	if (n_fds > 0 && fstat(fds[0], &st) == 0)
		received.userns = st.st_ino;
	if (n_fds > 1 && fstat(fds[1], &st) == 0) {
		received.lease_mode = st.st_mode;
		received.lease_ino = st.st_ino;
	}
	return write(fixture->log, &received, sizeof(received)) == sizeof(received);
}

static void answer(int sock, Act act)
{
	static uint8_t buffer[TN_ATTACH_MAX];
	static const uint32_t states[] = {TN_POINT_PINNED, TN_POINT_DENIED};
	TnAttachReply head = {.nest_id = 5, .store_ino = 6, .runtime_ino = 7};
	int fds[2] = {open("/", O_RDONLY | O_CLOEXEC), open("/", O_RDONLY | O_CLOEXEC)};
	size_t n_fds = act == ACT_TWO_FDS ? 2 : act == ACT_ANSWER || act == ACT_POINTS ? 1 : 0;
	TnAttachWriter writer;
	int size;

	head.status = act == ACT_REFUSE ? EACCES : act == ACT_REFUSE_BARE ? EBUSY : 0;
	tn_attach_begin_reply(&writer, buffer, &head);
	if (act == ACT_REFUSE)
		tn_attach_add_string(&writer, TN_RECORD_TEXT, "nest: box: not yours\nat all");
	for (size_t i = 0; act == ACT_POINTS && i < TN_ARRAY_LEN(states); i++)
		tn_attach_add(&writer, TN_RECORD_POINT_STATE, &states[i], sizeof(states[i]));
	size = tn_attach_end(&writer);
	if (act == ACT_OTHER_VERSION)
		buffer[offsetof(TnAttachReply, version)] = 9;
	if (act == ACT_RUBBISH)
		size = 3;
	tn_scm_send(sock, buffer, (size_t)size, fds, n_fds);
	close(fds[0]);
	close(fds[1]);
}

_Noreturn static void play(const Fixture *fixture, const Act *acts)
{
	static uint8_t buffer[TN_ATTACH_MAX];
	size_t at = 0;

	for (;;) {
		int sock = accept(fixture->listener, NULL, NULL);
		/* the last act is played again and again */
		Act act = acts[at];
		int fds[TN_SCM_MAX_FDS];
		size_t n_fds;
		ssize_t size = tn_scm_recv(sock, buffer, sizeof(buffer), fds, &n_fds);

		if (!note_request(fixture, buffer, size, fds, n_fds))
			_exit(1);
		if (acts[at + 1] != ACT_END)
			at++;
		if (act != ACT_HANG_UP)
			answer(sock, act);
		for (size_t i = 0; i < TN_SCM_MAX_FDS; i++)
			tn_close(&fds[i]);
		close(sock);
	}
}

static int setup(void **state)
{
	static Fixture fixture;
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	fixture = (Fixture){.dir = "/dev/shm/tn-attach-XXXXXX"};
	if (!mkdtemp(fixture.dir))
		return -1;
	snprintf(fixture.runtime, sizeof(fixture.runtime), "%s/r", fixture.dir);
	snprintf(fixture.store, sizeof(fixture.store), "%s/s", fixture.dir);
	snprintf(fixture.leases, sizeof(fixture.leases), "%s/leases", fixture.runtime);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/attach.sock", fixture.runtime);
	if (mkdir(fixture.runtime, 0700) < 0 || mkdir(fixture.store, 0700) < 0 ||
	    mkdir(fixture.leases, 0700) < 0)
		return -1;
	fixture.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	fixture.log = memfd_create("log", MFD_CLOEXEC);
	if (bind(fixture.listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fixture.listener, 4) < 0)
		return -1;
	setenv("TMPNEST_RUNTIME_DIR", fixture.runtime, 1);
	setenv("TMPNEST_STORE_DIR", fixture.store, 1);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	Fixture *fixture = *state;
	char path[128];
	int status = 0;

	if (fixture->daemon > 0) {
		kill(fixture->daemon, SIGTERM);
		waitpid(fixture->daemon, &status, 0);
	}
	close(fixture->listener);
	close(fixture->log);
	snprintf(path, sizeof(path), "%s/attach.sock", fixture->runtime);
	unlink(path);
	if (rmdir(fixture->leases) < 0 || rmdir(fixture->runtime) < 0 ||
	    rmdir(fixture->store) < 0 || rmdir(fixture->dir) < 0)
		return -1;
	return !WIFEXITED(status) || WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* Attaches while the daemon plays acts; what was said is kept in fixture->said. */
static int attach(Fixture *fixture, const Act *acts, const TnAttachSpec *spec, TnAttached *ret)
{
	static const TnDaemonChoice choice;
	int stderr_before = dup(STDERR_FILENO);
	int memory = memfd_create("said", MFD_CLOEXEC);
	ssize_t n;
	int r;

	fixture->daemon = fork();
	if (fixture->daemon == 0)
		play(fixture, acts);
	fixture->open_before = count_entries("/proc/self/fd");
	dup2(memory, STDERR_FILENO);
	r = tn_attach(ret, &choice, spec);
	dup2(stderr_before, STDERR_FILENO);
	n = pread(memory, fixture->said, sizeof(fixture->said) - 1, 0);
	fixture->said[n > 0 ? n : 0] = '\0';
	close(memory);
	/* the copy of stderr and the memory file, which count_entries() saw, are closed below */
	if (r < 0)
		assert_int_equal(count_entries("/proc/self/fd"), fixture->open_before - 1);
	close(stderr_before);
	return r;
}

static Received received(const Fixture *fixture, int i)
{
	Received result;

	assert_int_equal(pread(fixture->log, &result, sizeof(result), i * (off_t)sizeof(result)),
			 sizeof(result));
	return result;
}

static void request_and_answer(void **state)
{
	static const Act acts[] = {ACT_ANSWER, ACT_END};
	Fixture *fixture = *state;
	TnWords deny = {0};
	TnMountPoint point = {TN_MOUNT_POINT_DIR, (char[]){"/tmp/ws"}};
	TnAttachSpec spec = {
		.name = "box",
		.flags = TN_ATTACH_DURABLE,
		.bytes = 4096,
		.deny = &deny,
		.points = &point,
		.n_points = 1,
		.lease = true,
	};
	TnAttached attached;
	struct stat st;
	Received got;

	tn_words_add(&deny, "/tmp/a");
	assert_int_equal(attach(fixture, acts, &spec, &attached), 0);
	assert_string_equal(fixture->said, "");
	assert_int_equal(attached.head.nest_id, 5);
	assert_string_equal(attached.paths.runtime_dir, fixture->runtime);
	assert_int_equal(fcntl(attached.mount, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(attached.lease.write_end, F_GETFD), FD_CLOEXEC);
	assert_int_equal(attached.lease.read_end, -1);

	got = received(fixture, 0);
	assert_int_equal(got.flags, TN_ATTACH_DURABLE | TN_ATTACH_HAS_LEASE);
	assert_int_equal(got.bytes, 4096);
	assert_int_equal(got.n_fds, 2);
	assert_int_equal(stat("/proc/self/ns/user", &st), 0);
	assert_int_equal(got.userns, st.st_ino);
	assert_true(S_ISFIFO(got.lease_mode));
	assert_int_equal(got.lease_mode & 0777, 0600);
	assert_int_equal(fstat(attached.lease.write_end, &st), 0);
	assert_int_equal(got.lease_ino, st.st_ino);
	assert_string_equal(got.records, "1=box 3=/tmp/a 5=/tmp/ws ");

	/* its name is there for the daemon, until nobody holds it */
	assert_int_equal(count_entries(fixture->leases), 3);
	tn_attached_clear(&attached);
	assert_int_equal(count_entries(fixture->leases), 2);
	tn_words_clear(&deny);
}

/* The one who listens is not root: he gets nothing, whatever he would answer. */
static void another_users_socket(void **state)
{
	static const Act acts[] = {ACT_ANSWER, ACT_END};
	Fixture *fixture = *state;
	TnAttachSpec spec = {.name = "box", .lease = true};
	TnAttached attached;
	struct stat st;

	if (geteuid() != 0)
		skip(); /* nobody else's socket can be made */
	/* the kernel notes who called listen() last */
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(listen(fixture->listener, 4), 0);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(attach(fixture, acts, &spec, &attached), -EPERM);
	assert_non_null(strstr(fixture->said, "uid 65534 listens there, not root"));
	assert_int_equal(fstat(fixture->log, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(count_entries(fixture->leases), 2);
	/* it saw an empty connection, which is no request */
	kill(fixture->daemon, SIGKILL);
	waitpid(fixture->daemon, NULL, 0);
	fixture->daemon = 0;
}

static void ephemeral_without_lease(void **state)
{
	static const Act acts[] = {ACT_ANSWER, ACT_END};
	Fixture *fixture = *state;
	TnAttachSpec spec = {.flags = TN_ATTACH_KEEP};
	TnAttached attached;
	Received got;

	assert_int_equal(attach(fixture, acts, &spec, &attached), 0);
	got = received(fixture, 0);
	assert_int_equal(got.flags, TN_ATTACH_KEEP | TN_ATTACH_EPHEMERAL);
	assert_int_equal(got.n_fds, 1);
	assert_string_equal(got.records, "");
	assert_int_equal(attached.lease.write_end, -1);
	assert_int_equal(count_entries(fixture->leases), 2);
	tn_attached_clear(&attached);
}

/* A worker that dies twice: the same request three times, with the same lease. */
static void asks_again(void **state)
{
	static const Act acts[] = {ACT_HANG_UP, ACT_HANG_UP, ACT_ANSWER, ACT_END};
	Fixture *fixture = *state;
	TnAttachSpec spec = {.name = "box", .lease = true};
	TnAttached attached;
	Received first;

	assert_int_equal(attach(fixture, acts, &spec, &attached), 0);
	assert_string_equal(fixture->said, "");
	first = received(fixture, 0);
	for (int i = 1; i < 3; i++) {
		Received next = received(fixture, i);

		assert_memory_equal(next.request_id, first.request_id, sizeof(first.request_id));
		assert_int_equal(next.lease_ino, first.lease_ino);
		assert_string_equal(next.records, first.records);
	}
	assert_int_equal(count_entries(fixture->leases), 3);
	tn_attached_clear(&attached);
}

static void gives_up(void **state)
{
	static const Act acts[] = {ACT_HANG_UP, ACT_END};
	Fixture *fixture = *state;
	TnAttachSpec spec = {.name = "box", .lease = true};
	TnAttached attached;
	struct timespec start, end;
	int64_t took;

	clock_gettime(CLOCK_MONOTONIC, &start);
	assert_int_equal(attach(fixture, acts, &spec, &attached), -ECONNRESET);
	clock_gettime(CLOCK_MONOTONIC, &end);
	took = (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000;
	assert_in_range(took, 2900, 10000);
	assert_non_null(strstr(fixture->said, "hangs up"));
	assert_int_equal(count_entries(fixture->leases), 2);
}

/* Each is one line on stderr, the right number, nothing left open, no lease left. */
static void wrong_answers(void **state)
{
	static const struct {
		Act acts[2];
		int result;
		const char *said;
	} cases[] = {
		{{ACT_REFUSE}, -EACCES, "tmpnest: nest: box: not yours\\x0aat all\n"},
		{{ACT_REFUSE_BARE}, -EBUSY, "tmpnest: attach: box: "},
		{{ACT_NO_FD}, -EPROTO, "0 descriptors"},
		{{ACT_TWO_FDS}, -EPROTO, "2 descriptors"},
		{{ACT_OTHER_VERSION}, -EPROTONOSUPPORT, "version 9"},
		{{ACT_RUBBISH}, -EPROTO, "not an answer"},
	};
	Fixture *fixture = *state;

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TnAttachSpec spec = {.name = "box", .lease = true};
		TnAttached attached;
		int status;

		assert_int_equal(attach(fixture, cases[i].acts, &spec, &attached), cases[i].result);
		if (!strstr(fixture->said, cases[i].said))
			fail_msg("case %zu: %s", i, fixture->said);
		assert_ptr_equal(strchr(fixture->said, '\n'), strrchr(fixture->said, '\n'));
		assert_int_equal(count_entries(fixture->leases), 2);
		kill(fixture->daemon, SIGTERM);
		waitpid(fixture->daemon, &status, 0);
		fixture->daemon = 0;
	}
}

static void point_states(void **state)
{
	static const Act acts[] = {ACT_POINTS, ACT_END};
	Fixture *fixture = *state;
	TnAttachSpec spec = {.name = "box"};
	TnAttached attached;

	assert_int_equal(attach(fixture, acts, &spec, &attached), 0);
	assert_int_equal(tn_attached_point_state(&attached, 0), TN_POINT_PINNED);
	assert_int_equal(tn_attached_point_state(&attached, 1), TN_POINT_DENIED);
	assert_int_equal(tn_attached_point_state(&attached, 2), TN_POINT_PINNED);
	tn_attached_clear(&attached);
}

/* Too much for one message is said before anybody is asked. */
static void too_much(void **state)
{
	static const Act acts[] = {ACT_ANSWER, ACT_END};
	Fixture *fixture = *state;
	TnWords deny = {0};
	TnAttachSpec spec = {.name = "box", .deny = &deny};
	TnAttached attached;

	for (int i = 0; i <= TN_ATTACH_RULES_MAX; i++)
		tn_words_add(&deny, "/x");
	assert_int_equal(attach(fixture, acts, &spec, &attached), -E2BIG);
	assert_non_null(strstr(fixture->said, "too many rules"));
	assert_int_equal(lseek(fixture->log, 0, SEEK_END), 0);
	tn_words_clear(&deny);
}

/* Without the directory for leases a nameless one does. */
static void nameless_lease(void **state)
{
	static const Act acts[] = {ACT_ANSWER, ACT_END};
	Fixture *fixture = *state;
	TnAttachSpec spec = {.name = "box", .lease = true};
	TnAttached attached;
	Received got;

	assert_int_equal(rmdir(fixture->leases), 0);
	assert_int_equal(attach(fixture, acts, &spec, &attached), 0);
	got = received(fixture, 0);
	assert_true(S_ISFIFO(got.lease_mode));
	assert_true(attached.lease.write_end >= 0);
	tn_attached_clear(&attached);
	assert_int_equal(mkdir(fixture->leases, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(request_and_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(another_users_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(ephemeral_without_lease, setup, teardown),
		cmocka_unit_test_setup_teardown(asks_again, setup, teardown),
		cmocka_unit_test_setup_teardown(gives_up, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(point_states, setup, teardown),
		cmocka_unit_test_setup_teardown(too_much, setup, teardown),
		cmocka_unit_test_setup_teardown(nameless_lease, setup, teardown),
	};

	return cmocka_run_group_tests_name("attach-client", tests, NULL, NULL);
}
