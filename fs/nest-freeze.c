/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Freezing: every change is refused (EROFS, in ops-common.c) from the moment this returns.
 * What processes wrote through shared mappings before is written back first.
 */
#include "describe.h"
#include "log.h"
#include "nest-private.h"
#include "serve.h"
#include "sys.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define NODES_AT_A_TIME 64U
#define ADD_TRIES 100

/*
 * Has the kernel write back and drop what it holds of one file. It waits for WRITEs that
 * the serving threads answer: they need neither the life lock nor this thread.
 */
static void flush_node(int device, uint64_t nodeid)
{
	int r = tn_notify_inode(device, nodeid, 0);

	/* ENOENT: the kernel has forgotten it meanwhile, and written back before. */
	if (r < 0 && r != -ENOENT && r != -ENOTCONN)
		tn_log(TN_LOG_WARNING, "freeze: a file cannot be written back: %s", strerror(-r));
}

/* The next regular files after *index; *index is 0 at the end. How many. */
static size_t next_files(TnNest *nest, uint32_t *index, uint64_t ids[NODES_AT_A_TIME])
{
	size_t n = 0;

	pthread_mutex_lock(&nest->table_lock);
	while (n < NODES_AT_A_TIME && (*index = tn_node_next(nest->table, *index))) {
		const TnNode *node = tn_node_at(nest->table, *index);

		if (node->type == S_IFREG)
			ids[n++] = node->id;
	}
	pthread_mutex_unlock(&nest->table_lock);
	return n;
}

/* In parts, so that an eviction waits for a few files at most. */
static void flush_files(TnNest *nest)
{
	uint64_t ids[NODES_AT_A_TIME];
	uint32_t index = 0;
	bool more = true;

	do {
		size_t n = next_files(nest, &index, ids);

		pthread_mutex_lock(&nest->life);
		more = nest->device >= 0 && !nest->evicting;
		for (size_t i = 0; more && i < n; i++)
			flush_node(nest->device, ids[i]);
		pthread_mutex_unlock(&nest->life);
	} while (more && index);
}

int tn_nest_between_requests(TnNest *nest, int (*call)(TnNest *nest, void *data), void *data)
{
	bool is_served = nest->device >= 0 && nest->serve;
	int r, added = is_served ? -ENOMEM : 0;

	if (is_served)
		tn_serve_remove(nest->serve, nest, nest->device);
	r = call ? call(nest, data) : 0;
	for (int i = 0; added < 0 && i < ADD_TRIES; i++) {
		added = tn_serve_add(nest->serve, nest, nest->device);
		if (added < 0)
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return r < 0 ? r : added;
}

/* Caller holds the life lock. */
static int set_frozen(TnNest *nest, bool frozen)
{
	int r = 0;

	if (nest->evicting)
		return -ENOENT;
	if (atomic_exchange(&nest->frozen, frozen) == frozen)
		return 0;
	if (frozen)
		r = tn_nest_between_requests(nest, NULL, NULL);
	else
		/* Its time of rest does not count as idle. */
		atomic_store(&nest->arena.header->last_used_ns, tn_now());
	return r < 0 ? r : tn_describe_save(nest);
}

int tn_nest_set_frozen(TnNest *nest, bool frozen)
{
	int r;

	if (frozen && !atomic_load(&nest->frozen))
		flush_files(nest);
	pthread_mutex_lock(&nest->life);
	r = set_frozen(nest, frozen);
	pthread_mutex_unlock(&nest->life);
	return r;
}
