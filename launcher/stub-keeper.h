/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the keeper share. Not for others.
 */
#pragma once

#include "stub-git.h"
#include "stub-hold.h"

/* Ends the names of our own links to leases, in RUNTIME/stubs. */
#define TN_STUBS_LEASE_SUFFIX ".stubs"

void tn_stubs_note(TnStubs *stubs, TnStubOutcome outcome, const char *path, const char *why);

/* As tn_ledger_file_save(); nothing to do without a file. */
int tn_stubs_save(TnStubs *stubs);

/*
 * The witness: paths of stubs whose names no profile knows. A ledger may be written by sandboxed
 * shells; the runtime directory is covered in every sandbox, so what is recorded here is
 * ours. -ENOENT without a runtime directory.
 */
int tn_stubs_open_witness(TnStubs *stubs);
bool tn_stubs_may_remove(TnStubs *stubs, const char *path);
void tn_stubs_forget_witness(TnStubs *stubs, const char *path);

void tn_stubs_update_git(TnStubs *stubs, const char *const *paths, size_t n_paths);

/* Under the lock. Marks entries dropped or adopted, and removes from disk; does not save. */
int tn_stubs_reclaim_locked(TnStubs *stubs, const char *run_id, const TnStubHolder *holder,
			    bool *ret_changed);
