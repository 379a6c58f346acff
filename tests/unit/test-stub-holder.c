/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "macros.h"
#include "stub-holder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that lives until it is told to end; with a pid namespace of its own if wanted. */
typedef struct Child {
	pid_t pid;
	uint64_t pid_namespace; /* of the process that lives */
	int gate;
} Child;

static uint64_t own_namespace(const char *link)
{
	char target[64] = "";
	unsigned long long number = 0;

	assert_true(readlink(link, target, sizeof(target) - 1) > 0);
	assert_int_equal(sscanf(target, "pid:[%llu]", &number), 1);
	return number;
}

static void live(int gate)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(read(gate, &byte, 1) != 0);
}

static bool start(Child *child, bool namespaced)
{
	int gate[2], told[2];
	uint64_t number = 0;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	child->pid = fork();
	if (child->pid == 0) {
		close(gate[1]);
		if (namespaced) {
			if (unshare((geteuid() ? CLONE_NEWUSER : 0) | CLONE_NEWPID) < 0)
				_exit(1);
			if (fork() > 0) {
				close(told[1]);
				close(gate[0]);
				wait(NULL);
				_exit(0);
			}
			number = 1;
		}
		if (write(told[1], &number, sizeof(number)) != sizeof(number))
			_exit(1);
		live(gate[0]);
	}
	close(gate[0]);
	close(told[1]);
	child->gate = gate[1];
	if (read(told[0], &number, sizeof(number)) != sizeof(number)) {
		close(told[0]);
		close(child->gate);
		waitpid(child->pid, NULL, 0);
		return false;
	}
	close(told[0]);
	if (namespaced) {
		char link[64];

		snprintf(link, sizeof(link), "/proc/%d/ns/pid_for_children", child->pid);
		child->pid_namespace = own_namespace(link);
	} else {
		child->pid_namespace = own_namespace("/proc/self/ns/pid");
	}
	return true;
}

static void stop(Child *child)
{
	close(child->gate);
	assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

static TnSelf self(void)
{
	TnSelf ret;

	tn_self_init(&ret, "/proc");
	return ret;
}

static TnHolderState state_of(const TnSelf *who, const TnStubHolder *holder)
{
	TnSelf fresh = *who;

	fresh.n_memo = 0;
	return tn_holder_state(&fresh, holder);
}

static void test_a_living_process(void **state)
{
	TnSelf me = self();
	TnStubHolder holder;

	assert_int_equal(tn_holder_init(&me, getpid(), &holder), 0);
	assert_true(holder.start_time > 0);
	assert_int_equal(holder.pid_namespace, own_namespace("/proc/self/ns/pid"));
	assert_int_equal(strlen(holder.boot_id), 36);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_ALIVE);
	/* of another user, who may not be signalled: alive as well */
	assert_int_equal(tn_holder_init(&me, 1, &holder), 0);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_ALIVE);
}

static void test_a_dead_process(void **state)
{
	TnSelf me = self();
	TnStubHolder holder, ignored;
	Child child;

	assert_true(start(&child, false));
	assert_int_equal(tn_holder_init(&me, child.pid, &holder), 0);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_ALIVE);
	/* one that nobody has waited for is as dead */
	kill(child.pid, SIGKILL);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_DEAD);
	assert_int_equal(tn_holder_init(&me, child.pid, &ignored), -ESRCH);
	stop(&child);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_DEAD);
	assert_int_equal(tn_holder_init(&me, holder.pid, &ignored), -ESRCH);
	assert_int_equal(tn_holder_init(&me, 0, &ignored), -ESRCH);
	assert_int_equal(tn_holder_init(&me, -1, &ignored), -ESRCH);
}

/* What is said about a holder whose process lives, when one thing about it is another. */
static void test_table(void **state)
{
	enum { MINE, OTHER, NONE };
	static const struct {
		const char *what;
		int boot, namespace, start;
		bool lives;
		TnHolderState expected;
	} cases[] = {
		{"all as it is", MINE, MINE, MINE, true, TN_HOLDER_ALIVE},
		{"the pid was used again", MINE, MINE, OTHER, true, TN_HOLDER_DEAD},
		{"no start time known", MINE, MINE, NONE, true, TN_HOLDER_ALIVE},
		{"another boot", OTHER, MINE, MINE, true, TN_HOLDER_DEAD},
		{"another boot, another namespace", OTHER, OTHER, MINE, true, TN_HOLDER_DEAD},
		{"neither known: the bare pid", NONE, NONE, NONE, true, TN_HOLDER_ALIVE},
		{"neither known, dead", NONE, NONE, NONE, false, TN_HOLDER_DEAD},
		{"no boot known, dead here", NONE, MINE, MINE, false, TN_HOLDER_DEAD},
		{"dead", MINE, MINE, MINE, false, TN_HOLDER_DEAD},
		{"dead, no start time known", MINE, MINE, NONE, false, TN_HOLDER_DEAD},
		{"dead, another boot", OTHER, MINE, MINE, false, TN_HOLDER_DEAD},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TnSelf me = self();
		TnStubHolder holder;
		Child child;

		assert_true(start(&child, false));
		assert_int_equal(tn_holder_init(&me, child.pid, &holder), 0);
		if (cases[i].boot == OTHER)
			holder.boot_id[0] = holder.boot_id[0] == 'a' ? 'b' : 'a';
		if (cases[i].boot == NONE)
			holder.boot_id[0] = '\0';
		if (cases[i].namespace != MINE)
			holder.pid_namespace = cases[i].namespace == NONE ? 0 : 12345;
		if (cases[i].start != MINE)
			holder.start_time = cases[i].start == NONE ? 0 : holder.start_time + 1;
		if (!cases[i].lives)
			stop(&child);
		if (state_of(&me, &holder) != cases[i].expected)
			fail_msg("%s", cases[i].what);
		if (cases[i].lives)
			stop(&child);
	}
}

