/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest's state arena: one memfd that holds everything a successor of a killed worker
 * needs: header, account, node records, links and names. Records refer to each other by
 * index, never by pointer, so the arena can be mapped anywhere.
 *
 * The mapping is reserved at its largest size and the memfd is sparse: only records that
 * are in use cost memory. What can be rebuilt (hashes, free lists) is not in here.
 *
 * The owner serialises access; see node.h. The account is atomic.
 */
#pragma once

#include "quota.h"

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#define TN_ARENA_MAGIC 0x616e6574736e6d74ULL
#define TN_ARENA_VERSION 3

#define TN_NODES_MAX (1U << 24)
#define TN_LINKS_MAX (1U << 24)
#define TN_NAME_UNIT 16U /* names are stored in units of this many bytes */
#define TN_NAME_UNITS_MAX (1U << 26)
#define TN_HANDLES_MAX (1U << 20) /* files that are open at a time, where OPEN is asked for */
#define TN_OPCODES 64

/* Threads that serve at most; each has a journal (journal.h), and one more is for the nests'
 * own work (state.h). */
#define TN_SERVING_MOST 32U
#define TN_SHARE_WORK TN_SERVING_MOST
#define TN_SHARE_OTHERS (TN_SERVING_MOST + 1U) /* of what is done without a journal */
#define TN_SHARES (TN_SERVING_MOST + 2U)

/* What one journal has added to an account, all in all; may be negative. */
typedef struct TnShare {
	int64_t bytes, inodes, xattrs;
} TnShare;

/* Node record. Index 0 is never used: 0 means "none". */
typedef struct TnNode {
	uint64_t id;       /* FUSE nodeid, from a counter, never reused; 0: the record is free */
	uint64_t ino;      /* inode number in the store */
	uint64_t lookups;  /* references of the kernel: lookup count (fuse.h, FUSE_FORGET) */
	uint64_t pages;    /* charged pages of data, when TN_CHARGE_KNOWN */
	uint32_t links;    /* first TnLink, 0: unlinked */
	uint32_t children; /* links that have this node as parent */
	uint32_t next_by_id, next_by_ino;
	uint32_t flags;
	int32_t held_fd; /* of a node without a known place: O_PATH, a directory's O_RDONLY; or -1
			  */
	uint16_t type;   /* S_IFMT bits */
	uint8_t subtree; /* TnSubtree */
	uint8_t charge;  /* TN_CHARGE_..., as `pages` guarded by the node's own lock */
	uint32_t reserved;
} TnNode;

enum {                              /* flags */
       TN_NODE_ORPHAN = 1 << 0,     /* unlinked, alive by the kernel's references */
       TN_NODE_IN_ORPHANS = 1 << 1, /* its file is orphans/<id>, no descriptor held */
       TN_NODE_UNNAMED = 1 << 2,    /* an orphan made by O_TMPFILE: may get a first name */
       TN_NODE_DYING = 1 << 3,      /* an orphan that nobody refers to: about to be buried */
};

enum {                            /* charge */
       TN_CHARGE_KNOWN = 1 << 0,  /* `pages` is right */
       TN_CHARGE_SPARSE = 1 << 1, /* allocated pages are not just the first `pages` */
       TN_CHARGE_SET_ID = 1 << 2, /* may have set-uid or set-gid bits */
       TN_CHARGE_NONE = 1 << 3,   /* of an orphan: not (or no longer) in the account */
};

/* One name of a node. Index 0 is "none". */
typedef struct TnLink {
	uint32_t node; /* 0: free */
	uint32_t parent;
	uint32_t next; /* of the same node; in the free list: next free */
	uint32_t name; /* offset in the name heap in TN_NAME_UNITs */
	uint32_t name_length;
} TnLink;

/*
 * One open file of a nest whose opens the kernel asks for (handles.h). Index 0 is "none". The
 * kernel knows it as generation << 32 | index.
 */
