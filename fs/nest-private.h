/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of a nest, for the file-system operations and the nest's own life.
 *
 * Locks, in the order in which they may be taken:
 *   life       the connection: device, generation, state, attachments
 *   tree       which name leads where in the store. Readers use names (resolve, *at()
 *              calls); a writer takes names away or moves them (unlink, rmdir, rename)
 *   node[...]  one inode's data and its charge: node->pages, node->charge
 *   table      the node table and all records in the arena but node->pages, node->charge
 * The kernel is never waited for under any of them: no invalidation, no call into the view.
 */
#pragma once

#include "arena.h"
#include "events.h"
#include "fdcache.h"
#include "nest.h"
#include "node.h"
#include "pins.h"
#include "policy.h"
#include "quota.h"
#include "space.h"
#include "state.h"
#include "stats.h"
#include "store.h"

#include <pthread.h>

#define TN_NODE_LOCKS 64

typedef struct TnLiveAttachment {
	uint64_t id;
	int lease;     /* read end of its lease, watched by the attach server; -1: none */
	bool is_known; /* to a successor: its reply is about to be sent */
	struct TnLiveAttachment *next;
	TnPin **pins;
	size_t n_pins;
} TnLiveAttachment;

/* The directory that a nest is named after (TnNestSpec); gone means the nest's end. */
typedef struct TnFrom {
	int fd;     /* O_PATH while the daemon lives that was given it, else -1 */
	char *path; /* NULL: named after nothing */
	uint64_t dev, ino;
	bool visible; /* the daemon sees it by this path, so after a restart the path decides */
} TnFrom;

struct TnNest {
	_Atomic unsigned refs;
	uint64_t id;
	char name[TN_NAME_MAX + 1];
	uid_t uid;
	gid_t gid;
	bool ephemeral, keep, durable, no_xattrs, writeback;
	bool probe_passthrough; /* false: INIT is taken as if the kernel did not offer it */
	bool many_owners;       /* files get the ids of the process that makes them */
	uint64_t ttl, idle_ttl;
	int64_t created_ns;
	TnFrom from;

	TnKeeperLink *keeper;    /* borrowed from the registry, which outlives the nest */
	TnServe *serve;          /* likewise */
	TnState *state;          /* likewise; NULL: there is no successor (tests) */
	TnFdCache *dirs, *files; /* likewise; shared by all nests */
	TnSpace *space;          /* likewise; NULL: not on the store's disk */
	TnSpace *user_space;     /* of all nests of the owner; NULL: no limits */
	int home;                /* nests/<id> in the daemon's store: holds the description */
	TnStore store;
	TnPolicy *policy; /* replaced between requests only, with `life` held */
	TnArena arena;
	TnAccount *account; /* in the arena */

	pthread_mutex_t life;
	int device; /* /dev/fuse of the live superblock, or -1 */
	bool evicting, detached;
	_Atomic bool frozen;  /* changes are refused; see nest-freeze.c */
	_Atomic bool revokes; /* rules came after what they are about; see nest-rules.c */
	bool attached_once;
	TnLiveAttachment *attachments;
	uint32_t n_attachments;

	pthread_rwlock_t tree;
	pthread_mutex_t node_locks[TN_NODE_LOCKS];
	pthread_mutex_t table_lock;
	TnNodeTable *table;
	TnPinSet pins; /* guarded by table_lock */
	uint64_t root_ino;

	/* Files that the kernel reads and writes by itself (handles.h); guarded by table_lock. */
	_Atomic uint32_t data_path; /* TnDataPath, as in the arena's header; changed by INIT only */
	uint32_t free_handles;
	uint64_t open_files, open_writers;
	_Atomic bool said_mediated;
	_Atomic bool tight; /* the store has more room than the limit, because it was in use */

	/* A refused reservation waits a moment here for the FORGET of deleted files. */
	pthread_mutex_t refund_lock;
	pthread_cond_t refunded;
	unsigned refund_waiters;

	/* Refused because the disk of the store was full, not the nest (nest-space.c). */
	_Atomic uint64_t store_full;
	_Atomic int64_t store_full_said; /* CLOCK_MONOTONIC */
	int64_t stamped_ns;              /* last use as written down; the janitor's */

	TnRegistry *registry;   /* borrowed; told when a superblock ends */
	_Atomic uint64_t ended; /* generation whose device said ENODEV to a serving thread, or 0 */
	TnEvents *events;       /* what happened here, for operators; NULL: not noted */
	TnStats *stats;         /* of the daemon; borrowed from the registry, or NULL */
	_Atomic uint64_t busy_ns; /* time that requests took, all together */
	struct TnNest *next;      /* the registry's list */
	struct TnNest *next_by_id;
};

/*
 * A nest around an open store; takes from, home, store and policy on success. 0 or -errno. The
 * account starts with the limits and that use.
 */
typedef struct TnNestParts {
	const TnRegistryConfig *config;
	TnRegistry *registry;
	uint64_t id;
	const char *name;
	uid_t uid;
	gid_t gid;
	bool ephemeral, keep, durable, no_xattrs, writeback;
	TnDataPath data_path;
	uint64_t bytes, inodes, ttl, idle_ttl;
	TnShare use; /* what is in the store already; not with an arena */
	int64_t created_ns;
	TnFrom from;
	TnFdCache *dirs, *files;
	TnSpace *space, *user_space; /* borrowed, or NULL */
	int home;
	TnStore store;
	TnPolicy *policy;
	TnArena *arena; /* of a nest whose worker was killed: taken; NULL: a new one */
} TnNestParts;
int tn_nest_new(TnNest **ret, const TnNestParts *parts);

