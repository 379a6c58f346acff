/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One nest passes from a killed worker to its successor (adopt.c), and the journal that it
 * leaves of its own work.
 */
#include "handles.h"
#include "journal.h"
#include "macros.h"
#include "ops.h"
#include "recount.h"
#include "registry-private.h"
#include "serve.h"

#include <string.h>

#define SHARE_MOST (INT64_C(1) << 56) /* beyond that is no share of anything */

static bool is_share(int64_t part)
{
	return part > -SHARE_MOST && part < SHARE_MOST;
}

static bool are_shares(const TnArenaHeader *header)
{
	for (size_t i = 0; i < TN_SHARES; i++) {
		const TnShare *share = &header->shares[i];

		if (!is_share(share->bytes) || !is_share(share->inodes) || !is_share(share->xattrs))
			return false;
	}
	return true;
}

static uint64_t positive(int64_t sum)
{
	return sum > 0 ? (uint64_t)sum : 0;
}

/* What is in use is what has been settled: no reservation outlives its worker. */
static void add_up_shares(TnArenaHeader *header)
{
	TnShare sum = {0};

	for (size_t i = 0; i < TN_SHARES; i++) {
		sum.bytes += header->shares[i].bytes;
		sum.inodes += header->shares[i].inodes;
		sum.xattrs += header->shares[i].xattrs;
	}
	atomic_store(&header->account.bytes_used, positive(sum.bytes));
	atomic_store(&header->account.inodes_used, positive(sum.inodes));
	atomic_store(&header->xattr_bytes, positive(sum.xattrs));
}

static void count_orphans(TnNest *nest)
{
	uint64_t orphans = 0, held = 0;

	for (uint32_t i = tn_node_next(nest->table, 0); i; i = tn_node_next(nest->table, i)) {
		const TnNode *node = tn_node_at(nest->table, i);

		orphans += (node->flags & TN_NODE_ORPHAN) != 0;
		held += node->held_fd >= 0;
	}
	atomic_store(&nest->arena.header->orphans, orphans);
	atomic_store(&nest->arena.header->held, held);
}

int tn_nest_adopt(TnNest *nest)
{
	TnArenaHeader *header = nest->arena.header;
	int r = tn_node_table_adopt(&nest->table, &nest->arena);
	bool known;

	if (r < 0)
		return r;
	known = are_shares(header);
	if (!known)
		memset(header->shares, 0, sizeof(header->shares));
	add_up_shares(header);
	count_orphans(nest);
	if (!known)
		tn_nest_recharge(nest);
	nest->device = atomic_load(&header->descriptors.device);
	/* Who made an ephemeral nest makes another one when the reply was lost: it ends now unless
	 * its superblock lives. */
	nest->attached_once = nest->ephemeral || atomic_load(&header->attached_once);
	nest->evicting = atomic_load(&header->evicting);
	tn_opened_adopt(nest);
	nest->revokes = true; /* perhaps: that is not written down */
	return tn_nest_load_life(nest);
}

void tn_nest_recount_given_up(TnNest *nest)
{
	if (!atomic_load(&nest->arena.header->recount_due))
		return;
	tn_nest_recharge(nest);
	atomic_store(&nest->arena.header->recount_due, 0);
}

/* There is no superblock: its end may have been interrupted. */
static void finish_end(TnNest *nest)
{
	/* Nobody watches them yet. */
	for (TnLiveAttachment *at = nest->attachments; at; at = at->next)
		tn_close(&at->lease);
	tn_nest_forget_all(nest);
	tn_nest_recount_given_up(nest);
	tn_nest_drop_attachments(nest);
	tn_nest_save_life(nest);
}

int tn_nest_resume(TnNest *nest)
{
	TnReleased released = {.nest = nest};
	int r = 0;

	tn_work_begin(nest);
	pthread_mutex_lock(&nest->table_lock);
	tn_node_sweep(nest->table, tn_released_collect, &released);
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
	if (nest->device < 0)
		finish_end(nest);
	tn_hold_clean(nest);
	if (nest->device >= 0)
		r = tn_serve_add(nest->serve, nest, nest->device);
	tn_work_end(nest);
	return r;
}

void tn_work_begin(TnNest *nest)
{
	TnSlot *slot;

	if (!nest->registry || !nest->state)
		return;
	pthread_mutex_lock(&nest->registry->work_lock);
	slot = &nest->state->slots[TN_SHARE_WORK];
	tn_journal_start(&slot->journal);
	slot->nest_id = nest->id;
	atomic_store(&slot->state, TN_SLOT_WORK);
	tn_journal_enter(&slot->journal);
}

void tn_work_end(TnNest *nest)
{
	if (!nest->registry || !nest->state)
		return;
	tn_journal_enter(NULL);
	atomic_store(&nest->state->slots[TN_SHARE_WORK].state, TN_SLOT_IDLE);
	pthread_mutex_unlock(&nest->registry->work_lock);
}

/* Unlinked files that are held by a descriptor lie in no directory. */
int tn_nest_count_held(TnNest *nest, TnUsage *usage)
{
	int r = 0;

	pthread_mutex_lock(&nest->table_lock);
	for (uint32_t i = tn_node_next(nest->table, 0); i && r == 0;
	     i = tn_node_next(nest->table, i)) {
		const TnNode *node = tn_node_at(nest->table, i);

		if ((node->flags & TN_NODE_ORPHAN) && node->held_fd >= 0)
			r = tn_recount_held(&nest->store, node->held_fd, usage);
	}
	pthread_mutex_unlock(&nest->table_lock);
	return r;
}

void tn_nest_recharge(TnNest *nest)
{
	TnUsage usage = {0};
	TnChange change;

	if (tn_recount_store(&nest->store, &usage) < 0 || tn_nest_count_held(nest, &usage) < 0)
		return;
	change = (TnChange){
		.bytes = (int64_t)usage.bytes - (int64_t)atomic_load(&nest->account->bytes_used),
		.inodes = (int64_t)usage.inodes - (int64_t)atomic_load(&nest->account->inodes_used),
		.xattrs = (int64_t)usage.xattr_bytes -
			  (int64_t)atomic_load(&nest->arena.header->xattr_bytes),
	};
	tn_journal_settle(nest, NULL, &change);
}
