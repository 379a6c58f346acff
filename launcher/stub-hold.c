/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-hold.h"

#include "macros.h"
#include "stub-files.h"
#include "stub-index.h"
#include "stub-keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Files that are made without a name first need a descriptor each meanwhile. */
#define PREPARED_MAX 256

typedef struct Plan {
	TnLedgerEntry entry; /* path points to the want's */
	const char *name;
	int prepared;
} Plan;

typedef struct Hold {
	TnStubs *stubs;
	TnStubIndex index;
	TnLedgerEntry template; /* what all new entries have in common */
	Plan *plans;
	size_t n_plans;
	bool changed;
	TnStubDir dir;
} Hold;

static const char *why_skipped(int error)
{
	switch (error) {
	case -ENOENT:
		return "its directory is not there";
	case -ENOTDIR:
	case -ELOOP:
		return "what it lies in is no directory, or is behind a symbolic link";
	case -EROFS:
		return "read-only file system";
	case -EACCES:
	case -EPERM:
		return "not permitted";
	case -EINVAL:
		return "its name cannot be recorded";
	case -ENOSPC:
		return "no space left, on the disk or in the ledger";
	default:
		return strerror(-error);
	}
}

static int compare_wants(const void *a, const void *b)
{
	return strcmp(((const TnStubWant *)a)->path, ((const TnStubWant *)b)->path);
}

/* The entry of path's stub when it is one that we made and nobody has changed; else NULL. */
static const TnLedgerEntry *held_entry(Hold *hold, int dir_fd, const char *path, const char *name,
				       bool *ret_is_mine)
{
	const TnStubIndex *index = &hold->index;
	const TnLedgerEntry *found = NULL;
	size_t place = tn_stub_index_find(index, path);

	*ret_is_mine = false;
	for (; place < index->n_positions; place++) {
		const TnLedgerEntry *entry = tn_stub_index_at(index, place);

		if (strcmp(entry->path, path) != 0)
			break;
		if (entry->dropped)
			continue;
		if (!found && tn_stub_check(dir_fd, name, entry) == 0)
			found = entry;
		if (found && strcmp(entry->run_id, hold->template.run_id) == 0 &&
		    tn_holder_is_same(&entry->holder, &hold->template.holder))
			*ret_is_mine = true;
	}
	return found;
}

static int share(Hold *hold, const TnLedgerEntry *held)
{
	TnLedgerEntry entry = *held;

	entry.holder = hold->template.holder;
	entry.run_id = hold->template.run_id;
	entry.by_mounts = hold->template.by_mounts;
	entry.adopted = false;
	entry.changed = false;
	hold->changed = true;
	return tn_ledger_add(hold->stubs->file.ledger, &entry, NULL);
}

/* Something lies at path. */
static int look_at_existing(Hold *hold, int dir_fd, const TnStubWant *want, const char *name)
{
	bool is_mine;
	const TnLedgerEntry *held = held_entry(hold, dir_fd, want->path, name, &is_mine);
	int result = 0;

	if (held && !is_mine)
		result = share(hold, held);
	if (result == 0)
		tn_stubs_note(hold->stubs, held ? TN_STUB_SHARED : TN_STUB_EXISTS, want->path,
			      NULL);
	return result;
}

static bool is_planned_dir(const Hold *hold, const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; slash && i < hold->n_plans; i++) {
		const TnLedgerEntry *entry = &hold->plans[i].entry;

		if (entry->kind == TN_STUB_DIR && strlen(entry->path) == (size_t)(slash - path) &&
		    strncmp(entry->path, path, (size_t)(slash - path)) == 0)
			return true;
	}
	return false;
}

