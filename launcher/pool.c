/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pool.h"

#include "macros.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_SIZE ((size_t)16 * 1024)

struct TnPoolChunk {
	TnPoolChunk *next;
	size_t size;
	size_t used;
	char bytes[];
};

void tn_pool_init(TnPool *pool)
{
	*pool = (TnPool){0};
}

void tn_pool_clear(TnPool *pool)
{
	while (pool->chunks) {
		TnPoolChunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		free(chunk);
	}
	pool->used = 0;
}

char *tn_pool_take(TnPool *pool, size_t size)
{
	TnPoolChunk *chunk = pool->chunks;
	size_t total;

	if (tn_add_overflows(pool->used, size, &total) || total > TN_POOL_MAX)
		return NULL;
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->next = pool->chunks;
		chunk->size = room;
		chunk->used = 0;
		pool->chunks = chunk;
	}
	pool->used = total;
	chunk->used += size;
	return chunk->bytes + chunk->used - size;
}

char *tn_pool_copy(TnPool *pool, const char *text, size_t length)
{
	char *copy = length < TN_POOL_MAX ? tn_pool_take(pool, length + 1) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}

char *tn_pool_join(TnPool *pool, const char *head, const char *tail)
{
	size_t n = strlen(head);
	char *joined;

	if (!*tail)
		return tn_pool_copy(pool, head, n);
	while (n > 0 && head[n - 1] == '/')
		n--;
	while (*tail == '/')
		tail++;
	joined = tn_pool_take(pool, n + 1 + strlen(tail) + 1);
	if (!joined)
		return NULL;
	memcpy(joined, head, n);
	joined[n] = '/';
	strcpy(joined + n + 1, tail);
	return joined;
}

char *tn_pool_printf(TnPool *pool, const char *format, ...)
{
	va_list args;
	int length;
	char *text;

	va_start(args, format);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = length < 0 ? NULL : tn_pool_take(pool, (size_t)length + 1);
	if (!text)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}
