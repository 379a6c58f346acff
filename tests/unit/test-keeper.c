/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The keeper's directories, and its life with workers that do little: each test runs a
 * whole keeper in a child process.
 */
#include "descriptors.h"
#include "keeper-dirs.h"
#include "keeper-worker.h"
#include "keeper.h"
#include "macros.h"
#include "units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

/* Not below /tmp or another world-writable directory, where a daemon must not be. */
static const char *place;

typedef struct Fixture {
	char root[64];
	TnKeeperConfig config;
} Fixture;

static char why[512];

static int set_up(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));

	snprintf(fixture->root, sizeof(fixture->root), "%s/tn-test-XXXXXX", place);
	fixture->config.store_uid = geteuid();
	assert_non_null(mkdtemp(fixture->root));
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *fixture = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", fixture->root);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

static char *below(const Fixture *fixture, const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", fixture->root, name);
	return path;
}

static const TnPaths *paths_at(Fixture *fixture, TnScope scope, const char *runtime,
			       const char *store)
{
	assert_int_equal(tn_paths_init(&fixture->config.paths, scope, below(fixture, runtime),
				       below(fixture, store), why, sizeof(why)),
			 0);
	return &fixture->config.paths;
}

static int open_and_close(Fixture *fixture, TnScope scope, const char *runtime, const char *store)
{
	TnKeeperDirs dirs;
	int r;

	why[0] = '\0';
	r = tn_keeper_dirs_open(&dirs, paths_at(fixture, scope, runtime, store),
				fixture->config.store_uid, why, sizeof(why));
	if (r == 0) {
		tn_keeper_dirs_retire(&dirs);
		tn_keeper_dirs_close(&dirs);
	} else {
		assert_true(why[0] && !strchr(why, '\n'));
	}
	return r;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

/* Directories */

static void test_modes(void **state)
{
	static const struct {
		TnScope scope;
		mode_t runtime, leases, sock;
	} cases[] = {
		{TN_SCOPE_USER, 0700, 0700, 0600},
		{TN_SCOPE_SYSTEM, 0755, 01733, 0666},
	};
	Fixture *fixture = *state;

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		const TnPaths *paths = paths_at(fixture, cases[i].scope, "a/run", "b/store");
		mode_t mask = umask(077);
		TnKeeperDirs dirs;

		assert_int_equal(tn_keeper_dirs_open(&dirs, paths, geteuid(), why, sizeof(why)), 0);
		umask(mask);
		assert_int_equal(mode_of(paths->runtime_dir), cases[i].runtime);
		assert_int_equal(mode_of(paths->store_dir), 0700);
		assert_int_equal(mode_of(paths->leases_dir), cases[i].leases);
		assert_int_equal(mode_of(paths->attach_socket), cases[i].sock);
		assert_int_equal(mode_of(paths->control_socket), cases[i].sock);
		tn_keeper_dirs_retire(&dirs);
		tn_keeper_dirs_close(&dirs);
		assert_int_equal(mode_of(paths->attach_socket), 0);
		assert_int_equal(mode_of(paths->control_socket), 0);
		assert_int_equal(mode_of(below(fixture, "a/run/pid")), 0);
	}
}

static void test_loose_store_is_tightened(void **state)
{
	assert_int_equal(mkdir(below(*state, "store"), 0755), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "store"), 0);
	assert_int_equal(mode_of(below(*state, "store")), 0700);
}

static void test_directory_in_other_use_is_left_alone(void **state)
{
	assert_int_equal(mkdir(below(*state, "store"), 0700), 0);
	assert_int_equal(mkdir(below(*state, "store/photos"), 0700), 0);
	assert_int_equal(chmod(below(*state, "store"), 0755), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "store"), -EPERM);
	assert_int_equal(mode_of(below(*state, "store")), 0755);
}

static void test_owner(void **state)
{
	if (geteuid() != 0) {
		print_message("needs root to make a directory of another uid\n");
		skip();
	}
	assert_int_equal(mkdir(below(*state, "store"), 0700), 0);
	assert_int_equal(chown(below(*state, "store"), 12345, 12345), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "store"), -EPERM);
	assert_non_null(strstr(why, "12345"));
}

static void test_parents(void **state)
{
	assert_int_equal(mkdir(below(*state, "open"), 0700), 0);
	assert_int_equal(chmod(below(*state, "open"), 0777), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "open/store"), -EPERM);
	/* Sticky or not: what others put there first would be in our place. */
	assert_int_equal(chmod(below(*state, "open"), 01777), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "open/store"), -EPERM);
	assert_non_null(strstr(why, "writable for all"));
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "open/run", "store"), -EPERM);
	assert_int_equal(chmod(below(*state, "open"), 0770), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "open/store"), 0);
}

