/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one request has done so far, in memory that outlives the worker, so that a successor
 * can finish the request as if nothing had happened: each change is found either not done,
 * and is done again, or done, and is not done twice.
 *
 * - References of the kernel (lookup counts) that the request has given out or taken back
 *   are listed; a successor takes given ones back before it repeats the request.
 * - Changes of the account go through a redo record: the new values, absolute, then a mark,
 *   then the values in their places. Each journal has a share of every account to itself
 *   (arena.h), so that repeating a record cannot clash with another's.
 * - An operation that cannot tell from the store whether it has been done notes before what
 *   it is about to do (tn_journal_begin()).
 *
 * A journal belongs to one serving thread, or to whoever does the nests' own work, one at a
 * time (tn_serve_begin_work()). Writes are ordered for a reader that comes after a SIGKILL
 * of the writer: the compiler must keep them in order, the processor does.
 */
#pragma once

#include "arena.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct TnNest TnNest;

#define TN_GIVEN_MOST 8192U /* references that one reply can carry: READDIRPLUS of 1 MiB */

enum { /* TnJournal.step */
       TN_STEP_NONE = 0,
       TN_STEP_BEGUN = 1,   /* the notes are whole; the store may have been changed */
       TN_STEP_SETTLED = 2, /* the store was changed, and so was the account */
};

/* An entry that loses its name, as it was before. */
typedef struct TnGone {
	uint64_t ino;
	uint64_t node_id;                        /* 0: the kernel does not know it */
	uint64_t bytes, xattrs;                  /* to refund when the inode goes at once */
	uint32_t parent;                         /* node index, or 0 */
	uint8_t exists, directory, last, in_use; /* bool, whatever a successor finds there */
} TnGone;

typedef union TnNotes {
	struct {
		TnGone gone;
		char name[NAME_MAX + 1];
	} removed;
	struct {
		TnGone replaced;
		uint64_t ino, node_id; /* of what moves */
	} renamed;
	struct {
		uint64_t size; /* of the file, before its range was collapsed or inserted */
	} allocated;
	struct {
		uint64_t before; /* bytes charged for the attribute until now */
	} attribute;
	struct {
		uint32_t node;
	} unnamed;
} TnNotes;

typedef struct TnRedo {
	_Atomic uint32_t valid;
	uint32_t node; /* its charge changes as well; 0: no node */
	TnShare share;
	uint64_t pages;
	uint32_t step;
	uint8_t charge;
} TnRedo;

typedef struct TnJournal {
	uint32_t share; /* which of the shares of an account is this journal's */
	_Atomic uint32_t step;
	_Atomic uint32_t again;  /* the request was begun by a worker that was killed */
	_Atomic uint32_t handle; /* open file that the request has taken (handles.h); 0: none */
	TnNotes notes;
	TnRedo redo;

	/* References: the count behind _begun is raised before the node is changed, the other
	 * after it. Where they differ, the node's count is to be given_before, taken_after. */
	_Atomic uint32_t given_begun, given;
	_Atomic uint32_t taken_begun, taken;
	uint64_t given_before, taken_after;
	uint32_t taken_node;
	uint32_t given_nodes[TN_GIVEN_MOST]; /* indices */
} TnJournal;

/* The calling thread's journal, or NULL: nothing is noted then (tests, start). */
TnJournal *tn_journal_current(void);
void tn_journal_enter(TnJournal *journal);

/* A new request: nothing has been done. */
void tn_journal_start(TnJournal *journal);

/* The notes are written; from here on the store may change. Without a journal it does nothing. */
void tn_journal_begin(const TnNotes *notes);
/* The store has not been changed after all. */
void tn_journal_abandon(void);
bool tn_journal_is_again(void);
/* What an interrupted predecessor noted before it changed the store; NULL: it did not come to that.
 */
const TnNotes *tn_journal_interrupted(void);
/* The step an interrupted predecessor came to; TN_STEP_NONE for a first attempt. */
uint32_t tn_journal_step(void);

/* One reference more, or `count` fewer, on node `index`. Caller holds the table lock. */
bool tn_journal_give(TnNode *node, uint32_t index);
void tn_journal_take(TnNode *node, uint32_t index, uint64_t count);

/* There was nothing to take them from: counts as taken. */
void tn_journal_take_none(void);
/* How many times the request has taken references back. */
uint32_t tn_journal_taken(void);

/* A change of the account; with a node, of that node's charge in the same step. */
typedef struct TnChange {
	int64_t bytes, inodes, xattrs;
	uint32_t node; /* 0: none; else its lock is held and pages and charge are its new ones */
	uint64_t pages;
	uint8_t charge;
	bool settles; /* the request's step is TN_STEP_SETTLED with it */
} TnChange;

/*
 * Carries the change out and gives the rest of the reservation (or NULL) back. What grows
 * without a reservation is charged all the same: the store has already spent it.
 */
void tn_journal_settle(TnNest *nest, TnReservation *reservation, const TnChange *change);

/* --- for a successor --- */

/*
 * First of all, whatever bytes it holds: what is no journal becomes an empty one, and what it
 * notes lies within its bounds. (Its share is the state's to say: tn_state_bound().)
 */
void tn_journal_mend(TnNest *nest, TnJournal *journal);

/* Repeats the account change that was under way. */
void tn_journal_redo(TnNest *nest, TnJournal *journal);
/* Half-made changes of references are undone (given) or done (taken); before any other. */
void tn_journal_mend_references(TnNest *nest, TnJournal *journal);
/* Takes all given references back. After every journal of the nest has been mended. */
void tn_journal_undo_references(TnNest *nest, TnJournal *journal);

/*
 * A point at which a worker may be killed, for the test that kills it at every one of them.
 * Compiled in by TN_KILL_POINTS only.
 */
#ifdef TN_KILL_POINTS
void tn_kill_point(void);
#else
static inline void tn_kill_point(void)
{
}
#endif
