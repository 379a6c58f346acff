/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "journal.h"

#include "log.h"
#include "nest-private.h"

#include <string.h>

/* Each thread works on one request at a time, as the kernel's current->journal_info. */
static _Thread_local TnJournal *current;

TnJournal *tn_journal_current(void)
{
	return current;
}

void tn_journal_enter(TnJournal *journal)
{
	current = journal;
}

void tn_journal_start(TnJournal *journal)
{
	atomic_store(&journal->step, TN_STEP_NONE);
	atomic_store(&journal->again, 0);
	atomic_store(&journal->handle, 0);
	atomic_store(&journal->given_begun, 0);
	atomic_store(&journal->given, 0);
	atomic_store(&journal->taken_begun, 0);
	atomic_store(&journal->taken, 0);
	/* Of a nest that could not be taken over. */
	atomic_store(&journal->redo.valid, 0);
}

void tn_journal_begin(const TnNotes *notes)
{
	if (!current)
		return;
	tn_kill_point();
	current->notes = *notes;
	atomic_store(&current->step, TN_STEP_BEGUN);
	tn_kill_point();
}

void tn_journal_abandon(void)
{
	if (current)
		atomic_store(&current->step, TN_STEP_NONE);
}

bool tn_journal_is_again(void)
{
	return current && atomic_load(&current->again);
}

uint32_t tn_journal_step(void)
{
	return current ? atomic_load(&current->step) : TN_STEP_NONE;
}

const TnNotes *tn_journal_interrupted(void)
{
	return tn_journal_step() == TN_STEP_NONE ? NULL : &current->notes;
}

/* --- references ----------------------------------------------------------------------------- */

bool tn_journal_give(TnNode *node, uint32_t index)
{
	uint32_t n;

	if (!current) {
		node->lookups++;
		return true;
	}
	n = atomic_load(&current->given);
	if (n == TN_GIVEN_MOST)
		return false;
	current->given_nodes[n] = index;
	current->given_before = node->lookups;
	atomic_store(&current->given_begun, n + 1);
	tn_kill_point();
	*(volatile uint64_t *)&node->lookups = current->given_before + 1;
	tn_kill_point();
	atomic_store(&current->given, n + 1);
	return true;
}

void tn_journal_take(TnNode *node, uint32_t index, uint64_t count)
{
	/* The kernel never takes back more than it was given; a hostile one gains nothing. */
	uint64_t after = node->lookups > count ? node->lookups - count : 0;
	uint32_t n;

	if (!current) {
		node->lookups = after;
		return;
	}
	n = atomic_load(&current->taken);
	current->taken_node = index;
	current->taken_after = after;
	atomic_store(&current->taken_begun, n + 1);
	tn_kill_point();
	*(volatile uint64_t *)&node->lookups = after;
	tn_kill_point();
	atomic_store(&current->taken, n + 1);
}

void tn_journal_take_none(void)
{
	if (!current)
		return;
	/* In this order: the record of the last one must not come to look half-made. */
	atomic_fetch_add(&current->taken, 1);
	atomic_fetch_add(&current->taken_begun, 1);
}

uint32_t tn_journal_taken(void)
{
	return current ? atomic_load(&current->taken) : 0;
}

#define CHARGE_MOST (UINT64_C(1) << 60)

static bool is_in_table(const TnNest *nest, uint32_t index)
{
	return index < nest->arena.header->nodes_end;
}

static bool is_journal(const TnNest *nest, const TnJournal *journal)
{
	uint32_t given = atomic_load(&journal->given), begun = atomic_load(&journal->given_begun);

	if (begun > TN_GIVEN_MOST || given > begun || begun - given > 1 ||
	    !is_in_table(nest, journal->taken_node))
		return false;
	for (uint32_t i = 0; i < begun; i++) {
		if (!is_in_table(nest, journal->given_nodes[i]))
			return false;
	}
	return !atomic_load(&journal->redo.valid) || is_in_table(nest, journal->redo.node);
}

void tn_journal_mend(TnNest *nest, TnJournal *journal)
{
	TnGone *gone = &journal->notes.removed.gone; /* where a renamed one's notes are as well */

	if (!is_journal(nest, journal)) {
		tn_log(TN_LOG_WARNING, "nest %s: the notes on a request are none", nest->name);
		journal->taken_node = 0;
		tn_journal_start(journal);
	}
	/* Behind what the other kinds of notes use. */
	journal->notes.removed.name[NAME_MAX] = '\0';
	if (!is_in_table(nest, gone->parent) || !nest->arena.nodes[gone->parent].id)
		gone->parent = 0;
	if (gone->bytes > CHARGE_MOST || gone->xattrs > CHARGE_MOST)
		gone->bytes = gone->xattrs = 0;
}