static void test_parents_of_others(void **state)
{
	if (geteuid() != 0) {
		print_message("needs root to make a directory of another uid\n");
		skip();
	}
	assert_int_equal(mkdir(below(*state, "theirs"), 0755), 0);
	assert_int_equal(chown(below(*state, "theirs"), 12345, 0), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_SYSTEM, "run", "theirs/store"), -EPERM);
	assert_non_null(strstr(why, "12345"));
	/* A link's way counts as it is resolved. */
	assert_int_equal(symlink("theirs", below(*state, "link")), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_SYSTEM, "run", "link/store"), -EPERM);
	assert_int_equal(chown(below(*state, "theirs"), 0, 12345), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_SYSTEM, "run", "theirs/store"), 0);
	assert_int_equal(chmod(below(*state, "theirs"), 0775), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_SYSTEM, "run", "theirs/store"), -EPERM);
	assert_non_null(strstr(why, "group 12345"));
}

static void test_store_of_a_user_for_nothing_else(void **state)
{
	Fixture *fixture = *state;
	struct stat st;

	if (geteuid() != 0) {
		print_message("needs root to give a directory away\n");
		skip();
	}
	fixture->config.store_uid = 12345;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(open_and_close(fixture, TN_SCOPE_SYSTEM, "run", "store"), 0);
		assert_int_equal(stat(below(fixture, "store"), &st), 0);
		assert_int_equal(st.st_uid, 12345);
		assert_int_equal(st.st_mode & 07777, 0700);
		assert_int_equal(stat(below(fixture, "run"), &st), 0);
		assert_int_equal(st.st_uid, 0);
	}
}

static void test_links(void **state)
{
	/* The directory itself must not be a link; what a link leads to counts. */
	assert_int_equal(mkdir(below(*state, "real"), 0700), 0);
	assert_int_equal(symlink("real", below(*state, "store")), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "store"), -ENOTDIR);
	assert_int_equal(symlink("real", below(*state, "alias")), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "real", "alias/store"), -EINVAL);
	assert_int_equal(symlink("/tmp", below(*state, "temporary")), 0);
	assert_int_equal(open_and_close(*state, TN_SCOPE_USER, "run", "temporary/tn-test-store"),
			 -EINVAL);
	assert_int_equal(rmdir("/tmp/tn-test-store"), 0);
}

static void test_stale_and_foreign_sockets(void **state)
{
	Fixture *fixture = *state;
	const TnPaths *paths = paths_at(fixture, TN_SCOPE_USER, "run", "store");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(mkdir(paths->runtime_dir, 0700), 0);
	strcpy(address.sun_path, paths->attach_socket);
	assert_int_equal(bind(sock, (void *)&address, sizeof(address)), 0);
	tn_close(&sock);
	assert_int_equal(open_and_close(fixture, TN_SCOPE_USER, "run", "store"), 0);

	sock = open(paths->control_socket, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	tn_close(&sock);
	assert_int_equal(open_and_close(fixture, TN_SCOPE_USER, "run", "store"), -EEXIST);
	assert_int_equal(mode_of(paths->control_socket), 0600);
	assert_int_equal(mode_of(paths->attach_socket), 0);
}

static void test_locks(void **state)
{
	Fixture *fixture = *state;
	TnPaths paths = *paths_at(fixture, TN_SCOPE_USER, "run", "store");
	char pid[16];
	TnKeeperDirs dirs;

	assert_int_equal(tn_keeper_dirs_open(&dirs, &paths, geteuid(), why, sizeof(why)), 0);
	snprintf(pid, sizeof(pid), "pid %d", getpid());
	assert_int_equal(open_and_close(fixture, TN_SCOPE_USER, "run", "store2"), -EALREADY);
	assert_non_null(strstr(why, pid));
	/* The first one's sockets are still there. */
	assert_int_equal(mode_of(paths.attach_socket), 0600);
	assert_int_equal(open_and_close(fixture, TN_SCOPE_USER, "run2", "store"), -EBUSY);
	assert_non_null(strstr(why, pid));
	tn_keeper_dirs_retire(&dirs);
	tn_keeper_dirs_close(&dirs);
	assert_int_equal(open_and_close(fixture, TN_SCOPE_USER, "run2", "store"), 0);
}

/* Life. Workers talk to the tests through files in the runtime directory. */

static void mark(const TnWorkerEnv *env, const char *name)
{
	int fd = openat(env->runtime, name, O_CREAT | O_WRONLY | O_CLOEXEC | O_APPEND, 0600);

	if (write(fd, ".", 1) < 0)
		_exit(9);
	close(fd);
}

static int wait_for_stop(const TnWorkerEnv *env)
{
	struct pollfd poll_fd = {.fd = env->stop_event, .events = POLLIN};

	return poll(&poll_fd, 1, -1) == 1 ? 0 : 1;
}

static int good_worker(TnWorkerEnv *env)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	env->keeper = tn_keeper_link_new(env->link_socket);
	/* What a worker has open when it dies; the test counts. */
	for (int i = 0; i < 5; i++)
		if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
			return 9;
	tn_keeper_ready(env->keeper);
	mark(env, "served");
	return wait_for_stop(env);
}

