/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a daemon's worker leaves to its successor, in one memfd that the keeper holds: which
 * nests there are (their arenas), and per serving thread the request in work with its
 * journal and its reply. Descriptors are numbers: keeper and workers share one table.
 *
 * The nests' table is changed under the registry's lock; a slot belongs to its thread.
 */
#pragma once

#include "journal.h"
#include "request-size.h"

#include <stdatomic.h>
#include <stdint.h>

#define TN_STATE_NESTS 16384U
#define TN_SLOTS (TN_SERVING_MOST + 1U)
#define TN_STATE_RECENTS (32U * 1024) /* bytes for attach-verbs.c */

typedef struct TnStateNest {
	_Atomic uint64_t id; /* written last, cleared first; 0: free */
	int32_t arena;
	_Atomic uint32_t attempts; /* of taking it over, since it last worked */
} TnStateNest;

enum { /* TnSlot.state */
       TN_SLOT_IDLE = 0,
       TN_SLOT_READING = 1, /* the request is whole if its header's length is not 0 */
       TN_SLOT_READ = 2,    /* the operation may have begun */
       TN_SLOT_REPLIED = 3, /* the reply is whole, it may have been sent */
       TN_SLOT_WORK = 4,    /* no request: the nest's own work */
};

typedef struct TnSlot {
	_Atomic uint32_t state;
	int32_t device; /* the descriptor the request was read from */
	uint64_t nest_id;
	uint64_t request_size, reply_size;
	_Atomic int64_t since_ns;  /* CLOCK_MONOTONIC: when the request was read */
	_Atomic uint32_t attempts; /* of repeating it; past TN_ATTEMPTS_MOST it gets EIO */
	TnJournal journal;
	_Alignas(4096) uint8_t request[TN_REQUEST_SIZE];
	_Alignas(4096) uint8_t reply[TN_REPLY_SIZE];
} TnSlot;

#define TN_ATTEMPTS_MOST 3U

/*
 * The file that the keeper made known to the kernel last (backing.h). The worker may have died
 * before it could note the id: its successor takes back what no node has.
 */
typedef struct TnStateBacking {
	uint64_t nest_id;
	uint32_t node;
	int32_t device;
	_Atomic int32_t id; /* written last; 0: none */
} TnStateBacking;

/* What a keeper that takes over from another has to know besides. */
typedef struct TnResume {
	int32_t runtime, store, runtime_lock, store_lock, attach, control;
	uint64_t userns_dev, userns_ino, instance_id;
} TnResume;

typedef struct TnState {
	uint64_t magic;
	uint32_t version, reserved;
	_Atomic uint64_t beat;     /* moves as long as the worker is well */
	_Atomic uint32_t watched;  /* there are nests, so it should move */
	_Atomic uint64_t restarts; /* of the worker, since the keeper began */
	_Atomic uint32_t fault;    /* the last worker died of something it did, or hung */
	_Atomic uint64_t progress; /* moves when a worker that takes over gets something done */
	int32_t fd;
	/* First of each that was never used: the rest of the memory is not touched. */
	_Atomic uint32_t nests_end, slots_end;
	TnResume resume;
	TnStateBacking backing;
	_Alignas(64) uint8_t recents[TN_STATE_RECENTS];
	TnStateNest nests[TN_STATE_NESTS];
	_Alignas(4096) TnSlot slots[TN_SLOTS]; /* the last one is for the nests' own work */
} TnState;

/* A new one; the descriptor is state->fd. 0 or -errno. */
int tn_state_new(TnState **ret);
/* Could this program take the one behind fd over? Changes nothing. 0, -EBADMSG or -errno. */
int tn_state_check(int fd);
/* The one behind fd, which it takes on success. 0, -EBADMSG (of another version) or -errno. */
int tn_state_open(TnState **ret, int fd);
void tn_state_free(TnState *state); /* unmaps, closes; takes NULL */

/* Makes present what a worker that takes over reads first. */
void tn_state_prefault(TnState *state);

/* Whatever a worker has written there: no count is above its table's, and each slot has the share
 * of accounts that is its. Keeper and worker, before they follow one that may have gone wrong. */
void tn_state_bound(TnState *state);

/* No nest, no request: what there was is lost. For the keeper, while no worker runs. */
void tn_state_forget(TnState *state);

/* The nest is found by a successor from now on. 0 or -ENOSPC. */
int tn_state_add(TnState *state, uint64_t nest_id, int arena);
void tn_state_remove(TnState *state, uint64_t nest_id);
