/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much all nests of a store may take together, and which of them goes when that is
 * too much. Pure: no I/O, no clock.
 *
 * Nests on the store's disk count, memory ones do not. Evicted are only nests that nobody
 * uses and nobody froze: scratch nests before durable ones, each by last use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What must stay free on the disk unless the configuration says otherwise. */
#define TN_RESERVE_BYTES (UINT64_C(256) * 1024 * 1024)
#define TN_RESERVE_INODES UINT64_C(10000)
#define TN_RESERVE_SHARE 20U /* and of a small disk no more than this part of it */

/* What a new nest must find room for. */
#define TN_NEW_NEST_BYTES (UINT64_C(64) * 1024)
#define TN_NEW_NEST_INODES UINT64_C(16)

/* The policy. UINT64_MAX: no limit. */
typedef struct TnCapacity {
	uint64_t bytes, inodes; /* of all nests together */
	uint64_t reserve;       /* bytes that stay free on the disk */
	bool has_reserve;       /* false: the default, by the size of the disk */
	/* Of one user's, on a daemon for many; memory ones count here. Root has no such limits. */
	uint64_t user_bytes, user_inodes, user_nests, user_sandboxes;
} TnCapacity;

typedef struct TnDisk {
	uint64_t bytes, bytes_free;   /* free for us */
	uint64_t inodes, inodes_free; /* UINT64_MAX when the disk does not count them */
} TnDisk;

typedef struct TnRoom {
	uint64_t bytes, inodes;
} TnRoom;

typedef enum TnShortage {
	TN_ROOM_ENOUGH,
	TN_SHORT_OF_QUOTA,  /* the nests together are at their limit */
	TN_SHORT_OF_INODES, /* likewise */
	TN_SHORT_OF_DISK,   /* the disk's reserve is reached */
} TnShortage;

#define TN_USER_NESTS 1000U
#define TN_USER_SANDBOXES 1024U

/* No limits but the numbers of a user's nests and sandboxes; the default reserve. */
TnCapacity tn_capacity_default(void);

/* A user's part of it, as a capacity: of his nests together, whatever the disk. */
TnCapacity tn_capacity_of_user(const TnCapacity *capacity);

/* Bytes of this disk that stay free. */
uint64_t tn_capacity_reserve(const TnCapacity *capacity, const TnDisk *disk);

/* What may still be taken when the nests use `used`; UINT64_MAX: any amount. */
TnRoom tn_capacity_room(const TnCapacity *capacity, const TnRoom *used, const TnDisk *disk);

/* Why `wanted` does not fit; pending: what the wipe is about to give back to the disk. */
TnShortage tn_capacity_shortage(const TnCapacity *capacity, const TnRoom *used, const TnDisk *disk,
				const TnRoom *pending, const TnRoom *wanted);

/* A nest, as the choice sees it. */
typedef struct TnTenant {
	bool in_use, frozen, durable;
	int64_t last_used_ns;
	TnRoom used;
} TnTenant;

/* Index of the one to evict next, or n when none may go. Among equals the first. */
size_t tn_capacity_choose(const TnTenant *tenants, size_t n);
