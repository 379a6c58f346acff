/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeper and workers share one descriptor table, so what a killed worker had open is still
 * there. Its successor closes everything that nobody has a record of: clients of the dead one
 * see end-of-file, and nothing leaks however often a worker dies.
 */
#pragma once

#include "state.h"

#include <stddef.h>

/*
 * Closes all descriptors but the n of `own` and those that the state, its arenas and their
 * records name. Before any thread runs. 0 or -ENOMEM (nothing is closed then).
 */
int tn_descriptors_tidy(const TnState *state, const int own[], size_t n);
