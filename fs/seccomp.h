/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's system call filter (Documentation/userspace-api/seccomp_filter.rst).
 *
 * What is not allowed fails with ENOSYS, as on a kernel that has no such call: every C
 * library has a second way then, and our own code an error to pass on. It does not kill: a
 * call nobody thought of would end all views, and a sandbox that can bring it about could do
 * so at will. The keeper sees each refused call first and logs each number once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: this build has no filters (sanitizers make calls of their own). */
bool tn_seccomp_is_built(void);

/*
 * Filters all threads of this process, for good; needs no_new_privs. A descriptor
 * that tells of refused calls, for tn_seccomp_answer(); -EOPNOTSUPP: filtered, but nothing
 * tells (another filter of this process has that already); -ENOSYS: not in this build
 * or kernel; another -errno: not filtered.
 */
int tn_seccomp_install(void);

/*
 * Leaves the calling thread this system call and exit(2); for any other the process is killed.
 * Needs no_new_privs. 0, -ENOSYS (as above) or another -errno.
 */
int tn_seccomp_allow_only(int number);

/* Which calls were logged. Zeroed at the start. */
typedef struct TnSeccompLog {
	uint64_t seen[16];
} TnSeccompLog;

/* Answers one refused call that waits; the keeper. 0, -ENOENT (none), or -errno. */
int tn_seccomp_answer(int listener, TnSeccompLog *log);

/* For a test: how many permissions the filter has. */
size_t tn_seccomp_count(void);
