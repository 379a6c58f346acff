/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ops.h"

#include "handles.h"
#include "log.h"
#include "macros.h"
#include "observe.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void *tn_reply_alloc(TnRequest *request, size_t size)
{
	void *place = request->reply + request->reply_size;

	memset(place, 0, size);
	request->reply_size += size;
	return place;
}

void tn_fill_attr(struct fuse_attr *attr, const struct stat *st)
{
	*attr = (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.blksize = TN_PAGE_SIZE,
	};
}

int tn_fill_entry(TnRequest *request, uint32_t parent, const char *name, const struct stat *st,
		  struct fuse_entry_out *ret)
{
	TnNest *nest = request->nest;
	uint32_t index;
	uint64_t id = 0;

	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_enter(nest->table, parent, name, st->st_ino, st->st_mode);
	if (index)
		id = tn_node_at(nest->table, index)->id;
	pthread_mutex_unlock(&nest->table_lock);
	if (!index)
		return -ENFILE;
	if (st->st_mode & (S_ISUID | S_ISGID)) {
		pthread_mutex_lock(tn_nest_node_lock(nest, index));
		tn_node_at(nest->table, index)->charge |= TN_CHARGE_SET_ID;
		pthread_mutex_unlock(tn_nest_node_lock(nest, index));
	}
	*ret = (struct fuse_entry_out){
		.nodeid = id,
		.entry_valid = TN_VALID_SECONDS,
		.attr_valid = tn_attr_valid(nest, index),
	};
	tn_fill_attr(&ret->attr, st);
	return 0;
}

/* --- rules -------------------------------------------------------------------------- */

static TnVerdict verdict(TnNest *nest, uint32_t parent, const char *name)
{
	const char *components[TN_RULE_DEPTH_MAX];
	TnSubtree subtree;
	TnVerdict result;
	size_t n;

	pthread_mutex_lock(&nest->table_lock);
	n = tn_node_place(nest->table, parent, name, components, tn_policy_depth(nest->policy),
			  &subtree);
	result = tn_policy_match(nest->policy, subtree, components, n);
	pthread_mutex_unlock(&nest->table_lock);
	return result;
}

TnVerdict tn_verdict_of_name(TnNest *nest, uint32_t parent, const char *name)
{
	return verdict(nest, parent, name);
}

TnVerdict tn_verdict_of_node(TnNest *nest, uint32_t index)
{
	return verdict(nest, index, NULL);
}

int tn_refused(TnNest *nest, uint32_t node, const char *name, int error)
{
	atomic_fetch_add(&nest->arena.header->denied, 1);
	tn_observe_denied(nest, node, name, -error);
	return error;
}

/* Removed, and alive by somebody's cwd: nothing can be made in it. */
static bool is_removed(TnNest *nest, uint32_t directory)
{
	bool removed;

	pthread_mutex_lock(&nest->table_lock);
	removed = tn_node_at(nest->table, directory)->flags & TN_NODE_ORPHAN;
	pthread_mutex_unlock(&nest->table_lock);
	return removed;
}

int tn_check_room_for_name(TnNest *nest, bool may_wait)
{
	TN_RESERVATION reservation = {0};

	if (!nest->store.ops->directories_grow || !tn_quota_is_over(nest->account))
		return 0;
	if (may_wait)
		return tn_nest_reserve(nest, 1, 0, &reservation);
	return tn_quota_reserve(nest->account, 1, 0, &reservation);
}

int tn_check_new_name(TnNest *nest, uint32_t parent, const char *name)
{
	if (parent == TN_ROOT_INDEX)
		return -EPERM;
	if (is_removed(nest, parent))
		return -ENOENT;
	if (nest->frozen)
		return -EROFS;
	switch (verdict(nest, parent, name)) {
	case TN_DENIED:
		return tn_refused(nest, parent, name, -EACCES);
	case TN_READ_ONLY:
		return tn_refused(nest, parent, name, -EROFS);
	default:
		return 0;
	}
}

int tn_check_old_name(TnNest *nest, uint32_t parent, const char *name)
{
	if (parent == TN_ROOT_INDEX)
		return -EPERM;
	if (nest->frozen)
		return -EROFS;
	switch (verdict(nest, parent, name)) {
	case TN_DENIED:
		return tn_refused(nest, parent, name, -ENOENT);
	case TN_READ_ONLY:
		return tn_refused(nest, parent, name, -EROFS);
	default:
		return 0;
	}
}

int tn_check_change(TnNest *nest, uint32_t index)
{
	if (index == TN_ROOT_INDEX)
		return -EPERM;
	if (nest->frozen)
		return -EROFS;
	/* Denied names are never handed out, so only read-only rules need a look at the node. */
	if (tn_policy_has_read_only(nest->policy) &&
	    tn_verdict_of_node(nest, index) == TN_READ_ONLY)
		return tn_refused(nest, index, NULL, -EROFS);
	return 0;
}

/* --- nodes that the kernel has forgotten --------------------------------------------- */

typedef struct TnReleasedNode {
	struct TnReleasedNode *next;
	uint32_t index; /* of an orphan, which stays until it is buried */
	TnNode node;    /* as it was */
} TnReleasedNode;

void tn_released_collect(TnNode *node, void *data)
{
	TnReleased *released = data;
	TnReleasedNode *copy = malloc(sizeof(*copy));

	if (node->type == S_IFREG)
		tn_opened_forget(released->nest, (uint32_t)(node - released->nest->arena.nodes));
	if (!copy) {
		/* An orphan goes with the superblock then; a descriptor stays open until it does.
		 */
		tn_log(TN_LOG_ERROR, "forget: node %" PRIu64 ": out of memory", node->id);
		return;
	}
	*copy = (TnReleasedNode){
		.next = released->list,
		.index = (uint32_t)(node - released->nest->arena.nodes),
		.node = *node,
	};
	released->list = copy;
}

void tn_released_finish(TnReleased *released)
{
	TnNest *nest = released->nest;

	while (released->list) {
		TnReleasedNode *item = released->list;
		const TnNode *node = &item->node;

		released->list = item->next;
		if (node->type == S_IFREG)
			tn_fdcache_drop(nest->files, nest->id, node->id);
		else if (node->type == S_IFDIR)
			tn_fdcache_drop(nest->dirs, nest->id, node->id);
		if ((node->flags & TN_NODE_ORPHAN) || node->held_fd >= 0)
			tn_hold_end(nest, item->index, node);
		free(item);
	}
}

void tn_take_back(TnNest *nest, uint32_t index)
{
	TnReleased released = {.nest = nest};

	pthread_mutex_lock(&nest->table_lock);
	tn_node_forget(nest->table, index, 1, tn_released_collect, &released);
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
}
