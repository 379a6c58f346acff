/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "space.h"

#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <sys/statvfs.h>
#include <time.h>

TN_SYSCALLS = {
	{SYS_fstatfs},
};

#define CREDIT_WHOLE (UINT64_C(64) * 1024 * 1024) /* up to here the whole room is given out */
#define CREDIT_INODES_WHOLE UINT64_C(10000)
#define REPORT_FRESH_NS 100000000 /* a report that is younger than this is not asked for again */
#define REPORT_WAIT_NS 50000000L

void tn_space_init(TnSpace *space, int store, void (*shortage)(void *data), void *data)
{
	*space = (TnSpace){
		.store = store,
		.shortage = shortage,
		.data = data,
		.capacity = tn_capacity_default(),
	};
	pthread_mutex_init(&space->lock, NULL);
	pthread_cond_init(&space->reported, NULL);
}

void tn_space_clear(TnSpace *space)
{
	pthread_cond_destroy(&space->reported);
	pthread_mutex_destroy(&space->lock);
}

int tn_space_disk(const TnSpace *space, TnDisk *ret)
{
	struct statvfs st;

	if (fstatvfs(space->store, &st) < 0)
		return -errno;
	*ret = (TnDisk){
		.bytes = st.f_blocks * st.f_frsize,
		.bytes_free = st.f_bavail * st.f_frsize,
		/* Some count no inodes and say 0 of 0. */
		.inodes = st.f_files ? st.f_files : UINT64_MAX,
		.inodes_free = st.f_files ? st.f_favail : UINT64_MAX,
	};
	return 0;
}

/* Takes back what has not been spent. Caller holds the lock. */
static void withdraw(TnSpace *space)
{
	uint64_t bytes = atomic_exchange(&space->credit_bytes, 0);
	uint64_t inodes = atomic_exchange(&space->credit_inodes, 0);

	space->issued.bytes -= bytes < space->issued.bytes ? bytes : space->issued.bytes;
	space->issued.inodes -= inodes < space->issued.inodes ? inodes : space->issued.inodes;
}

/* Half of a large room: the rest is for the next look, which knows what was really used. */
static uint64_t share(uint64_t room, uint64_t whole)
{
	return room <= whole ? room : room / 2;
}

/* Looks at the disk and gives out credit anew. Caller holds the lock. */
static TnRoom renew(TnSpace *space)
{
	TnRoom used = space->used, room;
	TnDisk disk;

	withdraw(space);
	used.bytes += space->issued.bytes;
	used.inodes += space->issued.inodes;
	/* A disk that does not answer refuses by itself. */
	if (tn_space_disk(space, &disk) < 0)
		disk = (TnDisk){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	room = tn_capacity_room(&space->capacity, &used, &disk);
	room.bytes = share(room.bytes, CREDIT_WHOLE);
	room.inodes = share(room.inodes, CREDIT_INODES_WHOLE);
	atomic_store(&space->credit_bytes, room.bytes);
	atomic_store(&space->credit_inodes, room.inodes);
	space->issued.bytes += room.bytes;
	space->issued.inodes += room.inodes;
	return room;
}

void tn_space_set_capacity(TnSpace *space, const TnCapacity *capacity)
{
	pthread_mutex_lock(&space->lock);
	space->capacity = *capacity;
	renew(space);
	pthread_mutex_unlock(&space->lock);
}

void tn_space_get_capacity(TnSpace *space, TnCapacity *ret)
{
	pthread_mutex_lock(&space->lock);
	*ret = space->capacity;
	pthread_mutex_unlock(&space->lock);
}

void tn_space_report(TnSpace *space, const TnRoom *used)
{
	pthread_mutex_lock(&space->lock);
	withdraw(space);
	space->used = *used;
	space->issued = (TnRoom){0};
	space->report_ns = tn_monotonic();
	renew(space);
	pthread_cond_broadcast(&space->reported);
	pthread_mutex_unlock(&space->lock);
}

static bool take_one(_Atomic uint64_t *credit, uint64_t amount)
{
	uint64_t left = atomic_load(credit);

	do {
		if (left < amount)
			return false;
	} while (!atomic_compare_exchange_weak(credit, &left, left - amount));
	return true;
}

static bool take(TnSpace *space, uint64_t bytes, uint64_t inodes)
{
	if (!take_one(&space->credit_bytes, bytes))
		return false;
	if (take_one(&space->credit_inodes, inodes))
		return true;
	atomic_fetch_add(&space->credit_bytes, bytes);
	return false;
}

/*
 * Has the one who reports look, and perhaps make room. One waiter at a time and not again
 * while the last report is fresh: a full disk must not keep every thread waiting. Caller
 * holds the lock. False: nothing new.
 */
static bool await_report(TnSpace *space)
{
	int64_t before = space->report_ns;
	struct timespec until;

	if (space->waiters > 0 || !space->shortage || tn_monotonic() - before < REPORT_FRESH_NS)
		return false;
	space->waiters++;
	space->shortage(space->data);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += REPORT_WAIT_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	while (space->report_ns == before &&
	       pthread_cond_timedwait(&space->reported, &space->lock, &until) == 0)
		;
	space->waiters--;
	return space->report_ns != before;
}

static int take_slowly(TnSpace *space, uint64_t bytes, uint64_t inodes)
{
	bool taken;

	pthread_mutex_lock(&space->lock);
	renew(space);
	taken = take(space, bytes, inodes);
	if (!taken && await_report(space)) {
		renew(space);
		taken = take(space, bytes, inodes);
	}
	pthread_mutex_unlock(&space->lock);
	if (!taken)
		atomic_fetch_add(&space->refusals, 1);
	return taken ? 0 : -ENOSPC;
}

int tn_space_take(TnSpace *space, uint64_t bytes, uint64_t inodes)
{
	return take(space, bytes, inodes) ? 0 : take_slowly(space, bytes, inodes);
}
