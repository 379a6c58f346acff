/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stub keeper: who needs which stub, on disk and in the ledger together.
 *
 * Every call locks the ledger, does its work, makes it durable and unlocks; processes
 * that call at the same time wait for each other. A stub exists from the first hold of its path to
 * the last release, and is removed only while it still is exactly what was made.
 *
 * Not thread-safe per object. What happened to each path is told through the note callback.
 */
#pragma once

#include "ledger-file.h"
#include "stub-holder.h"
#include "stub-paths.h"

typedef enum TnStubOutcome {
	TN_STUB_CREATED, /* made now */
	TN_STUB_SHARED,  /* made before; one more holder */
	TN_STUB_EXISTS,  /* something that is not ours lies there: not touched */
	TN_STUB_SKIPPED, /* cannot be made; why says it */
	TN_STUB_REMOVED,
	TN_STUB_GONE,     /* somebody has removed it; forgotten */
	TN_STUB_KEPT,     /* filled, replaced or changed: stays, forgotten; why says it */
	TN_STUB_RELEASED, /* still held by others */
	TN_STUB_ADOPTED,  /* of a dead holder; now the caller's */
	TN_STUB_LEFT,     /* of a dead holder; left while others live */
	TN_STUB_MISSING,
	TN_STUB_LASTING,
	TN_STUB_WARNING, /* about path (the ledger, a git directory); why says it */
} TnStubOutcome;

typedef void (*TnStubNote)(void *data, TnStubOutcome outcome, const char *path, const char *why);

typedef struct TnStubsOptions {
	const char *ledger_path;  /* NULL: keep the ledger in memory only */
	const char *profiles_dir; /* whose profiles name the known stubs */
	const char
		*runtime_dir; /* stubs of other names are recorded below it; NULL: none are made */
	const char *proc;     /* NULL: /proc */
	TnStubNote note;      /* may be NULL */
	void *note_data;
} TnStubsOptions;

typedef struct TnStubs {
	TnStubsOptions options;
	TnSelf self;
	TnStubNames names;
	TnLedgerFile file;
	bool locked;
	TnLedgerFile witness; /* ledger of stubs with unknown names, in the runtime directory */
	bool has_witness;
} TnStubs;

typedef struct TnStubWant {
	const char *path; /* absolute */
	TnStubKind kind;
	bool filled;
} TnStubWant;

void tn_stubs_init(TnStubs *stubs, const TnStubsOptions *options);
void tn_stubs_clear(TnStubs *stubs);

/*
 * Makes what is missing and adds the holder to what is held. First reclaims, and adopts for run_id.
 * With by_mounts the entries last as long as a process of the user has them mounted.
 * What cannot be made is noted and no error. 0 or -errno: then nothing was made.
 */
int tn_stubs_hold(TnStubs *stubs, const char *run_id, const TnStubHolder *holder, bool by_mounts,
		  const TnStubWant *wants, size_t n_wants);

/*
 * Drops the entries of run_id (NULL: any) and of holder (NULL: any; not both), and what the
 * holder had adopted. *ret_n counts the dropped ones; may be NULL.
 */
int tn_stubs_release(TnStubs *stubs, const char *run_id, const TnStubHolder *holder, size_t *ret_n);

/* Removes what dead holders left, or adopts it (with run_id and holder) or leaves it. */
int tn_stubs_reclaim(TnStubs *stubs, const char *run_id, const TnStubHolder *holder);

/* Notes MISSING or LASTING for each path whose parent is a directory. */
int tn_stubs_missing(TnStubs *stubs, const char *const *paths, size_t n_paths);

/* Locks and reads, for callers that only look at stubs->file.ledger; undo with unlock. */
int tn_stubs_lock(TnStubs *stubs);
void tn_stubs_unlock(TnStubs *stubs);
