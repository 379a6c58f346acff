/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "descriptors.h"

#include "macros.h"
#include "nest-life.h"
#include "syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

TN_SYSCALLS = {
	{SYS_close_range},
};

typedef struct Keep {
	int *fds;
	size_t n, room;
	bool failed;
} Keep;

static void keep(int fd, void *data)
{
	Keep *all = data;

	if (fd < 0 || all->failed)
		return;
	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 256;
		int *grown = reallocarray(all->fds, room, sizeof(*grown));

		if (!grown) {
			all->failed = true;
			return;
		}
		all->fds = grown;
		all->room = room;
	}
	all->fds[all->n++] = fd;
}

static void keep_nest(TnArenaSet *arenas, const TnState *state, uint32_t place, Keep *all)
{
	const TnStateNest *entry = &state->nests[place];
	const TnArenaDescriptors *fds;
	TnArena *arena;

	/* It will be given up: then its views must end, not wait for ever. */
	if (atomic_load(&state->fault) && atomic_load(&entry->attempts) >= TN_ATTEMPTS_MOST)
		return;
	keep(entry->arena, all);
	arena = tn_arena_set_at(arenas, state, place);
	if (!arena)
		return; /* it will be given up */
	fds = &arena->header->descriptors;
	keep(fds->home, all);
	keep(fds->data, all);
	keep(fds->orphans, all);
	keep(fds->mount, all);
	keep(fds->from, all);
	keep(fds->image, all);
	keep(atomic_load(&fds->device), all);
	tn_life_each_lease(arena, keep, all);
	for (uint32_t i = 1; i < arena->header->nodes_end; i++) {
		if (arena->nodes[i].id)
			keep(arena->nodes[i].held_fd, all);
	}
}

static int compare(const void *a, const void *b)
{
	int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

static void close_others(Keep *all)
{
	unsigned next = 0;

	qsort(all->fds, all->n, sizeof(all->fds[0]), compare);
	for (size_t i = 0; i < all->n; i++) {
		unsigned fd = (unsigned)all->fds[i];

		if (fd > next)
			close_range(next, fd - 1, 0);
		next = fd + 1;
	}
	close_range(next, ~0U, 0);
}

static void keep_own(const TnWorkerEnv *env, Keep *all)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		keep(fd, all);
	for (size_t i = 0; i < TN_ARRAY_LEN(env->keepers); i++)
		keep(env->keepers[i], all);
	keep(env->store, all);
	keep(env->runtime, all);
	keep(env->attach_listener, all);
	keep(env->control_listener, all);
	keep(env->link_socket, all);
	keep(env->stop_event, all);
	keep(env->refusals, all);
	keep(env->state->fd, all);
}

int tn_descriptors_tidy(const TnWorkerEnv *env, TnArenaSet *arenas)
{
	const TnState *state = env->state;
	Keep all = {0};
	int r;

	tn_state_bound(env->state);
	r = tn_arena_set_fill(arenas, state, TN_STATE_NESTS);
	if (r < 0)
		return r;
	keep_own(env, &all);
	for (uint32_t i = 0; i < atomic_load(&state->nests_end); i++) {
		if (atomic_load(&state->nests[i].id))
			keep_nest(arenas, state, i, &all);
	}
	if (!all.failed)
		close_others(&all);
	free(all.fds);
	return all.failed ? -ENOMEM : 0;
}
