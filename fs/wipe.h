/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The end of evicted nests: whatever lies in the trash directory is deleted, in bounded
 * steps, beneath its descriptor and without following any link. A subdirectory that is not
 * empty is first renamed to the top of the trash, so depth costs nothing and a kill at any
 * point leaves something that the next run finishes.
 *
 * Names at the top tell which nest something belonged to: "<id>", "deep-<id>-N", and
 * "stuck-<id>-N" for what cannot be removed (an immutable file, a directory with one in it).
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TN_WIPE_REPORTED_MAX 64U

typedef enum TnWipeEvent {
	TN_WIPE_REMOVED, /* one name below the top; bytes: what went with it */
	TN_WIPE_MOVED,   /* one more directory at the top */
	TN_WIPE_GONE,    /* one entry less at the top */
	TN_WIPE_STUCK,   /* likewise: it was set aside */
} TnWipeEvent;

typedef struct TnWipe {
	int trash;        /* borrowed */
	uint64_t serial;  /* names for what is moved to the top */
	uint64_t removed; /* names so far */
	uint64_t moved;   /* directories that went to the top */
	uint64_t stuck;   /* entries that could not be removed: logged once each */

	/* Told of each step, with the nest's id (0: unknown). NULL: nobody is. */
	void (*tell)(TnWipeEvent event, uint64_t id, uint64_t bytes, void *data);
	void *data;

	uint64_t id; /* of what is being wiped */
	/* Inodes at the top that can neither go nor be renamed. */
	uint64_t reported[TN_WIPE_REPORTED_MAX];
	unsigned n_reported;
} TnWipe;

/*
 * Removes at most `steps` entries. 1: some went, there may be more; 0: the trash is empty
 * but for what is stuck; or -errno when the trash itself cannot be read.
 */
int tn_wipe_some(TnWipe *wipe, unsigned steps);

/* What was stuck is tried again from now on. How many, or -errno. */
int tn_wipe_retry(TnWipe *wipe);

/* The nest that an entry at the top of the trash belonged to; 0: none known. Pure. */
uint64_t tn_wipe_id(const char *name);
bool tn_wipe_is_stuck(const char *name);