/*
 * Second step for the nest of a killed worker, when all journals have been mended and their
 * references taken back: the node table, the account's sums, the attachments. 0 or -errno.
 */
int tn_nest_adopt(TnNest *nest);
/* The last step, when the interrupted requests have been finished: serves again. 0 or -errno. */
int tn_nest_resume(TnNest *nest);

/*
 * The superblock of this generation has ended, by the kernel's word (ENODEV) or because a
 * mount of it failed: closes the device, empties the node table, deletes and refunds
 * orphans, ends the attachments. Not from a serving thread. True when this call did it.
 */
bool tn_nest_end_superblock(TnNest *nest, uint64_t generation);

/* Running sandboxes; 1 also when only the superblock still lives. */
uint32_t tn_nest_users(TnNest *nest);

/*
 * The kernel says that the present superblock has ended (a read of the device failed).
 * Leaves the work to the registry's janitor; from a serving thread.
 */
void tn_nest_ended(TnNest *nest);

/*
 * Refuses attaches from now on, unless sandboxes use the nest and !force. How many do (0:
 * refused). One step, so that nobody attaches in between.
 */
uint32_t tn_nest_retire(TnNest *nest, bool force);

/* Stops the connection for good: attaches are refused from now on. Not from a serving thread. */
void tn_nest_stop(TnNest *nest);

static inline pthread_mutex_t *tn_nest_node_lock(TnNest *nest, uint32_t index)
{
	return &nest->node_locks[index % TN_NODE_LOCKS];
}

/*
 * As tn_quota_reserve(), but when deleted files are still held it first gives their
 * FORGETs, which may lie unread in the queue, a few milliseconds to arrive.
 */
int tn_nest_reserve(TnNest *nest, uint64_t bytes, uint64_t inodes, TnReservation *ret);
uint64_t tn_nest_reserve_some(TnNest *nest, uint64_t bytes, TnReservation *ret);
void tn_nest_refund(TnNest *nest, uint64_t bytes, uint64_t inodes);

/* Ends all attachments and their pins. Work has begun. Caller holds the life lock. */
void tn_nest_drop_attachments(TnNest *nest);

/* The kernel has let go of every node: orphans end, the table starts anew. Work has begun. */
void tn_nest_forget_all(TnNest *nest);

/* Adds the unlinked files that are held by a descriptor: they lie in no directory. 0 or -errno. */
struct TnUsage;
int tn_nest_count_held(TnNest *nest, struct TnUsage *usage);

/*
 * Has the kernel drop what it keeps of an inode (FUSE_NOTIFY_INVAL_INODE), its pages as well from
 * `offset` on, which are written back first and waited for; a negative offset: the attributes
 * alone, and nobody is waited for. 0 or -errno: -ENOENT it knows no such inode, -ENOTCONN.
 */
int tn_notify_inode(int device, uint64_t nodeid, int64_t offset);

/* Makes the account what a count of the store says. */
void tn_nest_recharge(TnNest *nest);
/*
 * The same when a change was given up halfway, which no operation can know the sum of. The
 * kernel has let go of every node: what is half-removed would count twice before.
 */
void tn_nest_recount_given_up(TnNest *nest);

/*
 * The nests' own work (not a request) has a journal to itself, one at a time: between these
 * two it is the calling thread's. Taken after the life lock, before the tree lock.
 */
void tn_work_begin(TnNest *nest);
void tn_work_end(TnNest *nest);

/*
 * Calls call (NULL: nothing) while no thread is in the middle of a request. Caller holds the life
 * lock. What call says, or -errno, and the device is not served then.
 */
int tn_nest_between_requests(TnNest *nest, int (*call)(TnNest *nest, void *data), void *data);

/* --- nest-life.c: the attachments, as a successor finds them. Caller holds the life lock. --- */

void tn_nest_save_life(TnNest *nest);
/* Fills nest->attachments and the pins. 0 or -ENOMEM. */
int tn_nest_load_life(TnNest *nest);

/*
 * The limits reach the store. Where it counts itself and holds more than that already, it is let
 * shrink as it empties: tn_nest_tighten(), at times. 0 or -errno. Caller holds the life lock.
 */
int tn_nest_apply_limits(TnNest *nest, uint64_t bytes, uint64_t inodes);
void tn_nest_tighten(TnNest *nest);

/* Bytes in use: by the account, or by the store where that counts itself. */
uint64_t tn_nest_bytes_used(const TnNest *nest);
/* What the nest takes of the store's disk; false: it lies elsewhere. An image takes its size. */
bool tn_nest_on_disk(const TnNest *nest, uint64_t *ret_bytes);
/*
 * A store that counts itself has no room for `bytes` more: waits for what deleted files are about
 * to give back. Returns soon where there is room, or nothing to wait for.
 */
void tn_nest_await_room(TnNest *nest, uint64_t bytes);

/* --- nest-space.c: the disk below ------------------------------------------------------------ */

/*
 * Room on the store's disk for what the account has granted. 0, or -ENOSPC: the reservation is
 * given back, the refusal counted and logged.
 */
int tn_nest_take_space(TnNest *nest, uint64_t bytes, uint64_t inodes, TnReservation *reservation);

/*
 * The answer to an operation that the store refused with r: a full disk is counted and logged
 * here and is ENOSPC to the sandbox. `refusals` is what the account counted before the operation:
 * if that has grown, the quota it was.
 */
int tn_nest_store_answer(TnNest *nest, int r, uint64_t refusals);
