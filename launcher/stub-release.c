/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "stub-files.h"
#include "stub-hold.h"
#include "stub-index.h"
#include "stub-keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Something between "only looked" and "said it": which holders are dead, and who lives. */
typedef struct Verdict {
	bool *dead; /* one per entry */
	size_t n_dead, n_alive;
	TnMountPoints mounts;
	bool scanned;
} Verdict;

static TnHolderState state_by_mounts(TnStubs *stubs, Verdict *verdict, const TnLedgerEntry *entry)
{
	TnHolderState state = tn_holder_state(&stubs->self, &entry->holder);

	/* the launcher becomes bwrap, which mounts a moment later */
	if (state != TN_HOLDER_DEAD)
		return state;
	if (entry->holder.boot_id[0] && stubs->self.boot_id[0] &&
	    strcmp(entry->holder.boot_id, stubs->self.boot_id) != 0)
		return TN_HOLDER_DEAD;
	if (!verdict->scanned && tn_mount_points_scan(&stubs->self, &verdict->mounts) < 0)
		return TN_HOLDER_UNKNOWN;
	verdict->scanned = true;
	return tn_mount_points_state(&verdict->mounts, entry->path);
}

static int judge(TnStubs *stubs, Verdict *verdict)
{
	const TnLedger *ledger = stubs->file.ledger;

	*verdict = (Verdict){.dead = calloc(ledger->n_entries + 1, sizeof(bool))};
	if (!verdict->dead)
		return -ENOMEM;
	for (size_t i = 0; i < ledger->n_entries; i++) {
		const TnLedgerEntry *entry = &ledger->entries[i];
		TnHolderState state;

		if (entry->dropped)
			continue;
		state = entry->by_mounts ? state_by_mounts(stubs, verdict, entry)
					 : tn_holder_state(&stubs->self, &entry->holder);
		verdict->dead[i] = state == TN_HOLDER_DEAD;
		verdict->n_dead += state == TN_HOLDER_DEAD;
		verdict->n_alive += state != TN_HOLDER_DEAD;
	}
	return 0;
}

static void clear_verdict(Verdict *verdict)
{
	tn_mount_points_clear(&verdict->mounts);
	free(verdict->dead);
}

