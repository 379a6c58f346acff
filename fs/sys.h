/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * System calls that take paths, made safe: everything is opened beneath a directory
 * descriptor, follows no link and is close-on-exec. Any thread. 0 or a descriptor, or -errno.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS and
 * RESOLVE_NO_XDEV; O_CLOEXEC is added.
 */
int tn_open_beneath(int dir, const char *path, int flags, mode_t mode);

/* Opens the file behind an O_PATH descriptor anew with other flags, through /proc/self/fd. */
int tn_reopen(int fd, int flags);

/* Makes path below dir if it is missing and opens it as a directory (O_RDONLY). */
int tn_open_dir_make(int dir, const char *path, mode_t mode);

/*
 * Replaces dir/name by a file with this content: written beside it and renamed; synced to
 * the disk first when `sync`.
 */
int tn_replace_file(int dir, const char *name, const void *data, size_t size, mode_t mode,
		    bool sync);

/* Reads dir/name whole, at most max bytes, NUL-terminated; the caller frees. Bytes or -errno. */
ssize_t tn_read_file(int dir, const char *name, size_t max, char **ret);

/* Random bits from the kernel; never fails after early boot. */
uint64_t tn_random(void);

/* CLOCK_REALTIME and CLOCK_MONOTONIC in nanoseconds. */
int64_t tn_now(void);
int64_t tn_monotonic(void);

/* pthread_cond_timedwait(3) for so many nanoseconds, less than a second, whatever the clock is set
 * to meanwhile. True when it was signalled. */
bool tn_cond_wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, long ns);
