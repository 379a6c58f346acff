/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's system call filter, on a child process that has it as a worker would: what
 * is not on a list fails with ENOSYS and is told, once each; nothing ends the process.
 */
#include "seccomp.h"

#include "log.h"
#include "macros.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What the tests themselves need in the child. */
TN_SYSCALLS = {
	{SYS_getppid},
	{SYS_dup3, TN_ARG_IS(2, O_CLOEXEC)},
};

typedef struct Case {
	const char *what;
	long number;
	unsigned long arguments[4];
	int error; /* 0: succeeds */
} Case;

#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

static const Case cases[] = {
	{"getppid, on the list", SYS_getppid, {0}, 0},
	{"dup3 as listed", SYS_dup3, {0, 77, O_CLOEXEC}, 0},
	{"dup3 with another argument", SYS_dup3, {0, 78, 0}, ENOSYS},
	{"upper half of an argument", SYS_dup3, {0, 78, 1UL << 40}, ENOSYS},
	{"memory", SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, ANONYMOUS}, 0},
	{"executable memory", SYS_mmap, {0, 4096, RWX, ANONYMOUS}, ENOSYS},
	{"a process", SYS_clone, {SIGCHLD}, ENOSYS},
	{"a process, by clone3", SYS_clone3, {0}, ENOSYS},
	{"another program", SYS_execve, {0}, ENOSYS},
	{"another program, by descriptor", SYS_execveat, {0}, ENOSYS},
	{"a user namespace", SYS_unshare, {CLONE_NEWUSER}, ENOSYS},
	{"another's namespace", SYS_setns, {0}, ENOSYS},
	{"a mount", SYS_mount, {0}, ENOSYS},
	{"a mount, anew", SYS_fsopen, {0}, ENOSYS},
	{"a socket", SYS_socket, {1, 1, 0}, ENOSYS},
	{"tracing", SYS_ptrace, {0}, ENOSYS},
	{"another's memory", SYS_process_vm_readv, {0}, ENOSYS},
	{"a signal", SYS_kill, {1, 0}, ENOSYS},
	{"io_uring", SYS_io_uring_setup, {1, 0}, ENOSYS},
	{"bpf", SYS_bpf, {0}, ENOSYS},
	{"a file by its handle", SYS_open_by_handle_at, {0}, ENOSYS},
	{"keys", SYS_keyctl, {0}, ENOSYS},
	{"a name, by prctl", SYS_prctl, {PR_SET_DUMPABLE, 1}, ENOSYS},
	{"a call that does not exist", 999, {0}, ENOSYS},
	{"a second filter", SYS_seccomp, {1, 0, 0}, ENOSYS},
	{"another terminal's input", SYS_ioctl, {0, 0x5412, 0}, ENOSYS},
};

static void *nothing(void *data)
{
	return data;
}

/* In the child: does what the cases say; exit status 0, or the number of the failed one. */
static int try_all(int tell)
{
	int listener;
	pthread_t thread;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 101;
	listener = tn_seccomp_install();
	if (listener < 0)
		return listener == -ENOSYS ? 77 : 102;
	/* The test got the descriptor's number with the shared table. */
	if (write(tell, &listener, sizeof(listener)) != sizeof(listener))
		return 103;
	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		return 104;
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		const Case *c = &cases[i];

		for (int again = 0; again < 2; again++) {
			long r = syscall(c->number, c->arguments[0], c->arguments[1],
					 c->arguments[2], c->arguments[3], -1, 0);

			if (c->error ? r != -1 || errno != c->error : r == -1)
				return 1 + (int)i;
		}
	}
	return 0;
}

/* Answers until the child has ended; how many refusals there were. */
static unsigned answer_all(int listener, TnSeccompLog *log)
{
	struct pollfd waiting = {.fd = listener, .events = POLLIN};
	unsigned n = 0;

	while (poll(&waiting, 1, 20000) > 0 && (waiting.revents & POLLIN))
		n += tn_seccomp_answer(listener, log) == 0;
	return n;
}

static unsigned bits(const TnSeccompLog *log)
{
	unsigned n = 0;

	for (size_t i = 0; i < TN_ARRAY_LEN(log->seen); i++)
		n += (unsigned)__builtin_popcountll(log->seen[i]);
	return n;
}

static void test_refused_calls_fail_and_are_told(void **state)
{
	TnSeccompLog log = {{0}};
	int ends[2], listener, status;
	unsigned told;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	/* As the keeper starts a worker: the table is shared, memory is not. */
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(try_all(ends[1]));
	assert_true(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 20000) >= 0);
	if (read(ends[0], &listener, sizeof(listener)) != sizeof(listener))
		fail_msg("the child did not tell its descriptor");
	told = answer_all(listener, &log);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) && WEXITSTATUS(status) <= 100)
		print_error("case: %s\n", cases[WEXITSTATUS(status) - 1].what);
	assert_int_equal(status, 0);
	/* clone3 is refused quietly; the rest is told each time, and logged once. */
	assert_int_equal(told, 2 * 22);
	assert_int_equal(bits(&log), 21);
	close(listener);
	close(ends[0]);
	close(ends[1]);
}

/* How a child ends that is left getppid(2) and makes this call. */
static int status_after(long number)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
				? -errno
				: tn_seccomp_allow_only(SYS_getppid);

		if (r < 0)
			_exit(r == -ENOSYS ? 77 : 1);
		syscall(number, 0);
		syscall(SYS_exit, 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_one_call_is_left(void **state)
{
	static const long killed[] = {SYS_getuid, SYS_read, SYS_exit_group, SYS_clone, 999};
	int status = status_after(SYS_getppid);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("no filter in this build or kernel\n");
		skip();
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
	for (size_t i = 0; i < TN_ARRAY_LEN(killed); i++) {
		status = status_after(killed[i]);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
}

/* The linker has joined the lists without gaps, and nobody listed what must not be. */
static void test_the_lists(void **state)
{
	extern const TnSyscall __start_tn_syscalls[], __stop_tn_syscalls[];
	static const long never[] = {SYS_execve, SYS_execveat,         SYS_unshare, SYS_setns,
				     SYS_mount,  SYS_umount2,          SYS_fsopen,  SYS_move_mount,
				     SYS_ptrace, SYS_setuid,           SYS_setgid,  SYS_capset,
				     SYS_bpf,    SYS_kexec_load,       SYS_reboot,  SYS_init_module,
				     SYS_keyctl, SYS_open_by_handle_at};

	assert_true(tn_seccomp_count() > 30);
	for (const TnSyscall *s = __start_tn_syscalls; s < __stop_tn_syscalls; s++) {
		assert_true(s->check <= TN_CHECK_LACKS && s->argument < 6);
		assert_true(s->number != SYS_ioctl || s->check == TN_CHECK_IS);
		for (size_t i = 0; i < TN_ARRAY_LEN(never); i++)
			assert_int_not_equal(s->number, never[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_calls_fail_and_are_told),
		cmocka_unit_test(test_one_call_is_left),
		cmocka_unit_test(test_the_lists),
	};

	tn_log_init(TN_LOG_WARNING);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
