/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest's attachments and pins as its arena holds them: see nest-life.c; saving and loading
 * are in nest-private.h.
 */
#pragma once

#include "arena.h"

/* Calls visit with the descriptor of each attachment's lease. */
void tn_life_each_lease(const TnArena *arena, void (*visit)(int fd, void *data), void *data);
