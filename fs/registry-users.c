/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What each user's nests may take together on a daemon for many users: the same credit as the
 * store's (space.h), one for each user, without a disk below it.
 */
#include "registry-private.h"

#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What is made free for somebody who was refused in the middle of a write. */
#define WRITER_BYTES (UINT64_C(4) * 1024 * 1024)
#define WRITER_INODES UINT64_C(64)

static void shortage(void *data)
{
	TnRegistry *registry = data;

	atomic_store(&registry->short_of_room, true);
	tn_registry_wake_janitor(registry);
}

TnUser *tn_registry_find_user(TnRegistry *registry, uid_t uid)
{
	TnUser *user = atomic_load(&registry->users);

	while (user && user->uid != uid)
		user = user->next;
	return user;
}

TnUser *tn_registry_user(TnRegistry *registry, uid_t uid)
{
	TnCapacity capacity, limits;
	TnUser *user;

	if (!registry->config.many_owners || uid == 0)
		return NULL;
	user = tn_registry_find_user(registry, uid);
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	tn_space_init(&user->space, -1, shortage, registry);
	tn_space_get_capacity(&registry->space, &capacity);
	limits = tn_capacity_of_user(&capacity);
	tn_space_set_capacity(&user->space, &limits);
	user->next = atomic_load(&registry->users);
	atomic_store(&registry->users, user);
	return user;
}

void tn_registry_set_user_capacity(TnRegistry *registry, const TnCapacity *capacity)
{
	TnCapacity limits = tn_capacity_of_user(capacity);

	for (TnUser *user = atomic_load(&registry->users); user; user = user->next)
		tn_space_set_capacity(&user->space, &limits);
}

/* What every user's nests use, memory ones too. */
static void sum_used(TnRegistry *registry)
{
	for (TnUser *user = atomic_load(&registry->users); user; user = user->next)
		user->used = (TnRoom){0};
	pthread_mutex_lock(&registry->lock);
	for (const TnNest *nest = registry->list; nest; nest = nest->next) {
		TnUser *user = tn_registry_find_user(registry, nest->uid);

		if (!user)
			continue;
		user->used.bytes += atomic_load(&nest->account->bytes_used);
		user->used.inodes += atomic_load(&nest->account->inodes_used);
	}
	pthread_mutex_unlock(&registry->lock);
}

void tn_registry_keep_users(TnRegistry *registry, bool is_short)
{
	const TnRoom wanted = is_short ? (TnRoom){WRITER_BYTES, WRITER_INODES} : (TnRoom){0};
	char why[256];

	for (TnUser *user = atomic_load(&registry->users); user; user = user->next)
		tn_registry_make_room(registry, user, &wanted, why, sizeof(why));
	sum_used(registry);
	for (TnUser *user = atomic_load(&registry->users); user; user = user->next)
		tn_space_report(&user->space, &user->used);
}

int tn_registry_check_user_nests(TnRegistry *registry, uid_t uid, char *why, size_t why_size)
{
	TnCapacity capacity;
	uint64_t n = 0;

	if (!registry->config.many_owners || uid == 0)
		return 0;
	tn_space_get_capacity(&registry->space, &capacity);
	for (const TnNest *nest = registry->list; nest; nest = nest->next)
		n += nest->uid == uid;
	if (n < capacity.user_nests)
		return 0;
	snprintf(why, why_size,
		 "uid %u has %" PRIu64 " nests, as many as one user may have (evict some, or raise "
		 "user_nests of [store] in tmpnest.conf)",
		 (unsigned)uid, n);
	return -ENOSPC;
}

uint64_t tn_registry_sandboxes_per_user(TnRegistry *registry)
{
	TnCapacity capacity;

	tn_space_get_capacity(&registry->space, &capacity);
	return capacity.user_sandboxes;
}

void tn_registry_free_users(TnRegistry *registry)
{
	TnUser *user = atomic_exchange(&registry->users, NULL);

	while (user) {
		TnUser *next = user->next;

		tn_space_clear(&user->space);
		free(user);
		user = next;
	}
}
