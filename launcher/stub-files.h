/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes, checks and removes one stub. Every call works beneath a descriptor of the parent
 * directory, which was opened without following any symbolic link. Knows no ledger file.
 *
 * A file is made complete and without a name where the file system can do that (O_TMPFILE):
 * its inode is then known before it can be seen, and nobody ever sees it empty.
 */
#pragma once

#include "ledger.h"

#include <limits.h>

/*
 * Opens the directory that path lies in, refusing symbolic links all the way: *ret_name is
 * the rest of path. A descriptor, or -ELOOP, -ENOTDIR, -ENOENT, -EACCES, ...
 */
int tn_stub_open_parent(const char *path, const char **ret_name);

/* The directory opened last: paths come sorted, and most lie beside the one before. */
typedef struct TnStubDir {
	char path[PATH_MAX]; /* with its slash */
	int fd;
} TnStubDir;

#define TN_STUB_DIR_INIT \
	{ \
		.fd = -1 \
	}

/* As tn_stub_open_parent(), but the descriptor stays dir's until the next call. */
int tn_stub_dir_of(TnStubDir *dir, const char *path, const char **ret_name);
void tn_stub_dir_clear(TnStubDir *dir);

/*
 * First half of making entry->path: fills dev, ino and btime_ns when they can be known before
 * (else ino stays 0). Sets planned and created_ms. Returns a descriptor to pass on, or
 * -ENOTSUP when the stub can only be made by name: pass that on as it is. entry->kind and
 * filled say what to make.
 */
int tn_stub_prepare(int parent_fd, TnLedgerEntry *entry);

/*
 * Second half: gives it its name; exclusively (-EEXIST: somebody was faster). Closes prepared.
 * On success entry has its final identity and is no longer planned.
 */
int tn_stub_publish(int parent_fd, const char *name, int prepared, TnLedgerEntry *entry);

/*
 * 0: what lies there is the stub of entry; a file is unchanged and still holds what we wrote, a
 * directory is the same one, whatever is in it. -ENOENT gone. -ESTALE something else, or
 * changed; other -errno: cannot be told.
 */
int tn_stub_check(int parent_fd, const char *name, const TnLedgerEntry *entry);

/* Checks and removes. As tn_stub_check(), and -ESTALE for a directory that holds something. */
int tn_stub_remove(int parent_fd, const char *name, const TnLedgerEntry *entry);

/*
 * False when nothing is there, or an empty file or directory that looks like a stub of another
 * process and may vanish.
 */
bool tn_stub_is_lasting(int parent_fd, const char *name);

/* Milliseconds since the epoch, now. */
int64_t tn_stub_now_ms(void);
