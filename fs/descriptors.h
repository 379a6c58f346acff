/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeper and workers share one descriptor table, so what a killed worker had open is still
 * there. Its successor closes everything that nobody has a record of: clients of the dead one
 * see end-of-file, and nothing leaks however often a worker dies.
 */
#pragma once

#include "arena-set.h"
#include "worker.h"

/*
 * Closes all descriptors but those in env and those that the state, its arenas and their
 * records name. The first thing a worker does, before it has any other descriptor of its
 * own. Fills the set of arenas on the way. 0 or -ENOMEM (nothing is closed then).
 */
int tn_descriptors_tidy(const TnWorkerEnv *env, TnArenaSet *arenas);
