/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A nest and the disk that its store lies on: full is not the same as the quota's end. */
#include "nest-private.h"

#include "log.h"
#include "observe.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <inttypes.h>

TN_SYSCALLS = {
	{SYS_fstat},
};

#define SAY_AGAIN_NS INT64_C(10000000000)
#define LAST_BYTES (UINT64_C(1) * 1024 * 1024) /* a disk that has less than that is full */

static void note_full(TnNest *nest, const char *why)
{
	int64_t now = tn_monotonic(), said = atomic_load(&nest->store_full_said);
	uint64_t total = atomic_fetch_add(&nest->store_full, 1) + 1;

	tn_observe_store_full(nest);
	if (said && now - said < SAY_AGAIN_NS)
		return;
	if (atomic_compare_exchange_strong(&nest->store_full_said, &said, now))
		tn_log(TN_LOG_WARNING,
		       "store: nest %s of uid %u: %s; %" PRIu64
		       " refusals so far (not the nest's quota: evict nests, or enlarge the disk "
		       "or the limits of [store] in tmpnest.conf)",
		       nest->name, (unsigned)nest->uid, why, total);
}

int tn_nest_take_space(TnNest *nest, uint64_t bytes, uint64_t inodes, TnReservation *reservation)
{
	const char *why = NULL;

	if (nest->user_space && tn_space_take(nest->user_space, bytes, inodes) < 0)
		why = "no room left by the limits of its user";
	else if (nest->space && tn_space_take(nest->space, bytes, inodes) < 0)
		why = "no room left by the reserve or the limits of the store";
	if (!why)
		return 0;
	tn_reservation_clear(reservation);
	note_full(nest, why);
	return -ENOSPC;
}

uint64_t tn_nest_bytes_used(const TnNest *nest)
{
	uint64_t free, used = 0;

	if (!nest->store.kernel_counts)
		return atomic_load(&nest->account->bytes_used);
	if (tn_store_room(&nest->store, &free, &used) < 0)
		return 0;
	return used;
}

bool tn_nest_on_disk(const TnNest *nest, uint64_t *ret_bytes)
{
	struct stat st;

	*ret_bytes = tn_nest_bytes_used(nest);
	if (nest->store.image >= 0)
		*ret_bytes = fstat(nest->store.image, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
	return nest->space || nest->store.image >= 0;
}

int tn_nest_apply_limits(TnNest *nest, uint64_t bytes, uint64_t inodes)
{
	int r = tn_store_resize(&nest->store, nest->keeper, bytes, inodes);

	atomic_store(&nest->tight, r == -EBUSY);
	return r == -EBUSY ? 0 : r;
}

void tn_nest_tighten(TnNest *nest)
{
	if (!atomic_load(&nest->tight))
		return;
	pthread_mutex_lock(&nest->life);
	if (!nest->evicting)
		(void)tn_nest_apply_limits(nest, atomic_load(&nest->account->bytes_limit),
					   atomic_load(&nest->account->inodes_limit));
	pthread_mutex_unlock(&nest->life);
}

/* Stores say ENOSPC of an attribute that is too large for them as well. */
static bool is_full(const TnSpace *space)
{
	TnDisk disk;

	return tn_space_disk(space, &disk) < 0 || disk.bytes_free < LAST_BYTES ||
	       disk.inodes_free == 0;
}

int tn_nest_store_answer(TnNest *nest, int r, uint64_t refusals)
{
	if (nest->store.kernel_counts) {
		/* Its end is the quota's; who writes through the kernel alone is not counted. */
		if (atomic_load(&nest->account->refusals) == refusals) {
			atomic_fetch_add(&nest->account->refusals, 1);
			tn_observe_quota(nest);
		}
		return -ENOSPC;
	}
	if (r == -EDQUOT)
		note_full(nest, "the disk quota of the daemon's user is used up");
	else if (atomic_load(&nest->account->refusals) == refusals && nest->space &&
		 is_full(nest->space))
		note_full(nest, "its disk is full");
	return -ENOSPC;
}
