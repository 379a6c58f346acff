/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The capacity policy at work: capacity.h decides, this looks and evicts. */
#include "registry-private.h"

#include "log.h"
#include "macros.h"
#include "sys.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is made free for somebody who was refused in the middle of a write. */
#define WRITER_BYTES (UINT64_C(4) * 1024 * 1024)
#define WRITER_INODES UINT64_C(64)

typedef struct Look {
	TnCapacity capacity;
	TnDisk disk;
	TnRoom used, pending;
	TnNest **nests; /* those on the disk; one reference each */
	TnTenant *tenants;
	size_t n, n_in_use;
} Look;

void tn_registry_read_capacity(TnRegistry *registry)
{
	TnCapacity capacity;

	if (!tn_config_changed(&registry->config_stamp, registry->config.config_files))
		return;
	tn_capacity_load(registry->config.config_files, &capacity);
	tn_space_set_capacity(&registry->space, &capacity);
	tn_registry_set_user_capacity(registry, &capacity);
}

/* Sum of what the nests use: they are only looked at, under the list's lock. A user's memory nests
 * count for him; for the disk only what lies on it. */
static TnRoom sum_used(TnRegistry *registry, const TnUser *user)
{
	TnRoom used = {0};
	uint64_t bytes;

	pthread_mutex_lock(&registry->lock);
	for (const TnNest *nest = registry->list; nest; nest = nest->next) {
		bool on_disk = tn_nest_on_disk(nest, &bytes);

		if (user ? nest->uid != user->uid : !on_disk)
			continue;
		used.bytes += bytes;
		used.inodes += atomic_load(&nest->account->inodes_used);
	}
	pthread_mutex_unlock(&registry->lock);
	return used;
}

static void look_clear(Look *look)
{
	for (size_t i = 0; i < look->n; i++)
		tn_nest_unref(look->nests[i]);
	free(look->nests);
	free(look->tenants);
}
#define LOOK __attribute__((cleanup(look_clear))) Look

/* 0 or -errno. Everything but the tenants. */
static int look_at_disk(TnRegistry *registry, Look *ret)
{
	TnWiperState wiper;

	tn_wiper_state(registry->wiper, &wiper);
	ret->pending = wiper.left;
	ret->used = sum_used(registry, NULL);
	tn_space_get_capacity(&registry->space, &ret->capacity);
	return tn_space_disk(&registry->space, &ret->disk);
}

