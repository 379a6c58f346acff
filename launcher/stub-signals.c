/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-signals.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void watched(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGHUP);
	sigaddset(ret, SIGCHLD);
}

static void run_child(int gate, char **command, const sigset_t *mask, void (*on_child)(int))
{
	char byte;
	int error;

	/* the parent failed, or was killed, before it held the stubs */
	if (read(gate, &byte, 1) != 1)
		_exit(125);
	sigprocmask(SIG_SETMASK, mask, NULL);
	signal(SIGCHLD, on_child);
	execvp(command[0], command);
	error = errno;
	fprintf(stderr, "tmpnest: stubs run: %s: %s\n", command[0], strerror(error));
	_exit(error == ENOENT ? 127 : 126);
}

int tn_stub_child_start(TnStubChild *child, char **command)
{
	void (*on_child)(int);
	sigset_t set, before;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	watched(&set);
	sigprocmask(SIG_BLOCK, &set, &before);
	/* ignored by whoever started us, the kernel would not tell how the child ended */
	on_child = signal(SIGCHLD, SIG_DFL);
	child->gate = ends[1];
	child->pid = fork();
	if (child->pid == 0) {
		close(ends[1]);
		run_child(ends[0], command, &before, on_child);
	}
	close(ends[0]);
	if (child->pid < 0) {
		int error = errno;

		tn_close(&child->gate);
		return -error;
	}
	return 0;
}

void tn_stub_child_go(TnStubChild *child)
{
	/* a child that was killed meanwhile is found by waiting */
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	ssize_t written = write(child->gate, "g", 1);

	(void)written;
	signal(SIGPIPE, before);
	tn_close(&child->gate);
}

int tn_stub_child_wait(TnStubChild *child)
{
	sigset_t set;
	int status;

	watched(&set);
	tn_close(&child->gate);
	for (;;) {
		siginfo_t info;
		pid_t ended = waitpid(child->pid, &status, WNOHANG);

		if (ended == child->pid)
			return status;
		if (ended < 0 && errno != EINTR)
			return W_EXITCODE(125, 0);
		/* a signal of the terminal went to the whole foreground group */
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD && info.si_code <= 0)
			kill(child->pid, info.si_signo);
	}
}

int tn_stub_die_as(int wait_status)
{
	if (WIFSIGNALED(wait_status)) {
		int number = WTERMSIG(wait_status);
		sigset_t set;

		/* the core, if any, is the child's */
		prctl(PR_SET_DUMPABLE, 0);
		signal(number, SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, number);
		kill(getpid(), number);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		return 128 + number;
	}
	return WEXITSTATUS(wait_status);
}