static void test_other_namespaces(void **state)
{
	TnSelf me = self();
	TnStubHolder holder = {.pid = 1};
	Child child;

	if (!start(&child, true)) {
		print_message("no pid namespaces here\n");
		skip();
	}
	snprintf(holder.boot_id, sizeof(holder.boot_id), "%s", me.boot_id);
	holder.pid_namespace = child.pid_namespace;
	assert_int_not_equal(holder.pid_namespace, me.pid_namespace);
	/* only the first pid namespace can tell; anywhere else nothing is decided */
	assert_int_equal(state_of(&me, &holder),
			 me.in_first_namespace ? TN_HOLDER_ALIVE : TN_HOLDER_UNKNOWN);
	stop(&child);
	assert_int_equal(state_of(&me, &holder),
			 me.in_first_namespace ? TN_HOLDER_DEAD : TN_HOLDER_UNKNOWN);
	me.in_first_namespace = false;
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_UNKNOWN);
	me = self();
	holder.pid_namespace = TN_PID_NAMESPACE_ODD;
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_UNKNOWN);
}

/* Asked from inside: a live process of the outer namespace is not provably anything. */
static void test_asked_from_inside(void **state)
{
	TnSelf me = self();
	TnStubHolder holder;
	int status;
	pid_t pid;

	assert_int_equal(tn_holder_init(&me, getpid(), &holder), 0);
	pid = fork();
	if (pid == 0) {
		if (unshare((geteuid() ? CLONE_NEWUSER : 0) | CLONE_NEWPID | CLONE_NEWNS) < 0)
			_exit(77);
		pid = fork();
		if (pid == 0) {
			TnSelf inside;

			/* the outer procfs shows other numbers than ours: it is not believed */
			tn_self_init(&inside, "/proc");
			if (inside.pid_namespace != 0)
				_exit(1);
			if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			    mount("proc", "/proc", "proc", 0, NULL) < 0)
				_exit(77);
			tn_self_init(&inside, "/proc");
			if (inside.pid_namespace == 0 || inside.in_first_namespace)
				_exit(2);
			_exit(state_of(&inside, &holder) == TN_HOLDER_UNKNOWN ? 0 : 3);
		}
		waitpid(pid, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	waitpid(pid, &status, 0);
	if (WEXITSTATUS(status) == 77) {
		print_message("no namespaces or no new procfs here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_own_identity_unreadable(void **state)
{
	TnStubHolder holder = {.pid = getpid(), .start_time = 1, .pid_namespace = 12345};
	TnSelf blind;

	strcpy(holder.boot_id, "another boot");
	tn_self_init(&blind, "/var/empty/no-proc");
	assert_int_equal(blind.pid_namespace, 0);
	assert_string_equal(blind.boot_id, "");
	/* everything falls back to the bare pid */
	assert_int_equal(state_of(&blind, &holder), TN_HOLDER_ALIVE);
	holder.pid = 0x7ffffff0;
	assert_int_equal(state_of(&blind, &holder), TN_HOLDER_DEAD);
}

static void test_leases(void **state)
{
	char dir[] = "/var/tmp/tmpnest-lease-XXXXXX", path[64], other[64];
	TnSelf me = self();
	TnStubHolder holder = {.pid = 0x7ffffff0, .lease = path};
	int reader, writer;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/lease", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	snprintf(holder.boot_id, sizeof(holder.boot_id), "%s", me.boot_id);
	/* gone, and the boot is this one: nobody knows */
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_UNKNOWN);
	holder.boot_id[0] ^= 1;
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_DEAD);
	holder.boot_id[0] ^= 1;

	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	writer = open(path, O_WRONLY);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_ALIVE);
	/* the lease decides, not the boot */
	holder.boot_id[0] ^= 1;
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_ALIVE);
	close(writer);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_DEAD);
	close(reader);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_DEAD);
	unlink(path);

	/* no FIFO: not opened, and nothing is decided */
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_UNKNOWN);
	unlink(path);
	assert_int_equal(mkfifo(other, 0600), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(state_of(&me, &holder), TN_HOLDER_UNKNOWN);
	unlink(path);
	unlink(other);
	rmdir(dir);
}

static void test_mount_points(void **state)
{
	TnSelf me = self();
	TnMountPoints points;

	assert_int_equal(tn_mount_points_scan(&me, &points), 0);
	assert_int_equal(tn_mount_points_state(&points, "/"), TN_HOLDER_ALIVE);
	assert_int_not_equal(tn_mount_points_state(&points, "/no/such/mount"), TN_HOLDER_ALIVE);
	points.complete = true;
	assert_int_equal(tn_mount_points_state(&points, "/no/such/mount"), TN_HOLDER_DEAD);
	points.complete = false;
	assert_int_equal(tn_mount_points_state(&points, "/no/such/mount"), TN_HOLDER_UNKNOWN);
	tn_mount_points_clear(&points);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_living_process),
		cmocka_unit_test(test_a_dead_process),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_other_namespaces),
		cmocka_unit_test(test_asked_from_inside),
		cmocka_unit_test(test_own_identity_unreadable),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_mount_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
