/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All nests of one daemon: found by owner and name, created, loaded from the store at
 * the start, evicted. Owns the nests (one reference each while they are listed).
 *
 * Any thread of the worker; locked inside. A TnNest returned is a reference that the
 * caller gives back with tn_nest_unref(). Names are unique per owner.
 */
#pragma once

#include "attach-proto.h"
#include "data-path.h"
#include "keeper-link.h"
#include "units.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct TnRegistry TnRegistry;
typedef struct TnNest TnNest;
typedef struct TnServe TnServe;
typedef struct TnEventHub TnEventHub;
typedef struct TnStats TnStats;
typedef struct TnLatency TnLatency;
typedef struct TnArenaSet TnArenaSet; /* arena-set.h */

typedef struct TnRegistryConfig {
	int store_fd;           /* the store directory; borrowed */
	bool many_owners;       /* a root daemon: nests of any uid, files get their ids */
	TnKeeperLink *keeper;   /* borrowed */
	bool use_resend;        /* ask the kernel for requests that a dead worker has lost */
	TnDataPath data_path;   /* the best that a nest can have here */
	bool probe_passthrough; /* false: INIT is taken as if the kernel did not offer it */
	TnServe *serve;         /* the threads that answer the kernel; borrowed */
	TnArenaSet *arenas;     /* mapped already; those of nests that live on are taken; or NULL */
	TnStoreKind default_store;
	uint64_t default_bytes, default_inodes;
	/* Where the capacity policy is read from, the later wins (section [store]); NULL: none.
	 * Borrowed. */
	const char *config_files[2];
} TnRegistryConfig;

/* A nest to be made. Strings and arrays are borrowed for the call. */
typedef struct TnNestSpec {
	const char *name; /* NULL: ephemeral, a name is invented */
	uid_t uid;
	gid_t gid;
	bool keep, durable, no_xattrs, writeback;
	uint64_t bytes, inodes, ttl, idle_ttl; /* 0 = default, TN_UNLIMITED = none */
	TnStoreKind store;
	/* The directory the nest is named after: it is evicted when that is gone. */
	int from_fd; /* O_PATH, borrowed; -1: none */
	const char *from_path;
	uint64_t from_dev, from_ino;
	const char *const *deny; /* patterns besides the built-in one */
	size_t n_deny;
	const char *const *read_only;
	size_t n_read_only;
	uint64_t id; /* of the nest to be; 0: one is invented */
} TnNestSpec;

typedef enum TnNestState {
	TN_NEST_ACTIVE,   /* a superblock lives */
	TN_NEST_IDLE,     /* kept, nobody uses it */
	TN_NEST_FROZEN,   /* changes refused */
	TN_NEST_EVICTING, /* being wiped; the name is free again */
	TN_NEST_DETACHED, /* found in the store after a restart, not attached since */
} TnNestState;

typedef struct TnNestInfo {
	uint64_t id;
	char name[TN_NAME_MAX + 1];
	uid_t owner_uid;
	gid_t owner_gid;
	TnNestState state;
	bool ephemeral, keep, durable, no_xattrs, writeback;
	TnDataPath data_path;
	uint64_t open_files, open_writers; /* through the kernel alone; 0 on the mediated path */
	TnStoreKind store;
	uint32_t attachments; /* running sandboxes */
	uint64_t bytes_used, bytes_limit, inodes_used, inodes_limit;
	uint64_t ttl, idle_ttl; /* seconds or TN_UNLIMITED */
	const char *from; /* directory it is named after, or NULL; valid as long as the nest */
	uint64_t denied_total, quota_hits_total, requests_total;
	uint64_t store_full_total;        /* refused for want of room on the store's disk */
	dev_t view_dev;                   /* of its mounts; 0: unknown */
	uint64_t busy_ns;                 /* time that requests took since the worker started */
	uint64_t nodes_cached;            /* inodes that the kernel holds a reference on */
	int64_t created_ns, last_used_ns; /* CLOCK_REALTIME */
} TnNestInfo;

