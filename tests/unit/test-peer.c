/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What the keeper says about the peer; how often it was asked. */
static struct {
	int error;
	uint64_t dev, ino;
	unsigned asked;
} keeper;

int tn_keeper_peer_userns(TnKeeperLink *link, int pidfd, uint64_t *ret_dev, uint64_t *ret_ino)
{
	keeper.asked++;
	assert_true(pidfd >= 0);
	*ret_dev = keeper.dev;
	*ret_ino = keeper.ino;
	return keeper.error;
}

static TnWorkerEnv own_env(TnScope scope)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/user", &st), 0);
	return (TnWorkerEnv){
		.scope = scope,
		.uid = geteuid(),
		.gid = getegid(),
		.userns_dev = st.st_dev,
		.userns_ino = st.st_ino,
	};
}

static int check(const TnWorkerEnv *env, const TnPeer *peer, int userns)
{
	char why[256] = "";
	int pair[2], r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	r = tn_peer_check(env, pair[0], peer, userns, why, sizeof(why));
	close(pair[0]);
	close(pair[1]);
	assert_true(r == 0 || (why[0] && !strchr(why, '\n')));
	return r;
}

static void test_get(void **state)
{
	int pair[2];
	TnPeer peer;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(tn_peer_get(pair[0], &peer), 0);
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.gid, getegid());
	assert_int_equal(peer.pid, getpid());
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(tn_peer_get(-1, &peer), -EBADF);
}

static void test_descriptors(void **state)
{
	static const struct {
		const char *path; /* NULL: none */
		int flags, expected;
	} cases[] = {
		{"/proc/self/ns/user", O_RDONLY, 0},
		{NULL, 0, -EPERM},
		{"/dev/null", O_RDONLY, -EPERM},
		{"/proc/self/ns/mnt", O_RDONLY, -EPERM},
		{"/proc/self/ns/pid", O_RDONLY, -EPERM},
		{"/proc/self/status", O_RDONLY, -EPERM},
		/* no ioctl is possible on it, so it proves nothing */
		{"/proc/self/ns/user", O_PATH, -EPERM},
	};
	TnWorkerEnv env = own_env(TN_SCOPE_USER);
	TnPeer peer = {.uid = geteuid(), .gid = getegid()};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TN_AUTOFD fd = cases[i].path ? open(cases[i].path, cases[i].flags | O_CLOEXEC) : -1;

		if (check(&env, &peer, fd) != cases[i].expected)
			fail_msg("%s", cases[i].path ? cases[i].path : "none");
	}
}

/* A descriptor of a user namespace below ours, or -1 where none can be made. */
static int open_other_userns(void)
{
	int ready[2], fd = -1;
	char path[40], byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], "x", 1) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	close(ready[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd;
}

static void test_other_namespace(void **state)
{
	TnWorkerEnv env = own_env(TN_SCOPE_USER);
	TnPeer peer = {.uid = geteuid(), .gid = getegid()};
	TN_AUTOFD other = open_other_userns();

	if (other < 0) {
		print_message("user namespaces cannot be made here\n");
		skip();
	}
	assert_int_equal(check(&env, &peer, other), -EPERM);
	/* The check follows what was recorded, not what this process is in. */
	{
		struct stat st;

		assert_int_equal(fstat(other, &st), 0);
		env.userns_ino = st.st_ino;
		env.userns_dev = st.st_dev;
		assert_int_equal(check(&env, &peer, other), 0);
	}
}

static void test_other_uid(void **state)
{
	TnWorkerEnv env = own_env(TN_SCOPE_USER);
	TnPeer peer = {.uid = geteuid() + 1, .gid = getegid()};
	TN_AUTOFD own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	assert_int_equal(check(&env, &peer, own), -EACCES);
	env.scope = TN_SCOPE_SYSTEM;
	assert_int_equal(check(&env, &peer, own), 0);
}

static void test_kernels_word(void **state)
{
	TnWorkerEnv env = own_env(TN_SCOPE_SYSTEM);
	TnPeer peer = {.uid = geteuid(), .gid = getegid()};
	TN_AUTOFD own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	const struct {
		int error;
		uint64_t ino;
		int expected;
	} cases[] = {
		{0, env.userns_ino, 0}, {0, env.userns_ino + 1, -EPERM},
		{-ESRCH, 0, -EPERM},    {-EIO, 0, -EPERM},
		{-EACCES, 0, 0},        {-EPERM, 0, 0},
	};

	keeper.asked = 0;
	assert_int_equal(check(&env, &peer, own), 0);
	assert_int_equal(keeper.asked, 0);
	env.use_peer_pidfd = true;
	keeper.dev = env.userns_dev;
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		keeper.asked = 0;
		keeper.error = cases[i].error;
		keeper.ino = cases[i].ino;
		if (i == 0) {
			assert_int_equal(check(&env, &peer, own), 0);
			if (!keeper.asked) {
				print_message("this kernel has no SO_PEERPIDFD\n");
				skip();
			}
		}
		if (check(&env, &peer, own) != cases[i].expected)
			fail_msg("case %zu", i);
	}
}

static void test_group(void **state)
{
	static const struct {
		TnScope scope;
		uid_t uid;
		gid_t daemon, peer;
		int expected;
	} cases[] = {
		{TN_SCOPE_USER, 1000, 100, 100, 0},
		{TN_SCOPE_USER, 1000, 1001, 100, -EACCES},
		{TN_SCOPE_USER, 0, 0, 100, 0},
		{TN_SCOPE_SYSTEM, 0, 0, 100, 0},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TnWorkerEnv env = {
			.scope = cases[i].scope, .uid = cases[i].uid, .gid = cases[i].daemon};
		TnPeer peer = {.uid = cases[i].uid, .gid = cases[i].peer};
		char why[256] = "";

		assert_int_equal(tn_peer_check_group(&env, &peer, why, sizeof(why)),
				 cases[i].expected);
		if (cases[i].expected < 0) {
			assert_non_null(strstr(why, "gid 100,"));
			assert_non_null(strstr(why, "1001"));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_other_namespace),
		cmocka_unit_test(test_other_uid),
		cmocka_unit_test(test_kernels_word),
		cmocka_unit_test(test_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
