/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "anchor.h"

#include "message.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* May its name be changed by whoever may write to those directories? */
static bool is_movable(const char *path, const TnWords *writable)
{
	for (size_t i = 0; i < writable->n; i++) {
		const char *dir = writable->items[i];

		if (strcmp(path, dir) != 0 && tn_path_is_below(path, dir))
			return true;
	}
	return false;
}

/* A mount point cannot be moved as it is. */
static bool is_mount_point(const char *path)
{
	char above[PATH_MAX];
	struct statx own, parent;

	return snprintf(above, sizeof(above), "%s/..", path) < (int)sizeof(above) &&
	       statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &own) == 0 &&
	       statx(AT_FDCWD, above, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &parent) == 0 &&
	       own.stx_mnt_id != parent.stx_mnt_id;
}

int tn_anchor_ancestors(const char *path, const TnWords *writable)
{
	char ancestor[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(ancestor, sizeof(ancestor), "%.*s", (int)(slash - path), path);
		if (!is_movable(ancestor, writable) || is_mount_point(ancestor))
			continue;
		if (mount(ancestor, ancestor, NULL, MS_BIND | MS_REC, NULL) < 0)
			return tn_fail(-errno, "cover: %s: cannot keep it in its place: %s",
				       ancestor, strerror(errno));
	}
	return 0;
}
