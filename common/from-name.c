/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "from-name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TAIL 9 /* "-" and the digits */

/* FNV-1a: no secret, only the same digits for the same directory. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return hash;
}

static bool fits(char c, bool first)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";

	return strchr(letters, c) && !(first && (c == '.' || c == '-'));
}

void tn_from_name(const char *path, uint64_t dev, uint64_t ino, char ret[TN_NAME_MAX + 1])
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	uint64_t hash = UINT64_C(14695981039346656037);
	uint64_t id[2] = {dev, ino};
	size_t used = 0;

	hash = mix(hash, id, sizeof(id));
	hash = mix(hash, path, strlen(path));
	for (; *base && used + TAIL < TN_NAME_MAX; base++) {
		ret[used] = fits(*base, used == 0) ? *base : '_';
		used++;
	}
	if (used == 0)
		ret[used++] = '_';
	snprintf(ret + used, TN_NAME_MAX + 1 - used, "-%08x", (unsigned)(hash ^ hash >> 32));
}
