/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Open files of a nest on the passthrough path, where the kernel sends OPEN and RELEASE: the
 * records in the arena (TnHandle), what is open of each node (TnOpened), and the ids by which
 * the kernel knows the store's files (keeper-link.h).
 *
 * All opens of one inode go one way at a time, with one id (the kernel refuses the others with
 * EIO: fs/fuse/iomode.c), so the id is the node's and lives as long as anything of it is open.
 *
 * A handle is noted in the journal before its record is taken: the successor of a killed worker
 * frees those of unanswered requests and makes the counts anew. Any thread.
 */
#pragma once

#include "nest-private.h"

/*
 * A handle for an open with these flags (open(2)) of the node. *ret_backing: the id to open it
 * with, or 0: by READ and WRITE. *ret_first_writer:
 * attributes that the kernel keeps of it may be kept no longer. 0 or -errno: -ENFILE too many are
 * open. The caller holds the tree lock for reading.
 */
int tn_handle_take(TnNest *nest, uint32_t index, uint32_t open_flags, uint64_t *ret_fh,
		   int32_t *ret_backing, bool *ret_first_writer);

/* Its end (RELEASE, or the kernel did not take the reply). Unknown ones are passed over. */
void tn_handle_release(TnNest *nest, uint64_t fh);

/*
 * How long the kernel may keep a file's attributes: not at all while somebody may change it
 * through a mapping, of which nobody is told. Seconds.
 */
uint64_t tn_attr_valid(const TnNest *nest, uint32_t index);
/* Before that: finds out whether there is still such a mapping. The tree lock is not held. */
void tn_opened_look(TnNest *nest, uint32_t index);

/* The kernel has let go of the node: what its handles left. Caller holds the table lock. */
void tn_opened_forget(TnNest *nest, uint32_t index);

/* The superblock has ended, and all ids with it. Caller holds the table lock. */
void tn_opened_reset(TnNest *nest);

/* --- for a successor, in this order --- */

/* The thread's journal is that of an unanswered request: its handle is free again. */
void tn_handle_take_back(TnNest *nest);
/* Counts and free list, from the records; ids that nothing needs are given back. */
void tn_opened_adopt(TnNest *nest);
