/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of the registry, for its parts: the list and eviction (registry.c), creation
 * (registry-create.c), loading (registry-load.c), the janitor (janitor.c). Nests know
 * tn_registry_wake_janitor() only.
 */
#pragma once

#include "capacity-config.h"
#include "describe.h"
#include "nest-private.h"
#include "registry.h"
#include "space.h"
#include "wiper.h"

#include <pthread.h>

/* What one user's nests may take together, on a daemon for many users. */
typedef struct TnUser {
	uid_t uid;
	TnSpace space; /* without a disk */
	TnRoom used;   /* while the sums are made */
	struct TnUser *next;
} TnUser;

struct TnRegistry {
	TnRegistryConfig config;
	TnState *state;   /* what a killed worker has left, and what this one will leave */
	int nests, trash; /* directories of the store */
	TnFdCache *dirs, *files;
	char boot_id[TN_BOOT_ID_MAX];
	TnEventHub *events;
	TnStats stats;

	pthread_mutex_t work_lock; /* whose journal for work is in use: see tn_work_begin() */
	pthread_mutex_t lock;      /* guards the list; taken before any nest's locks */
	TnNest *list;              /* newest first; one reference each */
	TnNest *by_id[256];        /* the same, by the last byte of the id */
	size_t count;
	int64_t empty_since; /* CLOCK_MONOTONIC, 0 while there is a nest */

	pthread_t janitor;
	bool janitor_runs;
	pthread_mutex_t janitor_lock; /* guards the two below */
	pthread_cond_t janitor_wake;
	bool wanted, stopping;

	TnWiper *wiper;
	TnSpace space; /* the store's disk; the janitor reports to it */
	bool has_space;
	_Atomic(TnUser *) users;       /* grows at its head; freed with the registry */
	_Atomic bool short_of_room;    /* somebody was refused: the janitor makes room */
	pthread_mutex_t capacity_lock; /* one at a time makes room; taken before `lock` */
	TnConfigStamp config_stamp;    /* of the files that the capacity was read from */
	char **damaged;                /* what the load left as it was; see registry-load.c */
	size_t n_damaged;
};

/* --- registry.c; the caller holds the lock --- */

/* Takes the reference. */
void tn_registry_list_add(TnRegistry *registry, TnNest *nest);
/* Gives the list's reference up. */
void tn_registry_list_drop(TnRegistry *registry, TnNest *nest);
/* Borrowed, or NULL. */
TnNest *tn_registry_list_find_id(TnRegistry *registry, uint64_t id);
TnNest *tn_registry_list_find(TnRegistry *registry, uid_t owner, const char *name);

/* Moves a home to the trash, by its directory's name or its nest's id; wakes the wiper. */
void tn_registry_discard_home(TnRegistry *registry, const char *name);
void tn_registry_discard_id(TnRegistry *registry, uint64_t id);
/* The same for a nest that has ended, which is listed until it is wiped. */
void tn_registry_discard_nest(TnRegistry *registry, TnNest *nest);

/* --- registry-create.c --- */

#define TN_NEW_PREFIX ".new-" /* of a home that is not whole yet: then comes its id */

/* What the spec says, with the defaults filled in; no home, no store, no policy yet. */
void tn_registry_fill_parts(TnRegistry *registry, const TnNestSpec *spec, const char *name,
			    TnNestParts *ret);

/* The parts of a nest as its description has them; no home, no store. */
void tn_registry_parts_of(TnRegistry *registry, const TnDescription *description, TnNestParts *ret);
/* The nest that was made of them has taken what is owned. */
void tn_registry_parts_taken(TnDescription *description, TnNest *nest);

/* Adds what a user has written. 0, -EINVAL with the reason, or -ENOMEM. */
int tn_registry_add_rules(TnPolicy *policy, const char *const *patterns, size_t n, bool deny,
			  char *why, size_t why_size);

/* --- registry-load.c; before any other thread runs --- */

/* Restores what an earlier daemon left in the store, wipes what does not live on. 0 or -errno. */
int tn_registry_load(TnRegistry *registry);

/* Does it end by itself: its time is over, or what it is named after has gone? */
bool tn_janitor_has_expired(TnNest *nest, int64_t now, const char **ret_why);

/* --- registry-capacity.c --- */

/* Reads the policy, again when its files have changed since. */
void tn_registry_read_capacity(TnRegistry *registry);
/* The janitor's round: reports what is used, evicts when it is too much. */
void tn_registry_keep_capacity(TnRegistry *registry);
/*
 * Evicts idle nests until `wanted` fits: of all, or with a user of his, into his limits. 0, or
 * -ENOSPC with the reason: all that may go has gone. No lock may be held.
 */
int tn_registry_make_room(TnRegistry *registry, const TnUser *user, const TnRoom *wanted, char *why,
			  size_t why_size);

/* --- registry-users.c --- */

/* NULL: has no limits (root, a user's own daemon), or out of memory. Caller holds the lock. */
TnUser *tn_registry_user(TnRegistry *registry, uid_t uid);
/* Likewise, but never makes one; any lock. */
TnUser *tn_registry_find_user(TnRegistry *registry, uid_t uid);
/* The limits have changed. */
void tn_registry_set_user_capacity(TnRegistry *registry, const TnCapacity *capacity);
/* The janitor's round: evicts what is too much, reports what is used. */
void tn_registry_keep_users(TnRegistry *registry, bool is_short);
/* May the user make one more nest? 0, or -ENOSPC with the reason. Caller holds the lock. */
int tn_registry_check_user_nests(TnRegistry *registry, uid_t uid, char *why, size_t why_size);
void tn_registry_free_users(TnRegistry *registry);

/* --- adopt.c; before any other thread runs --- */

/*
 * Takes over the nests of a killed worker and finishes what it was doing. What cannot be
 * taken over is left to tn_registry_load(): its views are lost, its files are not.
 */
void tn_registry_adopt(TnRegistry *registry);

/* --- janitor.c --- */

/* Starts and ends the thread that ends superblocks and evicts what has expired. */
int tn_janitor_start(TnRegistry *registry);
void tn_janitor_stop(TnRegistry *registry);

/* There is something to do: a superblock has ended, room is short. Never blocks long. */
void tn_registry_wake_janitor(TnRegistry *registry);
