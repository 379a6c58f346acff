/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text that lives as long as one launch: strings are added, never moved, and all freed
 * at once. Bounded, so that no command line can make the launcher grow without end.
 * Not thread-safe per object.
 */
#pragma once

#include <stddef.h>

#define TN_POOL_MAX ((size_t)64 << 20) /* bytes of all strings together */

typedef struct TnPoolChunk TnPoolChunk;

typedef struct TnPool {
	TnPoolChunk *chunks;
	size_t used; /* bytes handed out */
} TnPool;

void tn_pool_init(TnPool *pool);
void tn_pool_clear(TnPool *pool);

/* size bytes, uninitialised; NULL when memory or TN_POOL_MAX is exhausted. */
char *tn_pool_take(TnPool *pool, size_t size);

/* A copy of length bytes of text with a NUL after it; NULL as above. */
char *tn_pool_copy(TnPool *pool, const char *text, size_t length);

/*
 * head, a slash when neither side has one, then tail: joins a directory and what lies
 * below it. With an empty tail just head. NULL as above.
 */
char *tn_pool_join(TnPool *pool, const char *head, const char *tail);

char *tn_pool_printf(TnPool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
