/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The operations (TnOperation, see dispatch.h), by file, and what they share.
 * Any serving thread; 0, -errno or TN_NO_REPLY.
 */
#pragma once

#include "dispatch.h"
#include "resolve.h"

/* session.c */
int tn_op_init(TnRequest *request);
int tn_op_destroy(TnRequest *request);
int tn_op_statfs(TnRequest *request);

/* ops-name.c: entries come to be known and come to be */
int tn_op_lookup(TnRequest *request);
int tn_op_forget(TnRequest *request);
int tn_op_batch_forget(TnRequest *request);
int tn_op_mknod(TnRequest *request);
int tn_op_mkdir(TnRequest *request);
int tn_op_symlink(TnRequest *request);
int tn_op_link(TnRequest *request);

/* A regular file comes to be, as by MKNOD; its entry is in the reply then. */
int tn_create_file(TnRequest *request, mode_t mode);

/* ops-open.c: on the passthrough path only, else -ENOSYS */
int tn_op_open(TnRequest *request);
int tn_op_create(TnRequest *request);
int tn_op_release(TnRequest *request);
/* The open file of the node, with these flags, into the reply. 0 or -errno. */
int tn_reply_open(TnRequest *request, uint32_t index, uint32_t open_flags);

/* ops-tmpfile.c */
int tn_op_tmpfile(TnRequest *request);

/* ops-remove.c: entries go and move */
int tn_op_unlink(TnRequest *request);
int tn_op_rmdir(TnRequest *request);
int tn_op_rename(TnRequest *request);
int tn_op_rename2(TnRequest *request);

/* ops-attr.c */
int tn_op_getattr(TnRequest *request);
int tn_op_setattr(TnRequest *request);
int tn_op_readlink(TnRequest *request);
int tn_op_statx(TnRequest *request);

/* ops-file.c, ops-write.c */
int tn_op_read(TnRequest *request);
int tn_op_write(TnRequest *request);
int tn_op_fallocate(TnRequest *request);
int tn_op_fsync(TnRequest *request);
int tn_op_lseek(TnRequest *request);

/* ops-dir.c */
int tn_op_fsyncdir(TnRequest *request);
int tn_op_readdir(TnRequest *request);
int tn_op_readdirplus(TnRequest *request);

/* ops-xattr.c */
int tn_op_setxattr(TnRequest *request);
int tn_op_getxattr(TnRequest *request);
int tn_op_listxattr(TnRequest *request);
int tn_op_removexattr(TnRequest *request);

/*
 * Removes dir/name when it is an empty directory or an empty file with no other name; the
 * caller holds the tree lock for writing and tells the kernel. *ret_parent: node id of dir,
 * or 0 when the kernel does not know it. 0, -ENOENT (it may have gone before the kernel was
 * told), -ENOTEMPTY, or another -errno.
 */
int tn_remove_if_empty(TnNest *nest, int dir, const char *name, uint64_t *ret_parent);

/* Finishes or forgets what a killed worker was removing by itself; its journal is entered. */
void tn_remove_resume(TnNest *nest);

/* --- shared (ops-common.c) --- */

/* Room for the reply's payload, zeroed; sets reply_size. */
void *tn_reply_alloc(TnRequest *request, size_t size);

void tn_fill_attr(struct fuse_attr *attr, const struct stat *st);

/*
 * Enters (parent, name) with this stat into the node table, one more reference of the
 * kernel, and fills the entry that hands it over. 0 or -ENFILE.
 */
int tn_fill_entry(TnRequest *request, uint32_t parent, const char *name, const struct stat *st,
		  struct fuse_entry_out *ret);

/* What the rules say of a name, counted when it is a refusal that will be reported. */
TnVerdict tn_verdict_of_name(TnNest *nest, uint32_t parent, const char *name);
/* What they say of a node, by any of the names it is known under (its place). */
TnVerdict tn_verdict_of_node(TnNest *nest, uint32_t index);

/* A rule refuses the request at this node, or at this name in it: counts, tells operators. error.
 */
int tn_refused(TnNest *nest, uint32_t node, const char *name, int error);
/* Making an entry: 0, -ENOENT in a removed directory, -EPERM in the view's root, -EACCES, -EROFS;
 * counts refusals. */
int tn_check_new_name(TnNest *nest, uint32_t parent, const char *name);

/*
 * May a directory take one more name? Where directories grow one that does not fit has grown
 * already, and stays so: then nothing more until the nest is within its limit again. 0 or -ENOSPC,
 * counted. may_wait: no lock is held.
 */
int tn_check_room_for_name(TnNest *nest, bool may_wait);
/* Taking an entry away or changing it: 0, -EPERM, -ENOENT (denied), -EROFS; counts. */
int tn_check_old_name(TnNest *nest, uint32_t parent, const char *name);
/* Changing a node's data or attributes: 0, -EPERM for the view's root, -ENOENT, -EROFS; counts. */
int tn_check_change(TnNest *nest, uint32_t index);

/* nest-rules.c. Use of a node that a later rule denies: 0 or -EACCES; counts. */
int tn_check_revoked(TnNest *nest, uint32_t index);

/* --- inodes that outlive their names (ops-orphan.c) --- */

/*
 * Before dir/name, a name of the node, goes: makes sure that the inode stays, by a
 * descriptor that the node holds from now on, or (*ret_move) by moving it into orphans/
 * instead of unlinking it. 0, -ENOTEMPTY for a directory that cannot go, or another -errno.
 * The caller holds the tree lock for writing, and for the others, too.
 */
int tn_hold_take(TnNest *nest, int dir, const char *name, const struct stat *st, uint32_t index,
		 bool *ret_move);
/* Moves it: dir/name goes, the inode stays. 0 or -errno. */
int tn_hold_move(TnNest *nest, int dir, const char *name, uint32_t index);
/* The name stays after all. */
void tn_hold_undo(TnNest *nest, uint32_t index);
/* The name has gone, `last`: the last one. Repeating it does no harm. */
void tn_hold_keep(TnNest *nest, uint32_t index, bool last);

/*
 * Enters a file that never had a name, open as *fd (taken on success), into the node table:
 * one reference of the kernel, not charged yet. 0 or -errno.
 */
int tn_hold_unnamed(TnNest *nest, uint32_t parent, const struct stat *st, int *fd,
		    uint32_t *ret_index);
/* It has got its first name. */
void tn_hold_adopted(TnNest *nest, uint32_t index);

/* The kernel has let go of the node (a copy of its record): closes, deletes, refunds and
 * buries. No lock. */
void tn_hold_end(TnNest *nest, uint32_t index, const TnNode *node);

/*
 * Removes what no node accounts for from orphans/: a worker was killed between moving an
 * inode there and noting it, and nobody has come to need it. Before the nest is served.
 */
void tn_hold_clean(TnNest *nest);

/* For tn_node_forget() and tn_node_remove_link(): collects what must be done after the lock. */
typedef struct TnReleased {
	TnNest *nest;
	struct TnReleasedNode *list;
} TnReleased;
void tn_released_collect(TnNode *node, void *released);
/* Closes, deletes and refunds what was collected. No lock may be held. */
void tn_released_finish(TnReleased *released);
/* The kernel does not get to know the node after all: its reference ends. No lock may be held. */
void tn_take_back(TnNest *nest, uint32_t index);
