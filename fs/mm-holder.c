/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mm-holder.h"

#include "seccomp.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* It shares the first thread's errno too: no call of its own may fail once that one goes on. */
static int hold(void *parent)
{
	prctl(PR_SET_NAME, "tmpnestd-memory");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != *(const pid_t *)parent || tn_seccomp_allow_only(SYS_ppoll) < 0)
		return 1;
	for (;;)
		syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

int tn_mm_holder_start(pid_t parent)
{
	static _Alignas(16) char stack[16 * 1024];
	static pid_t of; /* read by the holder when it comes to run */
	int flags = CLONE_VM | CLONE_FILES | CLONE_PARENT | SIGCHLD;

	/* A sanitizer would take it for the thread with which it shares all. */
	if (!tn_seccomp_is_built())
		return -ENOSYS;
	of = parent;
	return clone(hold, stack + sizeof(stack), flags, &of) < 0 ? -errno : 0;
}
