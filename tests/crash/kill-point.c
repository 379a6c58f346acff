/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker dies at the n-th point it passes, as the file in TMPNEST_KILL_FILE says: see
 * kill-file.h. Linked into a tmpnestd of the tests only.
 */
#include "journal.h"
#include "syscalls.h"

#include "dispatch.h"
#include "kill-file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

TN_SYSCALLS = {
	{SYS_kill},
#ifdef SYS_pause
	{SYS_pause},
#endif
};

static KillFile *map_file(void)
{
	const char *path = getenv("TMPNEST_KILL_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *base;

	if (fd < 0)
		return NULL;
	base = mmap(NULL, sizeof(KillFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return base == MAP_FAILED ? NULL : base;
}

KillFile *tn_kill_file(void);
KillFile *tn_kill_file(void)
{
	static KillFile *_Atomic file;
	KillFile *kill_file = file;

	if (!kill_file)
		file = kill_file = map_file();
	return kill_file;
}

/* Points of the present request, from the first at which it had begun a change; -1: none is served.
 */
static _Thread_local int64_t points = -1;

size_t __real_tn_dispatch(TnNest *nest, TnIdentity *identity, const uint8_t *message, size_t size,
			  uint8_t *reply);
size_t __wrap_tn_dispatch(TnNest *nest, TnIdentity *identity, const uint8_t *message, size_t size,
			  uint8_t *reply);
size_t __wrap_tn_dispatch(TnNest *nest, TnIdentity *identity, const uint8_t *message, size_t size,
			  uint8_t *reply)
{
	size_t n;

	points = 0;
	n = __real_tn_dispatch(nest, identity, message, size, reply);
	points = -1;
	return n;
}

static void die_of_poison(KillFile *kill_file)
{
	if (points < 0 || atomic_load(&kill_file->poison) == 0 || tn_journal_step() == TN_STEP_NONE)
		return;
	if (++points != atomic_load(&kill_file->poison))
		return;
	atomic_fetch_add(&kill_file->killed, 1);
	abort();
}

void tn_kill_point(void)
{
	KillFile *kill_file = tn_kill_file();

	if (!kill_file)
		return;
	die_of_poison(kill_file);
	atomic_fetch_add(&kill_file->passed, 1);
	if (atomic_load(&kill_file->first) > 0) {
		if (atomic_fetch_sub(&kill_file->first, 1) != 1)
			return;
	} else if (atomic_load(&kill_file->second) > 0 && atomic_load(&kill_file->killed) > 0) {
		if (atomic_fetch_sub(&kill_file->second, 1) != 1)
			return;
	} else {
		return;
	}
	atomic_fetch_add(&kill_file->killed, 1);
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}
