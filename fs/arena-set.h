/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arenas that a state lists, mapped: by a worker in waiting as far as they are there already,
 * since mapping one and its first page faults take longer than reading it. One thread.
 */
#pragma once

#include "arena.h"
#include "state.h"

typedef struct TnArenaSet {
	TnArena *arenas; /* by place in the state; without a base: none */
	uint32_t n;
} TnArenaSet;

/*
 * Maps those of the first `most` places that are not mapped yet, lets go those that are listed no
 * more; -ENOMEM or 0. One that cannot be mapped or is damaged is left out. Takes no descriptor.
 */
int tn_arena_set_fill(TnArenaSet *set, const TnState *state, uint32_t most);

/* The one at that place as the state lists it, sound; NULL: there is none. The set's. */
TnArena *tn_arena_set_at(TnArenaSet *set, const TnState *state, uint32_t place);

/* Unmaps what is left. */
void tn_arena_set_clear(TnArenaSet *set);