static int failing_worker(TnWorkerEnv *env)
{
	env->keeper = tn_keeper_link_new(env->link_socket);
	tn_keeper_failed(env->keeper, "store: is made of cheese");
	return 1;
}

static int crashing_worker(TnWorkerEnv *env)
{
	kill(getpid(), SIGKILL);
	return 0;
}

static int retiring_worker(TnWorkerEnv *env)
{
	env->keeper = tn_keeper_link_new(env->link_socket);
	tn_keeper_ready(env->keeper);
	tn_keeper_stopping(env->keeper);
	return 0;
}

static int deaf_worker(TnWorkerEnv *env)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	env->keeper = tn_keeper_link_new(env->link_socket);
	tn_keeper_ready(env->keeper);
	mark(env, "served");
	pause();
	return 0;
}

/* A keeper in a child; what it says about a failed start comes out of *ret_why. */
static pid_t start(Fixture *fixture, int (*worker)(TnWorkerEnv *), int *ret_why)
{
	int pipes[2];
	pid_t pid;

	paths_at(fixture, TN_SCOPE_USER, "run", "store");
	fixture->config.worker = worker;
	fixture->config.idle_timeout = TN_UNLIMITED;
	fixture->config.log_to_file = true;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		why[0] = '\0';
		if (tn_keeper_run(&fixture->config, why, sizeof(why)) == 0)
			_exit(0);
		_exit(write(pipes[1], why, strlen(why)) < 0 ? 2 : 1);
	}
	close(pipes[1]);
	*ret_why = pipes[0];
	return pid;
}

