/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "registry-private.h"

#include "log.h"
#include "macros.h"
#include "serve.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TN_SYSCALLS = {
	{SYS_fchmod},
	{SYS_fchown},
	{SYS_renameat2},
};

/* Descriptors of all nests together. */
#define DIRS_MOST 1024U
#define FILES_MOST 2048U

#define EVICT_PATIENCE_NS 300000000LL /* for a sandbox that is just ending */
#define EVICT_LOOK_NS 2000000L

/* --- the list ------------------------------------------------------------------------------ */

/* With nests there may be views, which wait for a worker that hangs. */
static void set_watched(TnRegistry *registry)
{
	if (registry->state)
		atomic_store(&registry->state->watched, registry->count > 0);
}

/* Ids are random, so any byte of them spreads. */
static TnNest **chain_of(TnRegistry *registry, uint64_t id)
{
	return &registry->by_id[id % TN_ARRAY_LEN(registry->by_id)];
}

void tn_registry_list_add(TnRegistry *registry, TnNest *nest)
{
	TnNest **chain = chain_of(registry, nest->id);

	nest->next = registry->list;
	registry->list = nest;
	nest->next_by_id = *chain;
	*chain = nest;
	registry->count++;
	set_watched(registry);
	registry->empty_since = 0;
}

/* False when it was not listed. The list's reference becomes the caller's. */
static bool list_remove(TnRegistry *registry, TnNest *nest)
{
	TnNest **at = &registry->list;

	while (*at && *at != nest)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = nest->next;
	for (at = chain_of(registry, nest->id); *at != nest;)
		at = &(*at)->next_by_id;
	*at = nest->next_by_id;
	if (--registry->count == 0)
		registry->empty_since = tn_monotonic();
	set_watched(registry);
	return true;
}

void tn_registry_list_drop(TnRegistry *registry, TnNest *nest)
{
	if (list_remove(registry, nest))
		tn_nest_unref(nest);
}

TnNest *tn_registry_list_find(TnRegistry *registry, uid_t owner, const char *name)
{
	TnNest *nest = registry->list;

	while (nest && (nest->uid != owner || strcmp(nest->name, name) != 0))
		nest = nest->next;
	return nest;
}

TnNest *tn_registry_find(TnRegistry *registry, uid_t owner, const char *name)
{
	TnNest *nest;

	pthread_mutex_lock(&registry->lock);
	nest = tn_registry_list_find(registry, owner, name);
	if (nest)
		tn_nest_ref(nest);
	pthread_mutex_unlock(&registry->lock);
	return nest;
}

TnNest *tn_registry_list_find_id(TnRegistry *registry, uint64_t id)
{
	TnNest *nest = *chain_of(registry, id);

	while (nest && nest->id != id)
		nest = nest->next_by_id;
	return nest;
}

TnNest *tn_registry_find_id(TnRegistry *registry, uint64_t id)
{
	TnNest *nest;

	pthread_mutex_lock(&registry->lock);
	nest = tn_registry_list_find_id(registry, id);
	if (nest)
		tn_nest_ref(nest);
	pthread_mutex_unlock(&registry->lock);
	return nest;
}

TnNest **tn_registry_list(TnRegistry *registry, uid_t owner, size_t *ret_n)
{
	TnNest **array;
	size_t n = 0;

	pthread_mutex_lock(&registry->lock);
	array = calloc(registry->count ? registry->count : 1, sizeof(TnNest *));
	for (TnNest *nest = registry->list; array && nest; nest = nest->next) {
		if (owner == (uid_t)-1 || nest->uid == owner)
			array[n++] = tn_nest_ref(nest);
	}
	pthread_mutex_unlock(&registry->lock);
	for (size_t i = 0; i < n / 2; i++) { /* oldest first */
		TnNest *other = array[i];

		array[i] = array[n - 1 - i];
		array[n - 1 - i] = other;
	}
	*ret_n = n;
	if (n == 0) {
		free(array);
		return NULL;
	}
	return array;
}

size_t tn_registry_count(TnRegistry *registry, int64_t *ret_empty_ns)
{
	size_t count;

	pthread_mutex_lock(&registry->lock);
	count = registry->count;
	*ret_empty_ns = count ? 0 : tn_monotonic() - registry->empty_since;
	pthread_mutex_unlock(&registry->lock);
	return count;
}

/* --- eviction --- */

void tn_registry_discard_home(TnRegistry *registry, const char *name)
{
	if (renameat2(registry->nests, name, registry->trash, name, RENAME_NOREPLACE) < 0)
		tn_log(TN_LOG_ERROR, "evict: %s: cannot move to the trash: %s", name,
		       strerror(errno));
	tn_wiper_wake(registry->wiper);
}

void tn_registry_discard_id(TnRegistry *registry, uint64_t id)
{
	char name[20];

	snprintf(name, sizeof(name), "%016" PRIx64, id);
	tn_registry_discard_home(registry, name);
}

void tn_registry_discard_nest(TnRegistry *registry, TnNest *nest)
{
	TnNestInfo info;

	tn_nest_info(nest, &info);
	tn_registry_discard_id(registry, nest->id);
	tn_wiper_add(registry->wiper, &info);
}

/* A command that has just returned may still be ending: gives that a moment. */
static uint32_t retire_after_a_moment(TnNest *nest)
{
	int64_t until = tn_monotonic() + EVICT_PATIENCE_NS;
	uint32_t users = tn_nest_retire(nest, false);

	while (users > 0 && tn_monotonic() < until) {
		nanosleep(&(struct timespec){.tv_nsec = EVICT_LOOK_NS}, NULL);
		users = tn_nest_retire(nest, false);
	}
	return users;
}

