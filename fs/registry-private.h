/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of the registry, for its parts: the list and eviction (registry.c), creation
 * (registry-create.c), loading (registry-load.c), the janitor (janitor.c). Nests know
 * tn_registry_wake_janitor() only.
 */
#pragma once

#include "describe.h"
#include "nest-private.h"
#include "registry.h"
#include "wipe.h"

#include <pthread.h>

struct TnRegistry {
	TnRegistryConfig config;
	int nests, trash; /* directories of the store */
	TnFdCache *dirs, *files;
	char boot_id[TN_BOOT_ID_MAX];
	TnEventHub *events;
	TnStats stats;

	pthread_mutex_t lock; /* guards the list; taken before any nest's locks */
	TnNest *list;         /* newest first; one reference each */
	size_t count;
	int64_t empty_since; /* CLOCK_MONOTONIC, 0 while there is a nest */

	pthread_t janitor;
	bool janitor_runs;
	pthread_mutex_t janitor_lock; /* guards the two below */
	pthread_cond_t janitor_wake;
	bool wanted, stopping;
	TnWipe wipe;
};

/* --- registry.c; the caller holds the lock --- */

/* Takes the reference. */
void tn_registry_list_add(TnRegistry *registry, TnNest *nest);
/* Borrowed, or NULL. */
TnNest *tn_registry_list_find(TnRegistry *registry, uid_t owner, const char *name);

/* Moves a nest's home to the trash, by its directory's name or its id; wakes the janitor. */
void tn_registry_discard_home(TnRegistry *registry, const char *name);
void tn_registry_discard_id(TnRegistry *registry, uint64_t id);

/* --- registry-create.c --- */

/* What the spec says, with the defaults filled in; no home, no store, no policy yet. */
void tn_registry_fill_parts(TnRegistry *registry, const TnNestSpec *spec, const char *name,
			    TnNestParts *ret);

/* --- registry-load.c; before any other thread runs --- */

/* Restores what an earlier daemon left in the store, wipes what does not live on. 0 or -errno. */
int tn_registry_load(TnRegistry *registry);

/* --- janitor.c --- */

#define TN_WIPE_STEPS 256U /* between two looks at more urgent work */

/* Starts and ends the thread that ends superblocks, evicts what has expired, and wipes. */
int tn_janitor_start(TnRegistry *registry);
void tn_janitor_stop(TnRegistry *registry);

/* There is something to do: a superblock has ended, the trash is not empty. Never blocks long. */
void tn_registry_wake_janitor(TnRegistry *registry);