/* Our own link to a sandbox's lease goes with the last entry that names it. */
static void remove_lease(const TnLedger *ledger, const char *lease)
{
	size_t length = strlen(lease), suffix = strlen(TN_STUBS_LEASE_SUFFIX);
	struct stat status;

	if (length <= suffix || strcmp(lease + length - suffix, TN_STUBS_LEASE_SUFFIX) != 0)
		return;
	for (size_t i = 0; i < ledger->n_entries; i++) {
		const TnLedgerEntry *entry = &ledger->entries[i];

		if (!entry->dropped && entry->holder.lease &&
		    strcmp(entry->holder.lease, lease) == 0)
			return;
	}
	if (lstat(lease, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == geteuid())
		unlink(lease);
}

static const char *why_kept(int error)
{
	switch (error) {
	case -ESTALE:
	case -ENOTEMPTY:
		return "it was filled, replaced or changed";
	case -ELOOP:
	case -ENOTDIR:
		return "what it lies in is now something else";
	default:
		return strerror(-error);
	}
}

/* Tries the entries [place, end), which all name one path and are all dropped. */
static void remove_stub(TnStubs *stubs, TnStubDir *dir, const TnStubIndex *index, size_t place,
			size_t end)
{
	const char *path = tn_stub_index_at(index, place)->path, *name;
	int dir_fd = tn_stub_dir_of(dir, path, &name);
	int result = dir_fd < 0 ? dir_fd : -ESTALE;

	if (!tn_stubs_may_remove(stubs, path)) {
		tn_stubs_note(stubs, TN_STUB_KEPT, path,
			      "its name is in no profile, and no record says that it is ours");
		return;
	}
	for (; dir_fd >= 0 && place < end && result == -ESTALE; place++)
		result = tn_stub_remove(dir_fd, name, tn_stub_index_at(index, place));
	tn_stubs_forget_witness(stubs, path);
	if (result == 0)
		tn_stubs_note(stubs, TN_STUB_REMOVED, path, NULL);
	else if (result == -ENOENT)
		tn_stubs_note(stubs, TN_STUB_GONE, path, NULL);
	else
		tn_stubs_note(stubs, TN_STUB_KEPT, path, why_kept(result));
}

/* An entry for something that is still held inside the directory at path; NULL: none. */
static const TnLedgerEntry *held_inside(const TnStubIndex *index, const char *path)
{
	char prefix[PATH_MAX + 1];
	size_t length = (size_t)snprintf(prefix, sizeof(prefix), "%s/", path);

	for (size_t place = tn_stub_index_find(index, prefix); place < index->n_positions;
	     place++) {
		const TnLedgerEntry *entry = tn_stub_index_at(index, place);

		if (strncmp(entry->path, prefix, length) != 0)
			break;
		if (!entry->dropped)
			return entry;
	}
	return NULL;
}

/*
 * A directory stub that others have stubs in cannot go before those: it passes to one of their
 * holders. False when there is none.
 */
static bool pass_inwards(const TnStubIndex *index, TnLedgerEntry *entry)
{
	const TnLedgerEntry *inner =
		entry->kind == TN_STUB_DIR ? held_inside(index, entry->path) : NULL;

	if (!inner)
		return false;
	entry->holder = inner->holder;
	entry->run_id = inner->run_id;
	entry->by_mounts = inner->by_mounts;
	entry->adopted = inner->adopted;
	entry->dropped = false;
	entry->changed = true;
	return true;
}

/*
 * After entries were dropped: removes the stubs that have none left, from the end of the order of
 * paths, so that what lies in a directory goes before it.
 */
static int remove_unheld(TnStubs *stubs)
{
	TnStubIndex index;
	TnStubDir dir = TN_STUB_DIR_INIT;
	TN_AUTOFREE const char **touched = NULL;
	size_t n_touched = 0;
	int result = tn_stub_index_init(&index, stubs->file.ledger);

	if (result < 0)
		return result;
	touched = calloc(index.n_positions + 1, sizeof(*touched));
	for (size_t end = index.n_positions, place; touched && end > 0; end = place) {
		bool held = false, dropped = false;

		for (place = end; place > 0; place--) {
			const TnLedgerEntry *entry = tn_stub_index_at(&index, place - 1);

			if (strcmp(entry->path, tn_stub_index_at(&index, end - 1)->path) != 0)
				break;
			held |= !entry->dropped;
			dropped |= entry->dropped;
		}
		if (!dropped)
			continue;
		if (held || pass_inwards(&index, tn_stub_index_at(&index, place)))
			tn_stubs_note(stubs, TN_STUB_RELEASED,
				      tn_stub_index_at(&index, place)->path, NULL);
		else
			remove_stub(stubs, &dir, &index, place, end);
		touched[n_touched++] = tn_stub_index_at(&index, place)->path;
	}
	tn_stub_dir_clear(&dir);
	if (touched)
		tn_stubs_update_git(stubs, touched, n_touched);
	for (size_t i = 0; i < index.n_positions; i++) {
		const TnLedgerEntry *entry = tn_stub_index_at(&index, i);

		if (entry->dropped && entry->holder.lease)
			remove_lease(stubs->file.ledger, entry->holder.lease);
	}
	tn_stub_index_clear(&index);
	tn_ledger_purge(stubs->file.ledger);
	if (stubs->has_witness)
		result = tn_ledger_file_save(&stubs->witness);
	return touched ? result : -ENOMEM;
}

/* One that is no longer what was made is not worth adopting. */
static bool is_still_there(const TnLedgerEntry *entry)
{
	const char *name;
	TN_AUTOFD dir_fd = tn_stub_open_parent(entry->path, &name);

	return dir_fd >= 0 && tn_stub_check(dir_fd, name, entry) == 0;
}

static void pass_on(TnStubs *stubs, TnLedgerEntry *entry, const char *run_id,
		    const TnStubHolder *holder)
{
	if (!is_still_there(entry)) {
		entry->dropped = true;
		return;
	}
	if (!holder) {
		tn_stubs_note(stubs, TN_STUB_LEFT, entry->path,
			      "its holder is dead, but others live that may use it");
		return;
	}
	entry->run_id = run_id;
	entry->holder = *holder;
	entry->adopted = true;
	entry->by_mounts = false;
	entry->changed = true;
	tn_stubs_note(stubs, TN_STUB_ADOPTED, entry->path, NULL);
}

int tn_stubs_reclaim_locked(TnStubs *stubs, const char *run_id, const TnStubHolder *holder,
			    bool *ret_changed)
{
	TnLedger *ledger = stubs->file.ledger;
	Verdict verdict;
	bool dropped = false;
	int result = judge(stubs, &verdict);

	if (result < 0)
		return result;
	for (size_t i = 0; i < ledger->n_entries && verdict.n_dead > 0; i++) {
		TnLedgerEntry *entry = &ledger->entries[i];

		if (!verdict.dead[i])
			continue;
		/*
		 * A sandbox whose lease ended has come to its end, and each other one has entries
		 * of its own: that is a release. A process that died left sandboxes of others
		 * behind which may have found its stubs and bound them.
		 */
		if (verdict.n_alive > 0 && !entry->holder.lease && !entry->by_mounts)
			pass_on(stubs, entry, run_id, holder);
		else
			entry->dropped = true;
		dropped |= entry->dropped;
		*ret_changed |= entry->dropped || entry->changed;
	}
	clear_verdict(&verdict);
	return dropped ? remove_unheld(stubs) : 0;
}

static int finish(TnStubs *stubs, int result, bool changed)
{
	if (result == 0 && (changed || stubs->file.recovered))
		result = tn_stubs_save(stubs);
	tn_stubs_unlock(stubs);
	return result;
}

int tn_stubs_reclaim(TnStubs *stubs, const char *run_id, const TnStubHolder *holder)
{
	bool changed = false;
	int result = tn_stubs_lock(stubs);

	if (result < 0)
		return result;
	result = tn_stubs_reclaim_locked(stubs, run_id, holder, &changed);
	return finish(stubs, result, changed);
}

/* What the holders of dropped entries had adopted goes with their first release. */
static size_t drop_adopted(TnLedger *ledger)
{
	size_t n = 0;

	for (size_t i = 0; i < ledger->n_entries; i++) {
		TnLedgerEntry *adopted = &ledger->entries[i];

		for (size_t j = 0; adopted->adopted && !adopted->dropped && j < ledger->n_entries;
		     j++) {
			const TnLedgerEntry *entry = &ledger->entries[j];

			if (entry->dropped && tn_holder_is_same(&entry->holder, &adopted->holder))
				adopted->dropped = true;
		}
		n += adopted->adopted && adopted->dropped;
	}
	return n;
}

int tn_stubs_release(TnStubs *stubs, const char *run_id, const TnStubHolder *holder, size_t *ret_n)
{
	TnLedger *ledger;
	bool changed = false;
	size_t n = 0;
	int result = tn_stubs_lock(stubs);

	if (result < 0)
		return result;
	ledger = stubs->file.ledger;
	for (size_t i = 0; i < ledger->n_entries; i++) {
		TnLedgerEntry *entry = &ledger->entries[i];

		if ((run_id && strcmp(entry->run_id, run_id) != 0) ||
		    (holder && !tn_holder_is_same(&entry->holder, holder)))
			continue;
		entry->dropped = true;
		n++;
	}
	if (n > 0) {
		drop_adopted(ledger);
		result = remove_unheld(stubs);
	}
	/* the last one to leave also clears up after the dead */
	changed = n > 0;
	if (result == 0)
		result = tn_stubs_reclaim_locked(stubs, NULL, NULL, &changed);
	if (ret_n)
		*ret_n = n;
	return finish(stubs, result, changed);
}

int tn_stubs_missing(TnStubs *stubs, const char *const *paths, size_t n_paths)
{
	TnStubIndex index = {0};
	int result = tn_stubs_lock(stubs);

	if (result < 0)
		return result;
	result = tn_stub_index_init(&index, stubs->file.ledger);
	for (size_t i = 0; result == 0 && i < n_paths; i++) {
		const char *name;
		TN_AUTOFD dir_fd = tn_stub_open_parent(paths[i], &name);
		TnStubOutcome outcome = TN_STUB_MISSING;
		size_t place = tn_stub_index_find(&index, paths[i]);

		if (dir_fd < 0)
			continue;
		for (; place < index.n_positions && outcome == TN_STUB_MISSING; place++) {
			const TnLedgerEntry *entry = tn_stub_index_at(&index, place);

			if (strcmp(entry->path, paths[i]) != 0)
				break;
			if (tn_stub_check(dir_fd, name, entry) == 0)
				outcome = TN_STUB_SHARED;
		}
		if (outcome == TN_STUB_MISSING && tn_stub_is_lasting(dir_fd, name))
			outcome = TN_STUB_LASTING;
		tn_stubs_note(stubs, outcome, paths[i], NULL);
	}
	tn_stub_index_clear(&index);
	tn_stubs_unlock(stubs);
	return result;
}