static int finish(pid_t pid, int *why_pipe)
{
	int status;
	ssize_t n = read(*why_pipe, why, sizeof(why) - 1);

	why[n > 0 ? n : 0] = '\0';
	tn_close(why_pipe);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static off_t marked(const Fixture *fixture, const char *name)
{
	struct stat st;

	return stat(below(fixture, name), &st) == 0 ? st.st_size : 0;
}

static void wait_until_marked(const Fixture *fixture, const char *name, off_t times)
{
	for (int i = 0; i < 5000 && marked(fixture, name) < times; i++)
		usleep(1000);
	assert_int_equal(marked(fixture, name), times);
}

static void wait_until_served(const Fixture *fixture, off_t times)
{
	wait_until_marked(fixture, "run/served", times);
}

/* The keeper's children in the order of their start; 0: it has none. */
static void children_of(pid_t pid, pid_t *ret_first, pid_t *ret_last)
{
	char path[64], text[64] = "", *at = text;
	TN_AUTOFD fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*ret_first = *ret_last = 0;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		return;
	*ret_first = *ret_last = (pid_t)strtol(text, &at, 10);
	while (*at == ' ' && at[1])
		*ret_last = (pid_t)strtol(at, &at, 10);
}

static pid_t child_of(pid_t pid)
{
	pid_t first, last;

	children_of(pid, &first, &last);
	return first;
}

static pid_t last_child_of(pid_t pid)
{
	pid_t first, last;

	children_of(pid, &first, &last);
	return last;
}

static void need_namespaces(void **state)
{
	int pipe;
	pid_t pid = start(*state, retiring_worker, &pipe);

	if (finish(pid, &pipe) != 0) {
		print_message("%s\n", why);
		skip();
	}
}

static void test_stop(void **state)
{
	int pipe;
	pid_t pid;

	need_namespaces(state);
	pid = start(*state, good_worker, &pipe);
	wait_until_served(*state, 1);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(finish(pid, &pipe), 0);
	assert_int_equal(mode_of(below(*state, "run/attach.sock")), 0);
	assert_int_equal(mode_of(below(*state, "run/control.sock")), 0);
	assert_int_equal(mode_of(below(*state, "run/pid")), 0);
}

static void test_worker_is_replaced(void **state)
{
	int pipe;
	pid_t pid, first, second;

	need_namespaces(state);
	pid = start(*state, good_worker, &pipe);
	wait_until_served(*state, 1);
	first = child_of(pid);
	assert_int_equal(kill(first, SIGKILL), 0);
	wait_until_served(*state, 2);
	second = child_of(pid);
	assert_int_not_equal(second, first);
	assert_int_equal(kill(second, SIGKILL), 0);
	wait_until_served(*state, 3);
	assert_int_equal(mode_of(below(*state, "run/attach.sock")), 0600);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(finish(pid, &pipe), 0);
}

/* One that gives signs of life and has a view, for which another one is kept in waiting. */
static int viewing_worker(TnWorkerEnv *env)
{
	struct pollfd poll_fd = {.fd = env->stop_event, .events = POLLIN};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (env->in_waiting) {
		mark(env, "waiting");
		if (tn_worker_wait_for_turn(env->link_socket) < 0)
			return 9;
		mark(env, "taken-over");
	}
	env->keeper = tn_keeper_link_new(env->link_socket);
	atomic_store(&env->state->watched, 1);
	tn_keeper_ready(env->keeper);
	mark(env, "served");
	while (poll(&poll_fd, 1, 100) == 0)
		atomic_fetch_add(&env->state->beat, 1);
	return 0;
}

static void test_one_in_waiting_takes_over(void **state)
{
	int pipe;
	pid_t pid, worker;

	need_namespaces(state);
	pid = start(*state, viewing_worker, &pipe);
	wait_until_marked(*state, "run/waiting", 1);
	worker = child_of(pid);
	assert_int_equal(kill(worker, SIGKILL), 0);
	wait_until_marked(*state, "run/taken-over", 1);
	wait_until_served(*state, 2);
	/* The next one dies before its turn: that is no harm, and another one waits soon. */
	wait_until_marked(*state, "run/waiting", 2);
	assert_int_equal(kill(last_child_of(pid), SIGKILL), 0);
	wait_until_marked(*state, "run/waiting", 3);
	assert_int_equal(kill(child_of(pid), SIGKILL), 0);
	wait_until_marked(*state, "run/taken-over", 2);
	worker = last_child_of(pid);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(finish(pid, &pipe), 0);
	assert_int_equal(kill(worker, 0), -1);
}

/* It has ended, whether or not its parent knows. */
static bool is_dead(pid_t pid)
{
	char path[32], text[256] = "", *name_end;
	TN_AUTOFD fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (read(fd, text, sizeof(text) - 1) <= 0)
		return true;
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'Z';
}

static void test_one_in_waiting_dies_with_the_worker(void **state)
{
	pid_t pid, worker, standby;
	int pipe;

	need_namespaces(state);
	pid = start(*state, viewing_worker, &pipe);
	wait_until_marked(*state, "run/waiting", 1);
	children_of(pid, &worker, &standby);
	/* The keeper hears of both at once, as it does when the machine is busy. */
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(kill(worker, SIGKILL), 0);
	assert_int_equal(kill(standby, SIGKILL), 0);
	while (!is_dead(worker) || !is_dead(standby))
		usleep(1000);
	assert_int_equal(kill(pid, SIGCONT), 0);
	wait_until_served(*state, 2);
	assert_int_equal(marked(*state, "run/taken-over"), 0);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(finish(pid, &pipe), 0);
}

/* Counts what a keeper has open through a worker, which shares its table, and leaks some. */
static int counting_worker(TnWorkerEnv *env)
{
	TnArenaSet arenas = {0};
	char text[16];
	int n = 0, fd;
	DIR *dir;

	if (env->takes_over && tn_descriptors_tidy(env, &arenas) < 0)
		return 8;
	tn_arena_set_clear(&arenas);
	if (dup(env->store) < 0 || !(dir = opendir("/proc/self/fd")))
		return 7;
	while (readdir(dir))
		n++;
	closedir(dir);
	fd = openat(env->runtime, "counts", O_CREAT | O_WRONLY | O_CLOEXEC | O_APPEND, 0600);
	n = snprintf(text, sizeof(text), "%d ", n);
	if (write(fd, text, (size_t)n) < 0)
		return 9;
	close(fd);
	return good_worker(env);
}

static void test_kills_leak_nothing(void **state)
{
	char text[64] = "";
	int pipe, first, second, third;
	TN_AUTOFD fd = -1;
	pid_t pid;

	need_namespaces(state);
	pid = start(*state, counting_worker, &pipe);
	for (int i = 1; i <= 2; i++) {
		wait_until_served(*state, i);
		assert_int_equal(kill(child_of(pid), SIGKILL), 0);
	}
	wait_until_served(*state, 3);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(finish(pid, &pipe), 0);
	fd = open(below(*state, "run/counts"), O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_int_equal(sscanf(text, "%d %d %d", &first, &second, &third), 3);
	assert_int_equal(third, second);
	/* The first one also sees what the test itself has open. */
	assert_true(second <= first);
}

static void test_failed_start(void **state)
{
	int pipe;
	pid_t pid;

	need_namespaces(state);
	pid = start(*state, failing_worker, &pipe);
	assert_int_equal(finish(pid, &pipe), 1);
	assert_string_equal(why, "store: is made of cheese");
	pid = start(*state, crashing_worker, &pipe);
	assert_int_equal(finish(pid, &pipe), 1);
	assert_non_null(strstr(why, "signal 9"));
	assert_int_equal(mode_of(below(*state, "run/attach.sock")), 0);
}

static void test_deaf_worker_is_killed(void **state)
{
	int pipe;
	pid_t pid;

	need_namespaces(state);
	pid = start(*state, deaf_worker, &pipe);
	wait_until_served(*state, 1);
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(finish(pid, &pipe), 0);
}

/* Exit status: which of the keeper's answers about user namespaces was wrong; 0: none. */
static int asking_worker(TnWorkerEnv *env)
{
	uint64_t dev = 0, ino = 0;
	int ready[2], own, other, status = 0;
	pid_t child;
	char byte;

	env->keeper = tn_keeper_link_new(env->link_socket);
	if (pipe2(ready, O_CLOEXEC) < 0)
		return 9;
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], "x", 1) < 0)
			_exit(1);
		pause();
	}
	close(ready[1]);
	own = (int)syscall(SYS_pidfd_open, getpid(), 0);
	other = (int)syscall(SYS_pidfd_open, child, 0);
	if (read(ready[0], &byte, 1) != 1)
		mark(env, "no-namespace");
	else if (tn_keeper_peer_userns(env->keeper, other, &dev, &ino) < 0 ||
		 (dev == env->userns_dev && ino == env->userns_ino))
		status = 2;
	if (tn_keeper_peer_userns(env->keeper, own, &dev, &ino) < 0 || dev != env->userns_dev ||
	    ino != env->userns_ino)
		status = 3;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (tn_keeper_peer_userns(env->keeper, other, &dev, &ino) != -ESRCH)
		status = 4;
	if (tn_keeper_peer_userns(env->keeper, env->runtime, &dev, &ino) >= 0)
		status = 5;
	if (status == 0)
		mark(env, "right");
	tn_keeper_ready(env->keeper);
	tn_keeper_stopping(env->keeper);
	return status;
}

