/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arena-set.h"

#include <errno.h>
#include <stdlib.h>

/* Unmaps it; the descriptor is the state's. */
static void let_go(TnArena *arena)
{
	arena->fd = -1;
	tn_arena_clear(arena);
}

static int grow(TnArenaSet *set, uint32_t n)
{
	TnArena *grown;

	if (n <= set->n)
		return 0;
	grown = reallocarray(set->arenas, n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	for (uint32_t i = set->n; i < n; i++)
		grown[i] = (TnArena){.fd = -1};
	set->arenas = grown;
	set->n = n;
	return 0;
}

static bool is_listed(const TnArena *arena, const TnStateNest *entry)
{
	return arena->base && arena->fd == entry->arena &&
	       tn_arena_is_sound(arena, atomic_load(&entry->id));
}

static void fill(TnArena *arena, const TnStateNest *entry)
{
	uint64_t id = atomic_load(&entry->id);

	if (is_listed(arena, entry)) {
		tn_arena_populate(arena); /* it may have grown */
		return;
	}
	let_go(arena);
	if (id)
		(void)tn_arena_open(arena, entry->arena, id);
}

int tn_arena_set_fill(TnArenaSet *set, const TnState *state, uint32_t most)
{
	uint32_t n = atomic_load(&state->nests_end);
	int r;

	if (n > TN_STATE_NESTS)
		n = TN_STATE_NESTS;
	if (n > most)
		n = most;
	r = grow(set, n);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		fill(&set->arenas[i], &state->nests[i]);
	return r;
}

TnArena *tn_arena_set_at(TnArenaSet *set, const TnState *state, uint32_t place)
{
	TnArena *arena = place < set->n ? &set->arenas[place] : NULL;

	return arena && is_listed(arena, &state->nests[place]) ? arena : NULL;
}

void tn_arena_set_clear(TnArenaSet *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		let_go(&set->arenas[i]);
	free(set->arenas);
	*set = (TnArenaSet){0};
}
