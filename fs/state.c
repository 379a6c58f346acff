/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "state.h"

#include "macros.h"
#include "syscalls.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

TN_SYSCALLS = {
	{SYS_memfd_create},
	{SYS_ftruncate},
	{SYS_fstat},
};

#define MAGIC 0x6574617473746e74ULL
/* A binary takes over what one of the same version has left. */
#define VERSION ((uint32_t)(sizeof(TnState) ^ sizeof(TnArenaHeader) << 8 ^ 2))

static int map(TnState **ret, int fd)
{
	void *base = mmap(NULL, sizeof(TnState), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	(void)madvise(base, sizeof(TnState), MADV_DONTDUMP);
	*ret = base;
	return 0;
}

int tn_state_new(TnState **ret)
{
	TN_AUTOFD fd = memfd_create("tmpnest-state", MFD_CLOEXEC);
	TnState *state;
	int r;

	if (fd < 0 || ftruncate(fd, (off_t)sizeof(TnState)) < 0)
		return -errno;
	r = map(&state, fd);
	if (r < 0)
		return r;
	state->slots[TN_SHARE_WORK].journal.share = TN_SHARE_WORK;
	state->fd = tn_steal_fd(&fd);
	state->version = VERSION;
	state->magic = MAGIC;
	*ret = state;
	return 0;
}

int tn_state_check(int fd)
{
	struct stat st;
	TnState *state;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != (off_t)sizeof(TnState))
		return -EBADMSG;
	r = map(&state, fd);
	if (r < 0)
		return r;
	if (state->magic != MAGIC || state->version != VERSION)
		r = -EBADMSG;
	munmap(state, sizeof(TnState));
	return r;
}

int tn_state_open(TnState **ret, int fd)
{
	int r = tn_state_check(fd);

	if (r == 0)
		r = map(ret, fd);
	if (r == 0)
		(*ret)->fd = fd;
	return r;
}

void tn_state_free(TnState *state)
{
	int fd;

	if (!state)
		return;
	fd = state->fd;
	munmap(state, sizeof(TnState));
	close(fd);
}

void tn_state_bound(TnState *state)
{
	if (atomic_load(&state->nests_end) > TN_STATE_NESTS)
		atomic_store(&state->nests_end, TN_STATE_NESTS);
	if (atomic_load(&state->slots_end) > TN_SERVING_MOST)
		atomic_store(&state->slots_end, TN_SERVING_MOST);
	for (uint32_t i = 0; i < atomic_load(&state->slots_end); i++)
		state->slots[i].journal.share = i;
	state->slots[TN_SHARE_WORK].journal.share = TN_SHARE_WORK;
}

static void prefault(void *start, size_t size)
{
	(void)madvise(start, size, MADV_POPULATE_WRITE);
}

void tn_state_prefault(TnState *state)
{
	uint32_t nests = atomic_load(&state->nests_end), slots = atomic_load(&state->slots_end);

	if (nests > TN_STATE_NESTS || slots > TN_SERVING_MOST)
		return;
	/* The mapping begins with a page, and each slot. */
	prefault(state, offsetof(TnState, nests) + nests * sizeof(state->nests[0]));
	for (uint32_t i = 0; i < slots; i++)
		prefault(&state->slots[i], offsetof(TnSlot, request));
	prefault(&state->slots[TN_SHARE_WORK], offsetof(TnSlot, request));
}

void tn_state_forget(TnState *state)
{
	tn_state_bound(state);
	for (uint32_t i = 0; i < atomic_load(&state->nests_end); i++)
		atomic_store(&state->nests[i].id, 0);
	for (uint32_t i = 0; i < atomic_load(&state->slots_end); i++)
		atomic_store(&state->slots[i].state, TN_SLOT_IDLE);
	atomic_store(&state->slots[TN_SHARE_WORK].state, TN_SLOT_IDLE);
}

int tn_state_add(TnState *state, uint64_t nest_id, int arena)
{
	uint32_t end = atomic_load(&state->nests_end), i = 0;
	TnStateNest *nest;

	while (i < end && atomic_load(&state->nests[i].id))
		i++;
	if (i == TN_STATE_NESTS)
		return -ENOSPC;
	nest = &state->nests[i];
	nest->arena = arena;
	atomic_store(&nest->attempts, 0);
	atomic_store(&nest->id, nest_id);
	if (i == end)
		atomic_store(&state->nests_end, end + 1);
	return 0;
}

void tn_state_remove(TnState *state, uint64_t nest_id)
{
	for (uint32_t i = 0; i < atomic_load(&state->nests_end); i++) {
		if (atomic_load(&state->nests[i].id) == nest_id)
			atomic_store(&state->nests[i].id, 0);
	}
}