static void test_namespaces_of_peers(void **state)
{
	int pipe;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("only root's keeper may look at others' namespaces\n");
		skip();
	}
	need_namespaces(state);
	pid = start(*state, asking_worker, &pipe);
	assert_int_equal(finish(pid, &pipe), 0);
	if (access(below(*state, "run/no-namespace"), F_OK) == 0) {
		print_message("user namespaces cannot be made here\n");
		skip();
	}
	assert_int_equal(access(below(*state, "run/right"), F_OK), 0);
}

static void test_worker_ends_with_its_keeper(void **state)
{
	int pipe;
	pid_t pid, worker;

	need_namespaces(state);
	/* Orphans of the keeper become ours, so that their end can be waited for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = start(*state, good_worker, &pipe);
	wait_until_served(*state, 1);
	worker = child_of(pid);
	assert_true(worker > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(finish(pid, &pipe), -SIGKILL);
	assert_int_equal(waitpid(worker, NULL, 0), worker);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_modes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_loose_store_is_tightened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_directory_in_other_use_is_left_alone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parents_of_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_store_of_a_user_for_nothing_else, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stale_and_foreign_sockets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_locks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_worker_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_in_waiting_takes_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_in_waiting_dies_with_the_worker, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_kills_leak_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failed_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deaf_worker_is_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_namespaces_of_peers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_worker_ends_with_its_keeper, set_up,
						tear_down),
	};

	place = geteuid() == 0 ? "/var/lib" : getenv("HOME");
	if (!place || access(place, W_OK) < 0) {
		puts("skipped: no directory that is not world-writable");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
