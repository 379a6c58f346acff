/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Descriptors that clients send (SCM_RIGHTS) may lie on a file system that a client serves itself.
 * Whatever asks that one waits for its answer, which may never come: stat(2), statfs(2), and
 * close(2), which flushes (FUSE_FLUSH). So what came is looked at only as the kernel knows it,
 * and closed by a thread of its own unless it is of a kind whose close asks nobody.
 *
 * Any thread. One object for each server.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct TnStrangers TnStrangers;

TnStrangers *tn_strangers_new(void); /* NULL: out of memory */
/* Closes that still wait keep what they need. Takes NULL. */
void tn_strangers_free(TnStrangers *strangers);

/* Closes *fd, which a client of this uid sent, and leaves -1 behind. Never waits. */
void tn_stranger_close(TnStrangers *strangers, uid_t uid, int *fd);

/* To be asked before each message is received. False while several of the closes for this uid wait:
 * it is told to come again, and what it has sent is not received. */
bool tn_stranger_may_send(TnStrangers *strangers, uid_t uid);

/* Device, inode, type and link count as the kernel has them, without asking a server. 0 or -errno.
 */
int tn_stranger_stat(int fd, struct stat *ret);

/*
 * The same for a path that a client gave, links followed: only what the kernel has in its cache,
 * unless may_wait. 0, -EAGAIN (it would have to ask) or another -errno.
 */
int tn_stranger_look(const char *path, bool may_wait, struct stat *ret);
