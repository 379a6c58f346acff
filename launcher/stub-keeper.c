/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-keeper.h"

#include "macros.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tn_stubs_init(TnStubs *stubs, const TnStubsOptions *options)
{
	*stubs = (TnStubs){
		.options = *options, .file = TN_LEDGER_FILE_INIT, .witness = TN_LEDGER_FILE_INIT};
	tn_self_init(&stubs->self, options->proc ? options->proc : "/proc");
	tn_stub_names_load(&stubs->names, options->profiles_dir);
}

void tn_stubs_clear(TnStubs *stubs)
{
	tn_ledger_file_close(&stubs->witness);
	tn_ledger_file_close(&stubs->file);
	tn_stub_names_clear(&stubs->names);
}

void tn_stubs_note(TnStubs *stubs, TnStubOutcome outcome, const char *path, const char *why)
{
	if (stubs->options.note)
		stubs->options.note(stubs->options.note_data, outcome, path, why);
}

int tn_stubs_lock(TnStubs *stubs)
{
	int result;

	stubs->self.n_memo = 0;
	if (!stubs->options.ledger_path) {
		if (!stubs->file.ledger)
			stubs->file.ledger = tn_ledger_new();
		return stubs->file.ledger ? 0 : -ENOMEM;
	}
	result = tn_ledger_file_open(&stubs->file, stubs->options.ledger_path);
	if (result < 0)
		return result;
	if (stubs->file.was_corrupt)
		tn_stubs_note(stubs, TN_STUB_WARNING, stubs->options.ledger_path,
			      "is no stub ledger: set aside as .corrupt");
	stubs->locked = true;
	return 0;
}

void tn_stubs_unlock(TnStubs *stubs)
{
	tn_ledger_file_close(&stubs->witness);
	stubs->has_witness = false;
	if (stubs->locked)
		tn_ledger_file_close(&stubs->file);
	stubs->locked = false;
}

int tn_stubs_save(TnStubs *stubs)
{
	return stubs->locked ? tn_ledger_file_save(&stubs->file) : 0;
}

/* As a daemon would make it: one that comes later must find it right. */
static void make_runtime_dir(const char *path)
{
	mode_t callers, mode = geteuid() == 0 ? 0755 : 0700;
	char part[PATH_MAX];

	callers = umask(0);
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		mkdir(part, mode);
	}
	mkdir(path, mode);
	umask(callers);
}

int tn_stubs_open_witness(TnStubs *stubs)
{
	char path[PATH_MAX];
	int result;

	if (stubs->has_witness)
		return 0;
	if (!stubs->options.runtime_dir || snprintf(path, sizeof(path), "%s/stubs/witness.json",
						    stubs->options.runtime_dir) >= PATH_MAX)
		return -ENOENT;
	make_runtime_dir(stubs->options.runtime_dir);
	result = tn_ledger_file_open(&stubs->witness, path);
	stubs->has_witness = result == 0;
	return result;
}

/* NULL when the witness does not know path, or cannot be read. */
static TnLedgerEntry *find_witness(TnStubs *stubs, const char *path)
{
	if (tn_stubs_open_witness(stubs) < 0)
		return NULL;
	for (size_t i = 0; i < stubs->witness.ledger->n_entries; i++) {
		TnLedgerEntry *entry = &stubs->witness.ledger->entries[i];

		if (!entry->dropped && strcmp(entry->path, path) == 0)
			return entry;
	}
	return NULL;
}

bool tn_stubs_may_remove(TnStubs *stubs, const char *path)
{
	return tn_stub_names_has(&stubs->names, path) || find_witness(stubs, path);
}

void tn_stubs_forget_witness(TnStubs *stubs, const char *path)
{
	TnLedgerEntry *entry;

	if (tn_stub_names_has(&stubs->names, path))
		return;
	entry = find_witness(stubs, path);
	if (entry)
		entry->dropped = true;
}

static void warn_of_git(void *data, const char *path, const char *why)
{
	tn_stubs_note(data, TN_STUB_WARNING, path, why);
}

void tn_stubs_update_git(TnStubs *stubs, const char *const *paths, size_t n_paths)
{
	tn_stub_git_update(stubs->file.ledger, paths, n_paths, warn_of_git, stubs);
}
