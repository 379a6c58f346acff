/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The end of evicted nests: whatever lies in the trash directory is deleted, in bounded
 * steps, beneath its descriptor and without following any link. A subdirectory that is not
 * empty is first renamed to the top of the trash, so depth costs nothing and a kill at any
 * point leaves something that the next run finishes.
 *
 * One thread at a time.
 */
#pragma once

#include <stdint.h>

typedef struct TnWipe {
	int trash;        /* borrowed */
	uint64_t serial;  /* names for what is moved to the top */
	uint64_t removed; /* names so far */
	uint64_t moved;   /* directories that went to the top */
	uint64_t stuck;   /* entries that could not be removed (immutable, say): logged once each */
} TnWipe;

/*
 * Removes at most `steps` entries. 1: some went, there may be more; 0: the trash is empty
 * but for what is stuck; or -errno when the trash itself cannot be read.
 */
int tn_wipe_some(TnWipe *wipe, unsigned steps);