/* Opens the store, wipes what earlier ephemeral nests left, loads the named ones. 0 or -errno. */
int tn_registry_new(TnRegistry **ret, const TnRegistryConfig *config);
/* Ends every nest's connection and frees; named nests stay in the store. Takes NULL. */
void tn_registry_free(TnRegistry *registry);

/*
 * 0 and a reference, or -EEXIST (that owner has one of that name), -EINVAL (name or
 * pattern; text says which), -ENOTSUP (store kind), -ENOSPC, or another -errno of the store.
 */
int tn_registry_create(TnRegistry *registry, const TnNestSpec *spec, TnNest **ret, char *why,
		       size_t why_size);

/* A reference, or NULL. */
TnNest *tn_registry_find(TnRegistry *registry, uid_t owner, const char *name);
TnNest *tn_registry_find_id(TnRegistry *registry, uint64_t id);

/*
 * References to every nest of `owner` ((uid_t)-1: of all), oldest first; the caller
 * unrefs each and frees the array. NULL when out of memory or none; *ret_n says.
 */
TnNest **tn_registry_list(TnRegistry *registry, uid_t owner, size_t *ret_n);

/*
 * Frees the name, refuses attaches, ends the connection, moves the data to the trash and
 * returns; the wipe goes on in the background. 0, or -EBUSY when sandboxes use it and
 * !force (*ret_users says how many).
 */
int tn_registry_evict(TnRegistry *registry, TnNest *nest, bool force, uint32_t *ret_users);

/* Events of all nests, and counts; they live as long as the registry. */
TnEventHub *tn_registry_events(TnRegistry *registry);
const TnStats *tn_registry_stats(const TnRegistry *registry);
/* How often the worker was replaced since the daemon began. */
uint64_t tn_registry_restarts(const TnRegistry *registry);
/* How long requests took, of each operation that there were any of. */
typedef void (*TnLatencyVisit)(const char *operation, const TnLatency *latency, void *data);
void tn_registry_each_latency(const TnRegistry *registry, TnLatencyVisit visit, void *data);

/* How many sandboxes a user may run, as the configuration says; UINT64_MAX: any number. */
uint64_t tn_registry_sandboxes_per_user(TnRegistry *registry);

/* Nests that exist now, and how long none has existed (ns, 0 while there is one). */
size_t tn_registry_count(TnRegistry *registry, int64_t *ret_empty_ns);

/* --- the store as a whole (registry-gc.c) --- */

typedef struct TnGcOptions {
	bool dry_run;
	bool all;            /* the caller may see everything: what is stuck is tried again */
	bool damaged;        /* wipes what the start found damaged and left */
	uint64_t unused_for; /* seconds: evicts nests that nobody used for that long; 0: none */
} TnGcOptions;

typedef struct TnGcItem {
	TnNestInfo info;
	const char *why; /* static */
} TnGcItem;

typedef struct TnGcReport {
	TnGcItem *items; /* evicted, or to be evicted */
	size_t n_items;
	char **damaged; /* names in the store's directory nests */
	size_t n_damaged;
} TnGcReport;

/* Evicts nests of `owner` ((uid_t)-1: of all) whose time is over and nobody uses. 0 or -errno. */
int tn_registry_gc(TnRegistry *registry, uid_t owner, const TnGcOptions *options, TnGcReport *ret);
void tn_gc_report_clear(TnGcReport *report);

typedef struct TnStoreInfo {
	uint64_t bytes_used, bytes_limit, inodes_used, inodes_limit; /* all nests on the disk */
	uint64_t disk_free, disk_inodes_free, reserve;
	uint64_t refusals_total; /* growth refused for want of room in the store */
	uint64_t wiping, stuck;  /* nests; entries that cannot be removed */
	uint64_t damaged;        /* homes that the start left as they were */
} TnStoreInfo;
void tn_registry_store_info(TnRegistry *registry, TnStoreInfo *ret);

/* Ids of evicted nests of `owner` that are being wiped; the caller frees. */
uint64_t *tn_registry_list_going(TnRegistry *registry, uid_t owner, size_t *ret_n);
/* What is left of one. False: it has gone. */
bool tn_registry_going_info(TnRegistry *registry, uint64_t id, TnNestInfo *ret);
