/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inodes that outlive their names: unlinked while the kernel still refers to them.
 *
 * As long as a nest's budget lasts a descriptor holds such an inode; beyond it the inode
 * moves to orphans/ under its node's id. Either way its inode number cannot be given to
 * another file, which the node table relies on. It stays charged until its FORGET.
 */
#include "charge.h"
#include "journal.h"
#include "ops.h"

#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_linkat},
	TN_CALL_RENAMEAT,
	{SYS_unlinkat},
	{SYS_getdents64},
};

#define HELD_MOST 512U /* descriptors that one nest's inodes without a place may hold */

static bool take_budget(TnNest *nest)
{
	if (atomic_fetch_add(&nest->arena.header->held, 1) < HELD_MOST)
		return true;
	atomic_fetch_sub(&nest->arena.header->held, 1);
	return false;
}

static void give_budget(TnNest *nest)
{
	atomic_fetch_sub(&nest->arena.header->held, 1);
}

/* 0, -ENOTEMPTY or another -errno. */
static int check_empty(int dir, const char *name)
{
	int fd = tn_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *item;
	int r = 0;

	if (!stream) {
		r = fd < 0 ? fd : -errno;
		tn_close(&fd);
		return r;
	}
	while (r == 0 && (item = readdir(stream))) {
		if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
			r = -ENOTEMPTY;
	}
	closedir(stream);
	return r;
}

/* Before a directory goes: what it is charged shows only while it has its name. */
static int load_directory(TnNest *nest, uint32_t index, int fd)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, index);
	int r;

	pthread_mutex_lock(lock);
	r = tn_charge_directory_load(nest, tn_node_at(nest->table, index), fd);
	pthread_mutex_unlock(lock);
	return r;
}

static uint64_t id_of(TnNest *nest, uint32_t index, bool *ret_held)
{
	uint64_t id;

	pthread_mutex_lock(&nest->table_lock);
	id = tn_node_at(nest->table, index)->id;
	*ret_held = tn_node_at(nest->table, index)->held_fd >= 0;
	pthread_mutex_unlock(&nest->table_lock);
	return id;
}

/* The record names the descriptor before the name goes: a successor closes all others. */
static void set_held(TnNest *nest, uint32_t index, int fd)
{
	pthread_mutex_lock(&nest->table_lock);
	*(volatile int32_t *)&tn_node_at(nest->table, index)->held_fd = fd;
	pthread_mutex_unlock(&nest->table_lock);
}

int tn_hold_take(TnNest *nest, int dir, const char *name, const struct stat *st, uint32_t index,
		 bool *ret_move)
{
	bool directory = S_ISDIR(st->st_mode), held;
	uint64_t id;

	*ret_move = false;
	id = id_of(nest, index, &held);
	if (held)
		return 0;
	if (take_budget(nest)) {
		int fd = tn_fdcache_take(directory ? nest->dirs : nest->files, nest->id, id);

		if (fd < 0) {
			int flags = directory ? O_RDONLY | O_DIRECTORY : O_PATH;

			fd = tn_open_beneath(dir, name, flags | O_NOFOLLOW, 0);
		}
		if (fd >= 0) {
			set_held(nest, index, fd);
			return directory ? load_directory(nest, index, fd) : 0;
		}
		give_budget(nest);
	}
	/* It has another name, which is found again when somebody looks it up. */
	if (!directory && st->st_nlink > 1)
		return 0;
	*ret_move = true;
	return directory ? check_empty(dir, name) : 0;
}

int tn_hold_move(TnNest *nest, int dir, const char *name, uint32_t index)
{
	char orphan[TN_ORPHAN_NAME_MAX];
	bool held;

	tn_orphan_name(orphan, id_of(nest, index, &held));
	return renameat(dir, name, nest->store.orphans, orphan) < 0 ? -errno : 0;
}

void tn_hold_undo(TnNest *nest, uint32_t index)
{
	TN_AUTOFD held = -1;

	pthread_mutex_lock(&nest->table_lock);
	if (!(tn_node_at(nest->table, index)->flags & TN_NODE_ORPHAN)) {
		held = tn_node_at(nest->table, index)->held_fd;
		*(volatile int32_t *)&tn_node_at(nest->table, index)->held_fd = -1;
	}
	pthread_mutex_unlock(&nest->table_lock);
	if (held >= 0)
		give_budget(nest);
}

