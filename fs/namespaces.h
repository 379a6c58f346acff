/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The keeper's own namespaces. For a single-threaded process.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* (device, inode) of this process's user namespace. 0 or -errno. */
int tn_namespaces_record(uint64_t *ret_dev, uint64_t *ret_ino);

/* Not dumpable: no process of the same user can enter. An exec undoes it. 0 or -errno. */
int tn_namespaces_hide(char *why, size_t why_size);

/*
 * Enters a new mount namespace, and as a plain user a new user namespace first, with both
 * ids mapped to themselves. Mounts of the host still arrive (MS_SLAVE: a daemon lives long,
 * and private copies would pin what the host unmounts); none of ours leave. Then this
 * process is not dumpable, so that no process of the same user can follow. 0, or -errno
 * with one line in why.
 */
int tn_namespaces_enter(char *why, size_t why_size);

/* (device, inode) of the user namespace of the process behind a pidfd. 0 or -errno. */
int tn_namespaces_of_pidfd(int pidfd, uint64_t *ret_dev, uint64_t *ret_ino);