typedef struct TnHandle {
	uint32_t node;
	uint32_t generation; /* of the record: raised each time it is taken */
	uint32_t flags;      /* written last; 0: free */
	uint32_t next_free;  /* in the free list, which is made anew by a successor */
} TnHandle;

enum { /* flags of a handle */
       TN_HANDLE_USED = 1 << 0,
       TN_HANDLE_WRITES = 1 << 1, /* open for writing */
       TN_HANDLE_PLAIN = 1 << 2,  /* by READ and WRITE after all, not passed through */
};

/* What is open of a node; by its index. The counts are made anew by a successor. */
typedef struct TnOpened {
	uint32_t opens, writers, plain;
	int32_t backing;  /* id by which the kernel knows the store's file, while any is open; 0 */
	uint32_t written; /* 0, or how often it was opened for writing: a mapping may still change
			     it */
} TnOpened;

/* What a nest has open that outlives a worker; numbers in the table that all workers share. */
typedef struct TnArenaDescriptors {
	int32_t home, data, orphans, mount, from, image;
	_Atomic int32_t device; /* of the live superblock, or -1 */
} TnArenaDescriptors;

#define TN_LIFE_SIZE (1024UL * 1024) /* of each of the two copies */

typedef struct TnArenaHeader {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved;
	uint64_t nest_id;
	uint64_t generation; /* of the superblock */
	uint64_t next_node_id;
	uint32_t nodes_end, links_end, names_end; /* first never-used index */
	uint32_t reserved2;
	TnAccount account;
	TnShare shares[TN_SHARES]; /* the account's use is their sum */
	_Atomic uint64_t orphans;
	_Atomic uint64_t held;        /* nodes that have a held_fd */
	_Atomic uint64_t xattr_bytes; /* charged for extended attributes, all nodes */
	_Atomic uint64_t denied;      /* refusals by rules */
	_Atomic uint64_t requests[TN_OPCODES];
	_Atomic int64_t last_used_ns; /* CLOCK_REALTIME */
	TnArenaDescriptors descriptors;
	_Atomic uint32_t evicting, attached_once;
	_Atomic uint32_t recount_due; /* a change was given up halfway: nest-private.h */
	_Atomic uint32_t life_copy; /* which copy of the attachments holds (nest-life.c); 0: none */
	_Atomic uint32_t data_path; /* TnDataPath */
	uint64_t store_base;        /* TnStore.base */
	_Atomic uint32_t kernel_counts; /* bytes are limited and counted by the store itself */
	uint32_t handles_end;           /* first never-used handle */
	_Atomic uint64_t
		view_dev; /* st_dev of the mounts of this superblock or the last, 0: unknown */
} TnArenaHeader;

typedef struct TnArena {
	int fd;
	uint8_t *base;
	TnArenaHeader *header;
	TnNode *nodes;
	TnLink *links;
	TnHandle *handles;
	TnOpened *opened; /* by node index */
	char *names;
	char *life; /* two copies of TN_LIFE_SIZE bytes */
} TnArena;

/* 0 or -errno. On failure *ret is cleared. */
int tn_arena_init(TnArena *ret, uint64_t nest_id);
/* Maps the one behind fd, which it takes on success. 0, -EBADMSG or -errno. */
int tn_arena_open(TnArena *ret, int fd, uint64_t nest_id);
/* Is it the nest's, and are its counts within its tables? What opening one asks as well. */
bool tn_arena_is_sound(const TnArena *arena, uint64_t nest_id);
/* Makes the records present that are in use: a page fault for each page would take longer. */
void tn_arena_populate(const TnArena *arena);
void tn_arena_clear(TnArena *arena);

/*
 * Before the records of one that was opened are followed: those that cannot be are made free,
 * names that lead in a circle are cut, descriptors that are something else are let go. Whole and
 * half-made ones stay. 0, -ENOMEM, or -EBADMSG (no root).
 */
int tn_arena_mend(TnArena *arena);

/* Gives the memory of all records back to the system; the header and account stay. */
void tn_arena_trim(TnArena *arena);
