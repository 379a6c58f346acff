/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the worker asks of the keeper: everything that needs mount rights.
 *
 * Keeper and worker share one descriptor table (clone(CLONE_FILES)), so the messages on
 * their SOCK_SEQPACKET pair carry descriptor *numbers*: a descriptor that the keeper
 * opened is at once the worker's to use and to close.
 *
 * Worker side: any thread; calls are serialised inside and wait for the keeper (tens of
 * microseconds). Keeper side: keeper.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct TnKeeperLink TnKeeperLink;

/* Borrows the socket. */
TnKeeperLink *tn_keeper_link_new(int sock);
void tn_keeper_link_free(TnKeeperLink *link);

/*
 * One more detached mount of the superblock behind *device, or of a new one when *device
 * is -1: then *device becomes a new non-blocking /dev/fuse descriptor. uid and gid own the
 * connection (user_id=, group_id=). Returns the mount descriptor, or -errno:
 * -ENOTCONN when the superblock behind *device has ended (*device stays open).
 */
int tn_keeper_mount(TnKeeperLink *link, int *device, uid_t uid, gid_t gid);

/* A detached tmpfs of at most `bytes` and `inodes` (TN_UNLIMITED: none): its descriptor, or -errno.
 */
int tn_keeper_memory_new(TnKeeperLink *link, uint64_t bytes, uint64_t inodes);

/* Changes the limits of such a tmpfs while it is in use. 0 or -errno. */
int tn_keeper_memory_resize(TnKeeperLink *link, int mount, uint64_t bytes, uint64_t inodes);

/*
 * An ext4 file system with so many inodes in an open image file. Takes the keeper some tens of
 * milliseconds. 0 or -errno: -ENOPKG there is no mke2fs, -EIO it failed, -ETIMEDOUT.
 */
int tn_keeper_image_format(TnKeeperLink *link, int image, uint64_t inodes);
/*
 * A detached mount of the ext4 file system in an open image file, by a loop device that goes with
 * it: its descriptor, or -errno: -EBUSY it is mounted, -ENOENT or -ENXIO no loop devices here.
 */
int tn_keeper_image_mount(TnKeeperLink *link, int image);
/* Its image has grown: so does the file system. 0 or -errno. */
int tn_keeper_image_grown(TnKeeperLink *link, int mount);

/* A file of the store that the kernel may read and write by itself. */
typedef struct TnBackingFile {
	uint64_t nest_id;
	uint32_t node;
	int device; /* of the connection that its id is for */
	int file;   /* O_PATH is enough */
} TnBackingFile;

/*
 * Makes the file known to the connection, with the keeper's rights, and notes its id (> 0) in *id
 * before any other such call can begin: what a worker's death leaves unnoted is the last one at
 * most (state.h). 0 or -errno: -EPERM without CAP_SYS_ADMIN, -ELOOP for a store that is stacked
 * too deep.
 */
int tn_keeper_backing_open(TnKeeperLink *link, const TnBackingFile *file, int32_t *id);
/* The id is of no use any more. 0, -ENOENT (it was not known) or another -errno. */
int tn_keeper_backing_close(TnKeeperLink *link, int device, int32_t id);

/*
 * Which user namespace the process behind a pidfd is in, as (device, inode) of its
 * /proc/PID/ns/user: only the keeper of a root daemon may look. 0, -ESRCH it has ended,
 * or -EACCES where even root may not.
 */
int tn_keeper_peer_userns(TnKeeperLink *link, int pidfd, uint64_t *ret_dev, uint64_t *ret_ino);

/*
 * Has the keeper become the program that lies at its path now, and start a worker of that:
 * this one is killed soon after the answer. 0, -EBADMSG (the new program cannot take these
 * views over), or another -errno.
 */
int tn_keeper_upgrade(TnKeeperLink *link);

/* For worker.c: where the keeper hears of refused system calls; takes listener. */
int tn_keeper_refusals(TnKeeperLink *link, int listener);

/* For worker.c: it serves; it could not start (one line says why); it ends on purpose. */
int tn_keeper_ready(TnKeeperLink *link);
int tn_keeper_failed(TnKeeperLink *link, const char *why);
int tn_keeper_stopping(TnKeeperLink *link);