void tn_journal_mend_references(TnNest *nest, TnJournal *journal)
{
	uint32_t given = atomic_load(&journal->given), taken = atomic_load(&journal->taken);

	if (atomic_load(&journal->given_begun) > given) {
		nest->arena.nodes[journal->given_nodes[given]].lookups = journal->given_before;
		atomic_store(&journal->given_begun, given);
	}
	if (atomic_load(&journal->taken_begun) > taken) {
		nest->arena.nodes[journal->taken_node].lookups = journal->taken_after;
		atomic_store(&journal->taken, taken + 1);
	}
}

void tn_journal_undo_references(TnNest *nest, TnJournal *journal)
{
	uint32_t n;

	/* One at a time, last first, and whole at each step: this may be interrupted as well. */
	while ((n = atomic_load(&journal->given)) > 0) {
		TnNode *node = &nest->arena.nodes[journal->given_nodes[n - 1]];

		journal->given_before = node->lookups ? node->lookups - 1 : 0;
		atomic_store(&journal->given, n - 1);
		tn_kill_point();
		*(volatile uint64_t *)&node->lookups = journal->given_before;
		tn_kill_point();
		atomic_store(&journal->given_begun, n - 1);
	}
}

/* --- the account ---------------------------------------------------------------------------- */

static TnShare *share_of(TnNest *nest, const TnJournal *journal)
{
	return &nest->arena.header->shares[journal ? journal->share : TN_SHARE_OTHERS];
}

static void apply(TnNest *nest, TnJournal *journal, const TnRedo *redo)
{
	*(volatile TnShare *)share_of(nest, journal) = redo->share;
	tn_kill_point();
	if (redo->node) {
		TnNode *node = &nest->arena.nodes[redo->node];

		*(volatile uint64_t *)&node->pages = redo->pages;
		*(volatile uint8_t *)&node->charge = redo->charge;
	}
	tn_kill_point();
	atomic_store(&journal->step, redo->step);
}

void tn_journal_redo(TnNest *nest, TnJournal *journal)
{
	if (!atomic_load(&journal->redo.valid))
		return;
	apply(nest, journal, &journal->redo);
	atomic_store(&journal->redo.valid, 0);
}

static void change_share(TnNest *nest, const TnChange *change)
{
	TnShare *share = share_of(nest, current);
	TnRedo *redo;

	if (!current) {
		atomic_fetch_add((_Atomic int64_t *)&share->bytes, change->bytes);
		atomic_fetch_add((_Atomic int64_t *)&share->inodes, change->inodes);
		atomic_fetch_add((_Atomic int64_t *)&share->xattrs, change->xattrs);
		if (change->node) {
			nest->arena.nodes[change->node].pages = change->pages;
			nest->arena.nodes[change->node].charge = change->charge;
		}
		return;
	}
	redo = &current->redo;
	redo->node = change->node;
	redo->share = (TnShare){
		.bytes = share->bytes + change->bytes,
		.inodes = share->inodes + change->inodes,
		.xattrs = share->xattrs + change->xattrs,
	};
	redo->pages = change->pages;
	redo->charge = change->charge;
	redo->step = change->settles ? TN_STEP_SETTLED : atomic_load(&current->step);
	tn_kill_point();
	atomic_store(&redo->valid, 1);
	tn_kill_point();
	apply(nest, current, redo);
	tn_kill_point();
	atomic_store(&redo->valid, 0);
}

static uint64_t part(int64_t change, bool positive)
{
	if (positive)
		return change > 0 ? (uint64_t)change : 0;
	return change < 0 ? (uint64_t)-change : 0;
}

void tn_journal_settle(TnNest *nest, TnReservation *reservation, const TnChange *change)
{
	TnChange counted = *change;
	uint64_t more, less, more_inodes, less_inodes;

	/* The store limits and counts bytes itself: only inodes are in the account. */
	if (nest->store.kernel_counts)
		counted.bytes = counted.xattrs = 0;
	more = part(counted.bytes, true);
	less = part(counted.bytes, false);
	more_inodes = part(counted.inodes, true);
	less_inodes = part(counted.inodes, false);
	change_share(nest, &counted);
	atomic_fetch_add(&nest->arena.header->xattr_bytes, (uint64_t)counted.xattrs);
	if (reservation && reservation->account)
		tn_quota_settle(reservation, more, more_inodes);
	else if (more || more_inodes)
		tn_quota_charge(nest->account, more, more_inodes);
	if (less || less_inodes)
		tn_nest_refund(nest, less, less_inodes);
}
