/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thread that empties the trash, with less claim to processor and disk than whoever
 * works, and a record of each nest that is on its way out, for listings.
 *
 * Any thread; locked inside.
 */
#pragma once

#include "capacity.h"
#include "registry.h"

typedef struct TnWiper TnWiper;

typedef struct TnWiperState {
	uint64_t going; /* nests that are being wiped */
	uint64_t stuck; /* entries that cannot be removed */
	TnRoom left;    /* what the wipe will give back to the disk, as far as it is known */
} TnWiperState;

/* Takes up what an earlier daemon left in the trash (borrowed). No thread yet. 0 or -errno. */
int tn_wiper_new(TnWiper **ret, int trash);
/* The thread starts. 0 or -errno. */
int tn_wiper_start(TnWiper *wiper);
/* Ends the thread; what is left then is wiped on for some seconds, or by the next daemon. NULL:
 * nothing. */
void tn_wiper_free(TnWiper *wiper);

/* The nest's home has been moved to the trash. Wakes the thread. */
void tn_wiper_add(TnWiper *wiper, const TnNestInfo *info);
/* Something that nobody lists has been moved there. */
void tn_wiper_wake(TnWiper *wiper);
/* What was stuck is tried again. */
void tn_wiper_retry(TnWiper *wiper);

void tn_wiper_state(TnWiper *wiper, TnWiperState *ret);

/* Ids of the nests of `owner` ((uid_t)-1: all) that are being wiped; the caller frees. */
uint64_t *tn_wiper_list(TnWiper *wiper, uid_t owner, size_t *ret_n);
/* What is left of one. False: it has gone. */
bool tn_wiper_info(TnWiper *wiper, uint64_t id, TnNestInfo *ret);