/* A removed directory may have given its blocks back at once. */
static void settle_removed(TnNest *nest, uint32_t index, int fd)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, index);

	pthread_mutex_lock(lock);
	tn_charge_directory(nest, tn_node_at(nest->table, index), fd);
	pthread_mutex_unlock(lock);
}

void tn_hold_keep(TnNest *nest, uint32_t index, bool last)
{
	TnNode *node = tn_node_at(nest->table, index);
	bool new_orphan = false;

	if (node->type == S_IFDIR && node->held_fd >= 0)
		settle_removed(nest, index, node->held_fd);
	pthread_mutex_lock(&nest->table_lock);
	if (last && !(node->flags & TN_NODE_ORPHAN)) {
		node->flags |= TN_NODE_ORPHAN | (node->held_fd < 0 ? TN_NODE_IN_ORPHANS : 0);
		new_orphan = true;
	}
	pthread_mutex_unlock(&nest->table_lock);
	if (new_orphan)
		atomic_fetch_add(&nest->arena.header->orphans, 1);
}

/* Beyond the budget: a name in orphans/ keeps the inode. */
static int move_unnamed(TnNest *nest, uint32_t index)
{
	TN_AUTOFD fd = -1;
	char path[32], orphan[TN_ORPHAN_NAME_MAX];
	TnNode *node = tn_node_at(nest->table, index);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", node->held_fd);
	tn_orphan_name(orphan, node->id);
	if (linkat(AT_FDCWD, path, nest->store.orphans, orphan, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	tn_kill_point();
	pthread_mutex_lock(&nest->table_lock);
	node->flags |= TN_NODE_IN_ORPHANS;
	fd = node->held_fd;
	*(volatile int32_t *)&node->held_fd = -1;
	pthread_mutex_unlock(&nest->table_lock);
	return 0;
}

int tn_hold_unnamed(TnNest *nest, uint32_t parent, const struct stat *st, int *fd,
		    uint32_t *ret_index)
{
	bool within = take_budget(nest);
	uint32_t index;
	int r;

	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_enter_unnamed(nest->table, parent, st->st_ino, st->st_mode);
	if (index) {
		TnNode *node = tn_node_at(nest->table, index);

		node->charge = TN_CHARGE_KNOWN | TN_CHARGE_NONE |
			       (st->st_mode & (S_ISUID | S_ISGID) ? TN_CHARGE_SET_ID : 0);
		node->flags |= TN_NODE_ORPHAN | TN_NODE_UNNAMED;
		node->held_fd = tn_steal_fd(fd);
		atomic_fetch_add(&nest->arena.header->orphans, 1);
	}
	pthread_mutex_unlock(&nest->table_lock);
	if (within && !index)
		give_budget(nest);
	*ret_index = index;
	if (!index)
		return -ENFILE;
	r = within ? 0 : move_unnamed(nest, index);
	if (r < 0)
		atomic_fetch_add(&nest->arena.header->held,
				 1); /* beyond the budget, until it ends */
	return r;
}

void tn_hold_adopted(TnNest *nest, uint32_t index)
{
	TN_AUTOFD held = -1;
	TnNode *node;

	pthread_mutex_lock(&nest->table_lock);
	node = tn_node_at(nest->table, index);
	if (node->flags & TN_NODE_ORPHAN) {
		node->flags &= ~(uint32_t)(TN_NODE_ORPHAN | TN_NODE_UNNAMED | TN_NODE_IN_ORPHANS);
		held = node->held_fd;
		*(volatile int32_t *)&node->held_fd = -1;
		atomic_fetch_sub(&nest->arena.header->orphans, 1);
	}
	pthread_mutex_unlock(&nest->table_lock);
	if (held >= 0)
		give_budget(nest);
}

/* --- the end ------------------------------------------------------------------------------ */

/* What an unlinked inode was charged, read before its last descriptor goes. */
static uint64_t orphan_charge(TnNest *nest, const TnNode *node, int fd, int64_t *ret_xattrs)
{
	bool xattrs = atomic_load(&nest->arena.header->xattr_bytes) > 0 &&
		      (node->type == S_IFREG || node->type == S_IFDIR);
	TN_AUTOFD readable = -1;
	struct stat st;
	int64_t bytes;

	if ((node->charge & TN_CHARGE_KNOWN) && !xattrs)
		return node->pages * TN_PAGE_SIZE;
	if (fstat(fd, &st) < 0)
		return 0;
	if (node->type == S_IFREG || node->type == S_IFDIR) {
		readable = tn_reopen(fd, O_RDONLY);
		if (readable < 0)
			return node->pages * TN_PAGE_SIZE;
	}
	if (xattrs) {
		int64_t names = tn_store_xattr_bytes(readable);

		if (names > 0)
			*ret_xattrs = -names;
	}
	bytes = tn_store_charge(&nest->store, readable >= 0 ? readable : fd, &st, xattrs);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* It leaves the account; a second attempt finds that it has. */
static void refund_orphan(TnNest *nest, uint32_t index, const TnNode *node, int fd)
{
	TnChange change = {.inodes = -1, .node = index, .charge = TN_CHARGE_NONE};

	if (node->charge & TN_CHARGE_NONE)
		return;
	change.bytes = -(int64_t)orphan_charge(nest, node, fd, &change.xattrs);
	tn_journal_settle(nest, NULL, &change);
}

static void bury(TnNest *nest, uint32_t index)
{
	TnReleased released = {.nest = nest};

	pthread_mutex_lock(&nest->table_lock);
	tn_node_bury(nest->table, index, tn_released_collect, &released);
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
}

static void finish_orphan(TnNest *nest, uint32_t index, const TnNode *node)
{
	bool moved = node->flags & TN_NODE_IN_ORPHANS;
	char name[TN_ORPHAN_NAME_MAX];
	TN_AUTOFD found = -1;

	if (moved) {
		tn_orphan_name(name, node->id);
		found = tn_open_beneath(nest->store.orphans, name, O_PATH | O_NOFOLLOW, 0);
	}
	/* In this order: who finds the account full looks at the count for something to wait for,
	 * and an inode that is charged can always be found. */
	refund_orphan(nest, index, node, moved ? found : node->held_fd);
	tn_kill_point();
	if (moved)
		unlinkat(nest->store.orphans, name, node->type == S_IFDIR ? AT_REMOVEDIR : 0);
	tn_kill_point();
	atomic_fetch_sub(&nest->arena.header->orphans, 1);
	bury(nest, index);
}

void tn_hold_end(TnNest *nest, uint32_t index, const TnNode *node)
{
	TN_AUTOFD held = node->held_fd;

	if (node->flags & TN_NODE_ORPHAN)
		finish_orphan(nest, index, node);
	if (held >= 0)
		give_budget(nest);
}

/* --- after a worker's death ------------------------------------------------------------------ */

/* A node that has a descriptor does not need the name; one that has lost neither might. */
static bool is_left_over(TnNest *nest, const char *name)
{
	char expected[TN_ORPHAN_NAME_MAX];
	uint64_t id = strtoull(name, NULL, 10);
	const TnNode *node;
	uint32_t index;

	tn_orphan_name(expected, id);
	if (strcmp(expected, name) != 0)
		return false;
	index = tn_node_by_id(nest->table, id);
	node = tn_node_at(nest->table, index);
	return index == 0 || (!(node->flags & TN_NODE_IN_ORPHANS) && node->held_fd >= 0);
}

void tn_hold_clean(TnNest *nest)
{
	int fd = tn_open_beneath(nest->store.orphans, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *item;

	if (!stream) {
		tn_close(&fd);
		return;
	}
	while ((item = readdir(stream))) {
		if (is_left_over(nest, item->d_name) &&
		    unlinkat(nest->store.orphans, item->d_name, 0) < 0)
			unlinkat(nest->store.orphans, item->d_name, AT_REMOVEDIR);
	}
	closedir(stream);
}