static int add_plan(Hold *hold, const TnStubWant *want, int dir_fd, const char *name)
{
	Plan *plan = &hold->plans[hold->n_plans];

	*plan = (Plan){.entry = hold->template, .name = name, .prepared = -ENOTSUP};
	plan->entry.path = want->path;
	plan->entry.kind = want->kind;
	plan->entry.filled = want->filled;
	plan->entry.planned = true;
	plan->entry.created_ms = tn_stub_now_ms();
	if (!tn_ledger_entry_is_sound(&plan->entry))
		return -EINVAL;
	if (dir_fd >= 0 && hold->n_plans < PREPARED_MAX)
		plan->prepared = tn_stub_prepare(dir_fd, &plan->entry);
	hold->n_plans++;
	return 0;
}

static int plan_one(Hold *hold, const TnStubWant *want)
{
	struct stat status;
	const char *name;
	int dir_fd, result;

	dir_fd = tn_stub_dir_of(&hold->dir, want->path, &name);
	if (dir_fd < 0 && !(dir_fd == -ENOENT && is_planned_dir(hold, want->path))) {
		tn_stubs_note(hold->stubs, TN_STUB_SKIPPED, want->path, why_skipped(dir_fd));
		return 0;
	}
	if (dir_fd >= 0 && fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return look_at_existing(hold, dir_fd, want, name);
	result = dir_fd >= 0 && errno != ENOENT ? -errno : 0;
	/* a stub that could not be removed later is not made at all */
	if (result == 0 && !tn_stub_names_has(&hold->stubs->names, want->path) &&
	    tn_stubs_open_witness(hold->stubs) < 0) {
		tn_stubs_note(hold->stubs, TN_STUB_SKIPPED, want->path,
			      "its name is in no profile, and there is no runtime directory to "
			      "record it in");
		return 0;
	}
	if (result == 0)
		result = add_plan(hold, want, dir_fd, name);
	if (result < 0)
		tn_stubs_note(hold->stubs, TN_STUB_SKIPPED, want->path, why_skipped(result));
	return 0;
}

static int record_witnesses(Hold *hold)
{
	TnStubs *stubs = hold->stubs;
	bool changed = false;
	int result = 0;

	for (size_t i = 0; i < hold->n_plans && result == 0; i++) {
		if (tn_stub_names_has(&stubs->names, hold->plans[i].entry.path))
			continue;
		changed = true;
		result = tn_ledger_add(stubs->witness.ledger, &hold->plans[i].entry, NULL);
	}
	return changed && result == 0 ? tn_ledger_file_save(&stubs->witness) : result;
}

/* The intents name this process as the holder: if they are ever read, it was killed. */
static int record_intents(Hold *hold)
{
	TN_AUTOLEDGER intents = tn_ledger_new();
	TnStubHolder self = {.pid = getpid()};
	int result = 0;

	if (!intents)
		return -ENOMEM;
	if (!hold->stubs->locked)
		return 0;
	tn_holder_init(&hold->stubs->self, getpid(), &self);
	for (size_t i = 0; i < hold->n_plans && result == 0; i++) {
		TnLedgerEntry entry = hold->plans[i].entry;

		entry.holder = self;
		entry.by_mounts = false;
		result = tn_ledger_add(intents, &entry, NULL);
	}
	return result == 0 ? tn_ledger_file_intend(&hold->stubs->file, intents) : result;
}

static void make_one(Hold *hold, Plan *plan)
{
	TnStubs *stubs = hold->stubs;
	int dir_fd = tn_stub_dir_of(&hold->dir, plan->entry.path, &plan->name);
	int result = dir_fd;

	/* its directory was not there before: the file can only be prepared now */
	if (dir_fd >= 0 && plan->prepared < 0)
		plan->prepared = tn_stub_prepare(dir_fd, &plan->entry);
	if (dir_fd >= 0)
		result = tn_stub_publish(dir_fd, plan->name, tn_steal_fd(&plan->prepared),
					 &plan->entry);
	if (result == 0) {
		result = tn_ledger_add(stubs->file.ledger, &plan->entry, NULL);
		if (result < 0) /* nothing may stay that no ledger knows */
			tn_stub_remove(dir_fd, plan->name, &plan->entry);
	}
	if (result == 0) {
		hold->changed = true;
		tn_stubs_note(stubs, TN_STUB_CREATED, plan->entry.path, NULL);
		return;
	}
	tn_stubs_forget_witness(stubs, plan->entry.path);
	tn_stubs_note(stubs, result == -EEXIST ? TN_STUB_EXISTS : TN_STUB_SKIPPED, plan->entry.path,
		      result == -EEXIST ? NULL : why_skipped(result));
	plan->entry.path = NULL;
}

static int make_all(Hold *hold)
{
	TN_AUTOFREE const char **made = calloc(hold->n_plans + 1, sizeof(*made));
	size_t n_made = 0;
	int result = made ? 0 : -ENOMEM;

	if (result == 0)
		result = record_witnesses(hold);
	if (result == 0)
		result = record_intents(hold);
	if (result < 0)
		return result;
	for (size_t i = 0; i < hold->n_plans; i++) {
		make_one(hold, &hold->plans[i]);
		if (hold->plans[i].entry.path)
			made[n_made++] = hold->plans[i].entry.path;
	}
	if (n_made < hold->n_plans && hold->stubs->has_witness)
		tn_ledger_file_save(&hold->stubs->witness);
	tn_stubs_update_git(hold->stubs, made, n_made);
	return 0;
}

/* The ledger could not be written: nothing may stay that it does not know. */
static void take_back(Hold *hold)
{
	for (size_t i = hold->n_plans; i-- > 0;) {
		const TnLedgerEntry *entry = &hold->plans[i].entry;
		const char *name;
		int dir_fd = entry->path ? tn_stub_dir_of(&hold->dir, entry->path, &name) : -1;

		if (dir_fd >= 0)
			tn_stub_remove(dir_fd, name, entry);
	}
}

static int hold_locked(Hold *hold, const TnStubWant *wants, size_t n_wants)
{
	TN_AUTOFREE TnStubWant *sorted = calloc(n_wants + 1, sizeof(*sorted));
	int result = tn_stubs_reclaim_locked(hold->stubs, hold->template.run_id,
					     &hold->template.holder, &hold->changed);

	hold->plans = calloc(n_wants + 1, sizeof(*hold->plans));
	if (!sorted || !hold->plans)
		return -ENOMEM;
	if (result == 0)
		result = tn_stub_index_init(&hold->index, hold->stubs->file.ledger);
	if (result < 0)
		return result;
	memcpy(sorted, wants, n_wants * sizeof(*wants));
	qsort(sorted, n_wants, sizeof(*sorted), compare_wants);
	for (size_t i = 0; i < n_wants && result == 0; i++) {
		if (i == 0 || strcmp(sorted[i].path, sorted[i - 1].path) != 0)
			result = plan_one(hold, &sorted[i]);
	}
	if (result == 0 && hold->n_plans > 0)
		result = make_all(hold);
	if (result == 0 && (hold->changed || hold->stubs->file.recovered))
		result = tn_stubs_save(hold->stubs);
	if (result < 0)
		take_back(hold);
	return result;
}

int tn_stubs_hold(TnStubs *stubs, const char *run_id, const TnStubHolder *holder, bool by_mounts,
		  const TnStubWant *wants, size_t n_wants)
{
	Hold hold = {.stubs = stubs, .dir = TN_STUB_DIR_INIT};
	int result = tn_stubs_lock(stubs);

	if (result < 0)
		return result;
	hold.template =
		(TnLedgerEntry){.holder = *holder, .run_id = run_id, .by_mounts = by_mounts};
	result = hold_locked(&hold, wants, n_wants);
	for (size_t i = 0; i < hold.n_plans; i++)
		tn_close(&hold.plans[i].prepared);
	tn_stub_dir_clear(&hold.dir);
	tn_stub_index_clear(&hold.index);
	free(hold.plans);
	tn_stubs_unlock(stubs);
	return result;
}