int tn_registry_evict(TnRegistry *registry, TnNest *nest, bool force, uint32_t *ret_users)
{
	uint32_t users = force ? tn_nest_retire(nest, true) : retire_after_a_moment(nest);
	bool listed;

	if (ret_users)
		*ret_users = users;
	if (users > 0)
		return -EBUSY;
	pthread_mutex_lock(&registry->lock);
	listed = list_remove(registry, nest);
	pthread_mutex_unlock(&registry->lock);
	if (!listed)
		return 0; /* another eviction was faster */
	tn_event_hub_add(registry->events, TN_EVENT_EVICT, nest->id, nest->uid, nest->name);
	tn_stats_add(&registry->stats.evicted);
	tn_nest_stop(nest);
	tn_registry_discard_nest(registry, nest);
	tn_nest_unref(nest);
	return 0;
}

/* --- life ------------------------------------------------------------------------------------ */

/* Something else has the name of one of our directories: it gets another one. */
static bool put_aside(int store, const char *name)
{
	char other[40];

	snprintf(other, sizeof(other), "damaged-%s-%08" PRIx32, name, (uint32_t)tn_random());
	if (renameat2(store, name, store, other, RENAME_NOREPLACE) < 0)
		return false;
	tn_log(TN_LOG_ERROR,
	       "store: %s: no directory; it is called %s now, and a new one is made (look at it, "
	       "then "
	       "remove it)",
	       name, other);
	return true;
}

/*
 * A directory of the store that nobody enters by its path: mode 0000, so that even a
 * process of the daemon's own user needs the capability that only the worker has.
 */
static int open_closed_dir(int store, const char *name)
{
	TN_AUTOFD fd = tn_open_dir_make(store, name, 0700);
	struct stat above, st;

	if ((fd == -ENOTDIR || fd == -ELOOP) && put_aside(store, name))
		fd = tn_open_dir_make(store, name, 0700);
	if (fd < 0)
		return fd;
	if (fstat(store, &above) < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* The store may belong to a user for nothing else: root's processes neither. */
	if ((st.st_uid != above.st_uid && fchown(fd, above.st_uid, (gid_t)-1) < 0) ||
	    fchmod(fd, 0) < 0)
		return -errno;
	return tn_steal_fd(&fd);
}

static int open_dirs(TnRegistry *registry)
{
	registry->nests = open_closed_dir(registry->config.store_fd, "nests");
	registry->trash = open_closed_dir(registry->config.store_fd, "trash");
	return registry->nests < 0 ? registry->nests : registry->trash < 0 ? registry->trash : 0;
}

static void shortage(void *data)
{
	TnRegistry *registry = data;

	atomic_store(&registry->short_of_room, true);
	tn_registry_wake_janitor(registry);
}

static int start(TnRegistry *registry)
{
	int r = open_dirs(registry);

	if (r == 0)
		r = tn_event_hub_new(&registry->events);
	if (r == 0)
		r = tn_fdcache_new(&registry->dirs, DIRS_MOST);
	if (r == 0)
		r = tn_fdcache_new(&registry->files, FILES_MOST);
	if (r == 0)
		r = tn_wiper_new(&registry->wiper, registry->trash);
	if (r < 0)
		return r;
	tn_space_init(&registry->space, registry->nests, shortage, registry);
	registry->has_space = true;
	tn_registry_read_capacity(registry);
	tn_registry_adopt(registry);
	r = tn_registry_load(registry);
	if (r == 0)
		r = tn_wiper_start(registry->wiper);
	if (r < 0)
		return r;
	tn_registry_keep_capacity(registry);
	return tn_janitor_start(registry);
}

int tn_registry_new(TnRegistry **ret, const TnRegistryConfig *config)
{
	TnRegistry *registry = calloc(1, sizeof(*registry));
	int r;

	if (!registry)
		return -ENOMEM;
	registry->config = *config;
	registry->state = config->serve ? tn_serve_state(config->serve) : NULL;
	registry->nests = registry->trash = -1;
	registry->empty_since = tn_monotonic();
	pthread_mutex_init(&registry->lock, NULL);
	pthread_mutex_init(&registry->work_lock, NULL);
	pthread_mutex_init(&registry->janitor_lock, NULL);
	pthread_mutex_init(&registry->capacity_lock, NULL);
	pthread_cond_init(&registry->janitor_wake, NULL);
	tn_boot_id(registry->boot_id);
	r = start(registry);
	if (r < 0) {
		tn_registry_free(registry);
		return r;
	}
	*ret = registry;
	return 0;
}

void tn_registry_free(TnRegistry *registry)
{
	if (!registry)
		return;
	tn_janitor_stop(registry);
	while (registry->list) {
		TnNest *nest = registry->list;

		registry->list = nest->next;
		tn_nest_stop(nest);
		if (nest->ephemeral && !nest->keep)
			tn_registry_discard_id(registry, nest->id);
		tn_nest_unref(nest);
	}
	tn_wiper_free(registry->wiper);
	tn_registry_free_users(registry);
	if (registry->has_space)
		tn_space_clear(&registry->space);
	for (size_t i = 0; i < registry->n_damaged; i++)
		free(registry->damaged[i]);
	free(registry->damaged);
	tn_fdcache_free(registry->dirs);
	tn_fdcache_free(registry->files);
	tn_event_hub_free(registry->events);
	tn_close(&registry->nests);
	tn_close(&registry->trash);
	pthread_cond_destroy(&registry->janitor_wake);
	pthread_mutex_destroy(&registry->janitor_lock);
	pthread_mutex_destroy(&registry->capacity_lock);
	pthread_mutex_destroy(&registry->lock);
	pthread_mutex_destroy(&registry->work_lock);
	free(registry);
}
