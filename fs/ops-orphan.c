/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inodes that outlive their names: unlinked while the kernel still refers to them.
 *
 * As long as a nest's budget lasts a descriptor holds such an inode; beyond it the inode
 * moves to orphans/ under its node's id. Either way its inode number cannot be given to
 * another file, which the node table relies on. It stays charged until its FORGET.
 */
#include "charge.h"
#include "ops.h"

#include "macros.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

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

static void known_hold(TnNest *nest, uint32_t index, uint64_t *ret_id, bool *ret_held)
{
	pthread_mutex_lock(&nest->table_lock);
	*ret_id = tn_node_at(nest->table, index)->id;
	*ret_held = tn_node_at(nest->table, index)->held_fd >= 0;
	pthread_mutex_unlock(&nest->table_lock);
}

int tn_hold_take(TnNest *nest, int dir, const char *name, const struct stat *st, uint32_t index,
		 TnHold *ret)
{
	bool directory = S_ISDIR(st->st_mode), held;
	char orphan[TN_ORPHAN_NAME_MAX];
	uint64_t id;
	int r;

	*ret = (TnHold){.fd = -1};
	known_hold(nest, index, &id, &held);
	if (held)
		return 0;
	if (take_budget(nest)) {
		int flags = directory ? O_RDONLY | O_DIRECTORY : O_PATH;

		ret->fd = tn_open_beneath(dir, name, flags | O_NOFOLLOW, 0);
		if (ret->fd >= 0)
			return directory ? load_directory(nest, index, ret->fd) : 0;
		give_budget(nest);
	}
	/* It has another name, which is found again when somebody looks it up. */
	if (!directory && st->st_nlink > 1)
		return 0;
	r = directory ? check_empty(dir, name) : 0;
	if (r < 0)
		return r;
	tn_orphan_name(orphan, id);
	if (renameat(dir, name, nest->store.orphans, orphan) < 0)
		return -errno;
	ret->moved = true;
	return 0;
}

void tn_hold_undo(TnNest *nest, int dir, const char *name, uint32_t index, TnHold *hold)
{
	char orphan[TN_ORPHAN_NAME_MAX];
	uint64_t id;
	bool held;

	if (hold->moved) {
		known_hold(nest, index, &id, &held);
		tn_orphan_name(orphan, id);
		renameat(nest->store.orphans, orphan, dir, name);
	}
	if (hold->fd >= 0)
		give_budget(nest);
	tn_close(&hold->fd);
	*hold = (TnHold){.fd = -1};
}

/* A removed directory may have given its blocks back at once. */
static void settle_removed(TnNest *nest, uint32_t index, int fd)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, index);

	pthread_mutex_lock(lock);
	tn_charge_directory(nest, tn_node_at(nest->table, index), fd);
	pthread_mutex_unlock(lock);
}

void tn_hold_keep(TnNest *nest, const struct stat *st, uint32_t index, TnHold *hold)
{
	bool directory = S_ISDIR(st->st_mode), orphan = directory || st->st_nlink == 1;
	TnNode *node;

	if (directory && hold->fd >= 0)
		settle_removed(nest, index, hold->fd);
	pthread_mutex_lock(&nest->table_lock);
	node = tn_node_at(nest->table, index);
	if (hold->fd >= 0)
		node->held_fd = tn_steal_fd(&hold->fd);
	if (orphan)
		node->flags |= TN_NODE_ORPHAN | (hold->moved ? TN_NODE_IN_ORPHANS : 0);
	pthread_mutex_unlock(&nest->table_lock);
	if (orphan)
		atomic_fetch_add(&nest->arena.header->orphans, 1);
}

int tn_hold_unnamed(TnNest *nest, uint32_t index, int fd)
{
	char path[32], orphan[TN_ORPHAN_NAME_MAX];
	bool held = take_budget(nest);
	TnNode *node;
	uint64_t id;
	bool any;
	int r = 0;

	known_hold(nest, index, &id, &any);
	if (!held) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		tn_orphan_name(orphan, id);
		if (linkat(AT_FDCWD, path, nest->store.orphans, orphan, AT_SYMLINK_FOLLOW) < 0)
			r = -errno;
	}
	if (r < 0)
		return r;
	pthread_mutex_lock(&nest->table_lock);
	node = tn_node_at(nest->table, index);
	node->flags |= TN_NODE_ORPHAN | TN_NODE_UNNAMED | (held ? 0 : TN_NODE_IN_ORPHANS);
	node->held_fd = held ? fd : -1;
	pthread_mutex_unlock(&nest->table_lock);
	atomic_fetch_add(&nest->arena.header->orphans, 1);
	return held;
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
		node->held_fd = -1;
		atomic_fetch_sub(&nest->arena.header->orphans, 1);
	}
	pthread_mutex_unlock(&nest->table_lock);
	if (held >= 0)
		give_budget(nest);
}

/* --- the end ------------------------------------------------------------------------------ */

/* What an unlinked inode was charged, read before its last descriptor goes. */
static uint64_t orphan_charge(TnNest *nest, const TnNode *node, int fd)
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
			atomic_fetch_sub(&nest->arena.header->xattr_bytes, (uint64_t)names);
	}
	bytes = tn_store_charge(&nest->store, readable >= 0 ? readable : fd, &st, xattrs);
	return bytes > 0 ? (uint64_t)bytes : 0;
}

static void finish_orphan(TnNest *nest, const TnNode *node, int held)
{
	bool moved = node->flags & TN_NODE_IN_ORPHANS;
	char name[TN_ORPHAN_NAME_MAX];
	TN_AUTOFD found = -1;
	uint64_t bytes;

	if (moved) {
		tn_orphan_name(name, node->id);
		found = tn_open_beneath(nest->store.orphans, name, O_PATH | O_NOFOLLOW, 0);
	}
	bytes = orphan_charge(nest, node, moved ? found : held);
	if (moved)
		unlinkat(nest->store.orphans, name, node->type == S_IFDIR ? AT_REMOVEDIR : 0);
	/* In this order: who finds the account full looks at the count for something to wait for.
	 */
	tn_nest_refund(nest, bytes, 1);
	atomic_fetch_sub(&nest->arena.header->orphans, 1);
}

void tn_hold_end(TnNest *nest, const TnNode *node)
{
	TN_AUTOFD held = node->held_fd;

	if (node->flags & TN_NODE_ORPHAN)
		finish_orphan(nest, node, held);
	if (held >= 0)
		give_budget(nest);
}
