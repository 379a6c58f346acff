/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "front-nest.h"

#include "macros.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *tn_front_nest_bind(const TnSplice *splice, const TnWords *globs)
{
	for (size_t i = 0; i < globs->n; i++) {
		const char *best = NULL;

		for (size_t j = 0; j < splice->line->n_ops; j++) {
			const char *source = tn_splice_writable_dir(splice, j);

			if (!source || fnmatch(globs->items[i], source, FNM_NOESCAPE) != 0)
				continue;
			if (!best || strlen(source) < strlen(best))
				best = source;
		}
		if (best)
			return best;
	}
	return NULL;
}

/* FNV-1a: no secret, only the same digits for the same directory. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return hash;
}

void tn_front_nest_name(const char *path, dev_t dev, ino_t ino, char ret[TN_NAME_MAX + 1])
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	uint64_t hash = UINT64_C(14695981039346656037);
	uint64_t id[2] = {dev, ino};
	size_t used = 0;

	hash = mix(hash, id, sizeof(id));
	hash = mix(hash, path, strlen(path));
	for (; *base && used + 9 < TN_NAME_MAX; base++) {
		bool fits = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				   "._-",
				   *base);
		bool starts_badly = used == 0 && (*base == '.' || *base == '-');

		ret[used++] = (char)(fits && !starts_badly ? *base : '_');
	}
	if (used == 0)
		ret[used++] = '_';
	snprintf(ret + used, TN_NAME_MAX + 1 - used, "-%08x", (unsigned)(hash ^ hash >> 32));
}

int tn_front_nest_find(const TnSplice *splice, const TnWords *globs, TnFrontNest *ret)
{
	const char *path = tn_front_nest_bind(splice, globs);
	TN_AUTOFD fd = -1;
	struct stat st;

	if (!path)
		return -ENOENT;
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return tn_fail(-EIO, "nest: %s: the directory that names it: %s", path,
			       strerror(errno));
	tn_front_nest_name(path, st.st_dev, st.st_ino, ret->name);
	ret->path = path;
	ret->fd = tn_steal_fd(&fd);
	return 0;
}
