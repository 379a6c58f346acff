/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A bounded cache of open descriptors on nodes' files, least recently used first out.
 * The daemon has two: directories for *at() calls, files for reading and writing, so
 * that 200,000 known inodes cost a fixed number of descriptors.
 *
 * Any thread; locked inside. A TnFd keeps its descriptor open until tn_fd_put(), even
 * when the entry is dropped or evicted meanwhile.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct TnFdCache TnFdCache;
typedef struct TnFdEntry TnFdEntry;

typedef struct TnFd {
	int fd;           /* -1: nothing */
	TnFdEntry *entry; /* NULL: the descriptor is somebody else's */
	TnFdCache *cache;
} TnFd;

#define TN_FD_NONE ((TnFd){.fd = -1})

/* Gives the descriptor back; leaves TN_FD_NONE. Takes TN_FD_NONE. */
void tn_fd_put(TnFd *fd);
#define TN_FD __attribute__((cleanup(tn_fd_put))) TnFd

/* At most `most` idle and busy entries, as far as the busy ones allow. 0 or -ENOMEM. */
int tn_fdcache_new(TnFdCache **ret, size_t most);
void tn_fdcache_free(TnFdCache *cache); /* takes NULL; all TnFds must be back */

/* The cached descriptor of (nest, node) or TN_FD_NONE. */
TnFd tn_fdcache_get(TnFdCache *cache, uint64_t nest, uint64_t node);

/*
 * Takes fd as the descriptor of (nest, node) and returns it in use. When another thread
 * was faster, fd is closed and the other's is returned. Without memory the descriptor is
 * returned uncached: it is closed by tn_fd_put().
 */
TnFd tn_fdcache_add(TnFdCache *cache, uint64_t nest, uint64_t node, int fd);

/* Takes the descriptor of (nest, node) out of the cache, if there is one that nobody uses; else -1.
 */
int tn_fdcache_take(TnFdCache *cache, uint64_t nest, uint64_t node);

/* Closes the entry once nobody uses it; a later get misses. */
void tn_fdcache_drop(TnFdCache *cache, uint64_t nest, uint64_t node);
void tn_fdcache_drop_nest(TnFdCache *cache, uint64_t nest);

size_t tn_fdcache_count(TnFdCache *cache);
