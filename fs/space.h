/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room on the store's disk, for all nests that lie on it: growth is asked for here
 * after the nest's own account has granted it. Refusals here are the machine's shortage,
 * not the nest's quota.
 *
 * Most questions are answered from a credit, two atomic operations and no system call;
 * the credit is renewed from the disk and from what the nests use, the sum of which
 * somebody else (the janitor) reports from time to time. So the limits are kept to within
 * what is under way at one moment.
 *
 * Any thread.
 */
#pragma once

#include "capacity.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct TnSpace {
	int store;                    /* the store's directory; borrowed */
	void (*shortage)(void *data); /* asks for a new report, and for room; any thread */
	void *data;

	_Atomic uint64_t credit_bytes, credit_inodes;
	_Atomic uint64_t refusals;

	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t reported;
	TnCapacity capacity;
	TnRoom used;       /* by all nests, as last reported */
	TnRoom issued;     /* credit given out since then */
	int64_t report_ns; /* CLOCK_MONOTONIC */
	unsigned waiters;
} TnSpace;

void tn_space_init(TnSpace *space, int store, void (*shortage)(void *data), void *data);
void tn_space_clear(TnSpace *space);

void tn_space_set_capacity(TnSpace *space, const TnCapacity *capacity);
void tn_space_get_capacity(TnSpace *space, TnCapacity *ret);

/* What all nests use now. */
void tn_space_report(TnSpace *space, const TnRoom *used);

/* 0, or -ENOSPC: counted; it may have waited some milliseconds for room to be made. */
int tn_space_take(TnSpace *space, uint64_t bytes, uint64_t inodes);

/* What the disk says. 0 or -errno. */
int tn_space_disk(const TnSpace *space, TnDisk *ret);
