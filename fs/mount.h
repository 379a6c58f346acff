/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mounts that a nest is made of, as detached mount descriptors: they are attached
 * nowhere here, so no path leads to them. For the keeper, in its own namespaces.
 *
 * Every function returns a close-on-exec mount descriptor (or 0) or -errno; the kernel's
 * own words about a refused mount are logged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A new FUSE connection with its superblock, and a first mount of it. *ret_device is a new
 * non-blocking /dev/fuse descriptor. allow_other: any uid may use the mount (root only).
 */
int tn_mount_fuse_new(uid_t uid, gid_t gid, bool allow_other, int *ret_device);

/*
 * One more mount of the superblock that device serves. The kernel finds the superblock by
 * the connection behind the descriptor, and makes none when it has ended: -ENOTCONN
 * (fuse_get_tree() in fs/fuse/inode.c).
 */
int tn_mount_fuse_again(int device, uid_t uid, gid_t gid, bool allow_other);

/* The ext4 file system on a block device. */
int tn_mount_disk(const char *device);

/* A tmpfs, root directory 0700. TN_UNLIMITED becomes a limit that no machine reaches. */
int tn_mount_memory_new(uint64_t bytes, uint64_t inodes);

/* New limits for such a tmpfs. -EINVAL: below what is in use, or no tmpfs. */
int tn_mount_memory_resize(int mount, uint64_t bytes, uint64_t inodes);
