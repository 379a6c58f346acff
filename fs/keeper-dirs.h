/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a daemon owns on disk: its runtime directory, its store, the locks that keep a
 * second daemon out of either, and the listening sockets. For the keeper, once, before it
 * enters its namespaces.
 */
#pragma once

#include "paths.h"
#include "state.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct TnKeeperDirs {
	const TnPaths *paths;
	int runtime, store;           /* directories */
	int runtime_lock, store_lock; /* held as long as they are open */
	int attach, control;          /* listening, non-blocking */
	uint64_t runtime_dev, runtime_ino, store_dev, store_ino;
} TnKeeperDirs;

/*
 * Makes or checks both directories, takes the locks, makes RUNTIME/leases and RUNTIME/pid
 * and listens. The store is handed to store_uid. paths is borrowed. 0, or -errno with one line in
 * why and nothing open: -EALREADY a daemon serves this runtime directory right now (waits for one
 * that starts or ends), -EBUSY another daemon has the store, -EPERM a directory that is not ours to
 * use.
 */
int tn_keeper_dirs_open(TnKeeperDirs *ret, const TnPaths *paths, uid_t store_uid, char *why,
			size_t why_size);

/* The same from descriptors that a keeper before has left. 0, or -EPERM: they are not those. */
int tn_keeper_dirs_adopt(TnKeeperDirs *ret, const TnPaths *paths, const TnResume *resume, char *why,
			 size_t why_size);

/* No new client: sockets and pid file go, while the locks are still held. */
void tn_keeper_dirs_retire(TnKeeperDirs *dirs);

/* Closes everything. */
void tn_keeper_dirs_close(TnKeeperDirs *dirs);
