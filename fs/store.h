/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest's backing store: where its bytes are and how they are charged. Everything that
 * differs between the kinds (`dir`, a directory on disk; `memory`, a tmpfs of its own)
 * is known only behind this interface.
 *
 * Layout below the store's root: data/tmp and data/var-tmp (the subtrees of the view) and
 * orphans/ (files that were unlinked while in use, by node id).
 *
 * The formula of the charge, in bytes, which a recount repeats from the store alone:
 * 4,096 for every page of a regular file that has storage (holes are free, preallocated
 * pages are not), a directory's size beyond its first block (on a tmpfs, where it has no
 * blocks: nothing), the length of a symlink's target, name and value of every extended
 * attribute.
 *
 * A store that counts itself (kernel_counts) has a file system of its own with just the nest's
 * limit: what that says is in use is what is charged, and a recount adds up st_blocks.
 *
 * Any thread; a TnStore is not changed after its creation.
 */
#pragma once

#include "attach-proto.h"
#include "keeper-link.h"
#include "policy.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct TnStoreOps TnStoreOps;

typedef struct TnStore {
	const TnStoreOps *ops;
	int data;    /* descriptor of data/ */
	int orphans; /* descriptor of orphans/ */
	int mount;   /* memory, image: the detached file system; -1 for dir */
	int image;   /* image: its file; else -1 */
	uint64_t
		base; /* image: bytes in use while it is empty, and those of its ballast excepted */
	bool kernel_counts; /* its file system has just the nest's limit: bytes are not accounted */
} TnStore;

struct TnStoreOps {
	TnStoreKind kind;
	const char *name;

	/* Pages of the regular file that have storage. >= 0 or -errno. */
	int64_t (*pages)(int fd, const struct stat *st);

	/*
	 * Of the pages [first, first + count) of the file those that have storage, or
	 * -EOPNOTSUPP when the store can only tell the total.
	 */
	int64_t (*pages_in)(int fd, uint64_t first, uint64_t count);

	/* Pages charged for a directory. */
	uint64_t (*directory_pages)(const struct stat *st);
	bool directories_grow; /* false: directory_pages() is always 0 */
};

extern const TnStoreOps tn_store_dir_ops;
extern const TnStoreOps tn_store_dir_on_tmpfs_ops;
extern const TnStoreOps tn_store_memory_ops;
extern const TnStoreOps tn_store_image_ops;

const TnStoreOps *tn_store_ops(TnStoreKind kind); /* NULL: a kind this daemon has not */

/*
 * Makes (or, when it is there, opens) the layout below the directory `root`, which stays
 * the caller's. Subtrees are mode 1777, both belong to uid and gid. 0 or -errno.
 */
int tn_store_open(TnStore *ret, TnStoreKind kind, int root, uid_t uid, gid_t gid);

typedef struct TnStoreLimits {
	uint64_t bytes, inodes;
	bool kernel_counts; /* the bytes exactly, else with some to spare */
} TnStoreLimits;

/* A new memory store on a tmpfs that the keeper makes. 0 or -errno. */
int tn_store_open_memory(TnStore *ret, TnKeeperLink *keeper, const TnStoreLimits *limits, uid_t uid,
			 gid_t gid);
/*
 * A new image store: its file below `home`, as large as the limits, which must be finite, and
 * what ext4 needs besides. 0 or -errno: -ENOSPC the disk is too full, -ENOPKG no mke2fs here.
 */
int tn_store_open_image(TnStore *ret, TnKeeperLink *keeper, int home, const TnStoreLimits *limits,
			uid_t uid, gid_t gid);
/* tn_store_resize() of such a store. */
int tn_store_fit_image(const TnStore *store, TnKeeperLink *keeper, uint64_t bytes, uint64_t inodes);
/* tn_store_room() of such a store. */
int tn_store_image_room(const TnStore *store, uint64_t *ret_free, uint64_t *ret_used);

void tn_store_clear(TnStore *store);

/*
 * A changed limit reaches the store. 0, -EBUSY (it counts itself and holds more than that: it
 * takes nothing more for now, and is to be asked again), or another -errno.
 */
int tn_store_resize(const TnStore *store, TnKeeperLink *keeper, uint64_t bytes, uint64_t inodes);

/* What a store that counts itself has left, and uses. Bytes. 0 or -errno. */
int tn_store_room(const TnStore *store, uint64_t *ret_free, uint64_t *ret_used);

/* Name and value bytes of all user.* attributes of an open file or directory. >= 0 or -errno. */
int64_t tn_store_xattr_bytes(int fd);

/*
 * Bytes that the inode behind fd is charged (opened for reading; symlinks and special
 * files: an O_PATH descriptor). with_xattrs: count those as well. >= 0 or -errno.
 */
int64_t tn_store_charge(const TnStore *store, int fd, const struct stat *st, bool with_xattrs);
