/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fdcache.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct TnFdEntry {
	uint64_t nest, node;
	int fd;
	uint32_t users;
	bool dropped; /* no longer in hash and list; freed by the last user */
	TnFdEntry *hash_next;
	TnFdEntry *older, *newer;
};

struct TnFdCache {
	pthread_mutex_t lock; /* guards everything below and the entries */
	TnFdEntry **buckets;
	size_t n_buckets; /* a power of two */
	size_t n, most;
	TnFdEntry *oldest, *newest;
};

static TnFdEntry **bucket_of(TnFdCache *cache, uint64_t nest, uint64_t node)
{
	uint64_t key = (nest ^ node * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;

	return &cache->buckets[(key >> 32) & (cache->n_buckets - 1)];
}

static TnFdEntry *find(TnFdCache *cache, uint64_t nest, uint64_t node)
{
	TnFdEntry *entry = *bucket_of(cache, nest, node);

	while (entry && (entry->nest != nest || entry->node != node))
		entry = entry->hash_next;
	return entry;
}

static void list_remove(TnFdCache *cache, TnFdEntry *entry)
{
	*(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
	entry->older = entry->newer = NULL;
}

static void list_append(TnFdCache *cache, TnFdEntry *entry)
{
	entry->older = cache->newest;
	*(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
	cache->newest = entry;
}

static void unlink_entry(TnFdCache *cache, TnFdEntry *entry)
{
	TnFdEntry **at = bucket_of(cache, entry->nest, entry->node);

	while (*at != entry)
		at = &(*at)->hash_next;
	*at = entry->hash_next;
	list_remove(cache, entry);
	cache->n--;
}

/* Takes the entry out of the cache; closes it unless somebody uses it. */
static void detach(TnFdCache *cache, TnFdEntry *entry)
{
	unlink_entry(cache, entry);
	entry->dropped = true;
	if (entry->users == 0) {
		close(entry->fd);
		free(entry);
	}
}

/* Makes room for one more, as far as idle entries allow. */
static void make_room(TnFdCache *cache)
{
	TnFdEntry *entry = cache->oldest;

	while (entry && cache->n >= cache->most) {
		TnFdEntry *newer = entry->newer;

		if (entry->users == 0)
			detach(cache, entry);
		entry = newer;
	}
}

int tn_fdcache_new(TnFdCache **ret, size_t most)
{
	TnFdCache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	cache->most = most;
	cache->n_buckets = 64;
	while (cache->n_buckets < most)
		cache->n_buckets *= 2;
	cache->buckets = calloc(cache->n_buckets, sizeof(TnFdEntry *));
	if (!cache->buckets) {
		free(cache);
		return -ENOMEM;
	}
	pthread_mutex_init(&cache->lock, NULL);
	*ret = cache;
	return 0;
}

void tn_fdcache_free(TnFdCache *cache)
{
	if (!cache)
		return;
	while (cache->oldest)
		detach(cache, cache->oldest);
	pthread_mutex_destroy(&cache->lock);
	free(cache->buckets);
	free(cache);
}

static TnFd use(TnFdCache *cache, TnFdEntry *entry)
{
	entry->users++;
	if (entry != cache->newest) {
		list_remove(cache, entry);
		list_append(cache, entry);
	}
	return (TnFd){.fd = entry->fd, .entry = entry, .cache = cache};
}

TnFd tn_fdcache_get(TnFdCache *cache, uint64_t nest, uint64_t node)
{
	TnFd fd = TN_FD_NONE;
	TnFdEntry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = find(cache, nest, node);
	if (entry)
		fd = use(cache, entry);
	pthread_mutex_unlock(&cache->lock);
	return fd;
}

TnFd tn_fdcache_add(TnFdCache *cache, uint64_t nest, uint64_t node, int fd)
{
	TnFdEntry *fresh = malloc(sizeof(*fresh));
	TnFdEntry *entry;
	TnFd result;

	if (!fresh)
		return (TnFd){.fd = fd, .cache = cache};
	pthread_mutex_lock(&cache->lock);
	entry = find(cache, nest, node);
	if (entry) {
		close(fd);
		free(fresh);
	} else {
		TnFdEntry **bucket = bucket_of(cache, nest, node);

		make_room(cache);
		entry = fresh;
		*entry = (TnFdEntry){.nest = nest, .node = node, .fd = fd, .hash_next = *bucket};
		*bucket = entry;
		list_append(cache, entry);
		cache->n++;
	}
	result = use(cache, entry);
	pthread_mutex_unlock(&cache->lock);
	return result;
}

void tn_fd_put(TnFd *fd)
{
	TnFdEntry *entry = fd->entry;

	if (entry) {
		pthread_mutex_lock(&fd->cache->lock);
		if (--entry->users == 0 && entry->dropped) {
			close(entry->fd);
			free(entry);
		}
		pthread_mutex_unlock(&fd->cache->lock);
	} else if (fd->fd >= 0 && fd->cache) {
		close(fd->fd);
	}
	*fd = TN_FD_NONE;
}

int tn_fdcache_take(TnFdCache *cache, uint64_t nest, uint64_t node)
{
	TnFdEntry *entry;
	int fd = -1;

	pthread_mutex_lock(&cache->lock);
	entry = find(cache, nest, node);
	if (entry && entry->users == 0) {
		unlink_entry(cache, entry);
		fd = entry->fd;
		free(entry);
	}
	pthread_mutex_unlock(&cache->lock);
	return fd;
}

void tn_fdcache_drop(TnFdCache *cache, uint64_t nest, uint64_t node)
{
	TnFdEntry *entry;

	pthread_mutex_lock(&cache->lock);
	entry = find(cache, nest, node);
	if (entry)
		detach(cache, entry);
	pthread_mutex_unlock(&cache->lock);
}

void tn_fdcache_drop_nest(TnFdCache *cache, uint64_t nest)
{
	pthread_mutex_lock(&cache->lock);
	for (TnFdEntry *entry = cache->oldest; entry;) {
		TnFdEntry *newer = entry->newer;

		if (entry->nest == nest)
			detach(cache, entry);
		entry = newer;
	}
	pthread_mutex_unlock(&cache->lock);
}

size_t tn_fdcache_count(TnFdCache *cache)
{
	size_t n;

	pthread_mutex_lock(&cache->lock);
	n = cache->n;
	pthread_mutex_unlock(&cache->lock);
	return n;
}
