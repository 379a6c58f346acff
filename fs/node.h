/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The node table: which inodes of the store the kernel knows, under which names.
 *
 * Ownership: a node lives while the kernel holds a lookup count on it, or while it is the
 * parent of a link of another node. The kernel's count is raised by every reply that
 * carries an entry and lowered by FORGET only. One inode of the store has one node,
 * however many names it has (hash on the inode number), so hard links and sockets keep
 * one identity.
 *
 * Not locked inside: the caller holds the nest's table lock. Nodes are named by index;
 * an index stays valid while the kernel holds the node, a pointer only under the lock.
 */
#pragma once

#include "arena.h"
#include "policy.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct TnNodeTable TnNodeTable;
typedef void (*TnNodeReleased)(TnNode *node, void *data);

#define TN_ROOT_INDEX 1U /* nodeid 1 (FUSE_ROOT_ID): the view's root */

/* Borrows the arena; starts with the root alone. 0 or -ENOMEM. */
int tn_node_table_new(TnNodeTable **ret, TnArena *arena, uint64_t root_ino);
void tn_node_table_free(TnNodeTable *table); /* takes NULL */

/*
 * The table of an arena that a killed worker has left, at whatever point: hashes, chains and
 * free lists are made anew from the records that are whole (arena.h, tn_arena_mend()). References
 * must have been mended (journal.h). 0, -ENOMEM or -EBADMSG.
 */
int tn_node_table_adopt(TnNodeTable **ret, TnArena *arena);

/* Releases every node that nothing needs: what such a worker did not come to. */
void tn_node_sweep(TnNodeTable *table, TnNodeReleased released, void *data);

/* Forgets everything but the root (the superblock has ended). Held descriptors must be closed
 * before. */
void tn_node_table_reset(TnNodeTable *table, uint64_t root_ino);

TnNode *tn_node_at(TnNodeTable *table, uint32_t index);

/* Index of the node, or 0. */
uint32_t tn_node_by_id(TnNodeTable *table, uint64_t id);
uint32_t tn_node_by_ino(TnNodeTable *table, uint64_t ino);

/* Next live node after index (0 starts), or 0 at the end. */
uint32_t tn_node_next(TnNodeTable *table, uint32_t index);
size_t tn_node_count(TnNodeTable *table);

/*
 * The node of an entry that is about to be handed to the kernel: found by inode number or
 * made, given the name (parent, name) if it lacks it, its lookup count raised by one.
 * Index, or 0 when the table is full or memory is short.
 */
uint32_t tn_node_enter(TnNodeTable *table, uint32_t parent, const char *name, uint64_t ino,
		       mode_t type);

/* The same for an inode without any name (O_TMPFILE) in the subtree of the directory `parent`. */
uint32_t tn_node_enter_unnamed(TnNodeTable *table, uint32_t parent, uint64_t ino, mode_t type);

/*
 * Lowers the lookup count; frees the node and ancestors that nothing needs any more.
 * Calls released for each freed node, still whole, before it goes. An orphan stays, for
 * what its end takes, until tn_node_bury().
 */
void tn_node_forget(TnNodeTable *table, uint32_t index, uint64_t count, TnNodeReleased released,
		    void *data);

/* The end of a released orphan's record. */
void tn_node_bury(TnNodeTable *table, uint32_t index, TnNodeReleased released, void *data);

/* Gives the node one more name. False when memory is short (the name can be looked up again). */
bool tn_node_add_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name);
/* Takes a name away; unknown ones are ignored. */
void tn_node_remove_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name,
			 TnNodeReleased released, void *data);
/* True when it was the known name. */
bool tn_node_has_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name);

/* True when it is the known name, and there is no other. */
bool tn_node_is_only_link(TnNodeTable *table, uint32_t index, uint32_t parent, const char *name);

/* The first known name of the node: its parent, and its name copied. 0 when it has none. */
uint32_t tn_node_name(TnNodeTable *table, uint32_t index, char name[NAME_MAX + 1]);

/* Calls visit for each known name of the node; the text is valid during the call. */
typedef void (*TnNodeName)(uint32_t parent, const char *name, void *data);
void tn_node_each_name(TnNodeTable *table, uint32_t index, TnNodeName visit, void *data);

/*
 * The first `most` components of the place parent/name (name NULL: of parent itself) into
 * components[], pointing into the arena (valid under the lock) and at name. Returns how
 * many, and the subtree. A deeper place gives just `most`.
 */
size_t tn_node_place(TnNodeTable *table, uint32_t parent, const char *name,
		     const char *components[], size_t most, TnSubtree *ret_subtree);