/* The same for one user's limits, which are no disk's. */
static void look_at_user(TnRegistry *registry, const TnUser *user, Look *ret)
{
	TnCapacity capacity;

	tn_space_get_capacity(&registry->space, &capacity);
	ret->capacity = tn_capacity_of_user(&capacity);
	ret->used = sum_used(registry, user);
	ret->disk = (TnDisk){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
}

static TnTenant tenant_of(TnNest *nest)
{
	uint64_t bytes;

	tn_nest_on_disk(nest, &bytes);
	return (TnTenant){
		.in_use = tn_nest_users(nest) > 0,
		.frozen = atomic_load(&nest->frozen),
		.durable = nest->durable,
		.last_used_ns = atomic_load(&nest->arena.header->last_used_ns),
		.used = {.bytes = bytes, .inodes = atomic_load(&nest->account->inodes_used)},
	};
}

static int look_at_tenants(TnRegistry *registry, const TnUser *user, Look *ret)
{
	size_t n, kept = 0;

	ret->nests = tn_registry_list(registry, user ? user->uid : (uid_t)-1, &n);
	ret->tenants = calloc(n ? n : 1, sizeof(TnTenant));
	for (size_t i = 0; i < n; i++) {
		uint64_t bytes;
		bool on_disk = tn_nest_on_disk(ret->nests[i], &bytes);

		if (!ret->tenants || (user ? ret->nests[i]->uid != user->uid : !on_disk)) {
			tn_nest_unref(ret->nests[i]);
			continue;
		}
		ret->tenants[kept] = tenant_of(ret->nests[i]);
		ret->n_in_use += ret->tenants[kept].in_use;
		ret->nests[kept++] = ret->nests[i];
	}
	ret->n = kept;
	return ret->tenants ? 0 : -ENOMEM;
}

static const char *words_for(TnShortage shortage)
{
	switch (shortage) {
	case TN_SHORT_OF_QUOTA:
		return "the nests' common quota is used up";
	case TN_SHORT_OF_INODES:
		return "the nests' common number of inodes is used up";
	default:
		return "the store's disk is full up to its reserve";
	}
}

/* Takes a nest's use from the look, as if it were wiped already. */
static void discount(Look *look, size_t index)
{
	TnTenant *tenant = &look->tenants[index];

	look->used.bytes -= tenant->used.bytes;
	look->used.inodes -= tenant->used.inodes;
	look->pending.bytes += tenant->used.bytes;
	look->pending.inodes += tenant->used.inodes;
}

/* It is not a candidate any more. */
static void evict_for_room(TnRegistry *registry, Look *look, size_t index, TnShortage shortage)
{
	TnNest *nest = look->nests[index];

	look->tenants[index].in_use = true;
	/* Without patience: who came back to it meanwhile keeps it. */
	if (tn_nest_retire(nest, false) > 0 || tn_registry_evict(registry, nest, true, NULL) < 0) {
		look->n_in_use++;
		return;
	}
	discount(look, index);
	tn_log(TN_LOG_INFO, "capacity: nest %s of uid %u evicted, unused for %" PRId64 " s: %s",
	       nest->name, (unsigned)nest->uid,
	       (tn_now() - look->tenants[index].last_used_ns) / INT64_C(1000000000),
	       words_for(shortage));
}

static int explain(const Look *look, const TnUser *user, TnShortage shortage, char *why,
		   size_t why_size)
{
	snprintf(
		why, why_size,
		"no room in the store%s: %s, and no idle nest is left to evict (%zu in use; end or "
		"evict some, or raise the limits of [store] in tmpnest.conf)",
		user ? " for this user" : "", words_for(shortage), look->n_in_use);
	return -ENOSPC;
}

static TnShortage shortage_of(const Look *look, const TnRoom *wanted)
{
	return tn_capacity_shortage(&look->capacity, &look->used, &look->disk, &look->pending,
				    wanted);
}

/* Caller holds the capacity lock. */
static int make_room(TnRegistry *registry, const TnUser *user, const TnRoom *wanted, char *why,
		     size_t why_size)
{
	LOOK look = {0};
	TnShortage shortage;

	/* A disk that does not answer is for whoever writes to it. */
	if (user)
		look_at_user(registry, user, &look);
	else if (look_at_disk(registry, &look) < 0)
		return 0;
	if (shortage_of(&look, wanted) == TN_ROOM_ENOUGH ||
	    look_at_tenants(registry, user, &look) < 0)
		return 0;
	while ((shortage = shortage_of(&look, wanted)) != TN_ROOM_ENOUGH) {
		size_t index = tn_capacity_choose(look.tenants, look.n);

		if (index == look.n)
			return explain(&look, user, shortage, why, why_size);
		evict_for_room(registry, &look, index, shortage);
	}
	return 0;
}

int tn_registry_make_room(TnRegistry *registry, const TnUser *user, const TnRoom *wanted, char *why,
			  size_t why_size)
{
	int r;

	pthread_mutex_lock(&registry->capacity_lock);
	r = make_room(registry, user, wanted, why, why_size);
	pthread_mutex_unlock(&registry->capacity_lock);
	return r;
}

void tn_registry_keep_capacity(TnRegistry *registry)
{
	static const TnRoom for_a_writer = {.bytes = WRITER_BYTES, .inodes = WRITER_INODES};
	static const TnRoom nothing = {0};
	bool is_short = atomic_exchange(&registry->short_of_room, false);
	char why[256];
	TnRoom used;

	tn_registry_read_capacity(registry);
	tn_registry_make_room(registry, NULL, is_short ? &for_a_writer : &nothing, why,
			      sizeof(why));
	used = sum_used(registry, NULL);
	tn_space_report(&registry->space, &used);
	tn_registry_keep_users(registry, is_short);
}
