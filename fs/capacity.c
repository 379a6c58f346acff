/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capacity.h"

TnCapacity tn_capacity_default(void)
{
	return (TnCapacity){
		.bytes = UINT64_MAX,
		.inodes = UINT64_MAX,
		.user_bytes = UINT64_MAX,
		.user_inodes = UINT64_MAX,
		.user_nests = TN_USER_NESTS,
		.user_sandboxes = TN_USER_SANDBOXES,
	};
}

TnCapacity tn_capacity_of_user(const TnCapacity *capacity)
{
	TnCapacity user = tn_capacity_default();

	user.bytes = capacity->user_bytes;
	user.inodes = capacity->user_inodes;
	user.has_reserve = true; /* of none: the disk is the store's concern */
	return user;
}

static uint64_t less(uint64_t limit, uint64_t used)
{
	if (limit == UINT64_MAX)
		return UINT64_MAX;
	return limit > used ? limit - used : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t tn_capacity_reserve(const TnCapacity *capacity, const TnDisk *disk)
{
	return capacity->has_reserve ? capacity->reserve
				     : smaller(TN_RESERVE_BYTES, disk->bytes / TN_RESERVE_SHARE);
}

static TnRoom disk_room(const TnCapacity *capacity, const TnDisk *disk)
{
	uint64_t bytes = tn_capacity_reserve(capacity, disk);
	uint64_t inodes = smaller(TN_RESERVE_INODES, disk->inodes / TN_RESERVE_SHARE);

	return (TnRoom){.bytes = less(disk->bytes_free, bytes),
			.inodes = less(disk->inodes_free, inodes)};
}

TnRoom tn_capacity_room(const TnCapacity *capacity, const TnRoom *used, const TnDisk *disk)
{
	TnRoom room = disk_room(capacity, disk);

	return (TnRoom){.bytes = smaller(less(capacity->bytes, used->bytes), room.bytes),
			.inodes = smaller(less(capacity->inodes, used->inodes), room.inodes)};
}

TnShortage tn_capacity_shortage(const TnCapacity *capacity, const TnRoom *used, const TnDisk *disk,
				const TnRoom *pending, const TnRoom *wanted)
{
	TnRoom room = disk_room(capacity, disk);

	if (less(capacity->bytes, used->bytes) < wanted->bytes || used->bytes > capacity->bytes)
		return TN_SHORT_OF_QUOTA;
	if (less(capacity->inodes, used->inodes) < wanted->inodes ||
	    used->inodes > capacity->inodes)
		return TN_SHORT_OF_INODES;
	if (sum(room.bytes, pending->bytes) < wanted->bytes ||
	    sum(room.inodes, pending->inodes) < wanted->inodes)
		return TN_SHORT_OF_DISK;
	return TN_ROOM_ENOUGH;
}

static bool goes_before(const TnTenant *a, const TnTenant *b)
{
	if (a->durable != b->durable)
		return b->durable;
	return a->last_used_ns < b->last_used_ns;
}

size_t tn_capacity_choose(const TnTenant *tenants, size_t n)
{
	size_t chosen = n;

	for (size_t i = 0; i < n; i++) {
		if (tenants[i].in_use || tenants[i].frozen)
			continue;
		if (chosen == n || goes_before(&tenants[i], &tenants[chosen]))
			chosen = i;
	}
	return chosen;
}
