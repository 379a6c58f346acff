/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "front-nest.h"

#include "macros.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

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

int tn_front_nest_find(const TnSplice *splice, const TnWords *globs, TnFrontNest *ret)
{
	const char *path = tn_front_nest_bind(splice, globs);
	TN_AUTOFD fd = -1;

	if (!path)
		return -ENOENT;
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return tn_fail(-EIO, "nest: %s: the directory that names it: %s", path,
			       strerror(errno));
	ret->path = path;
	ret->fd = tn_steal_fd(&fd);
	return 0;
}
