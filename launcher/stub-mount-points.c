/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "macros.h"
#include "stub-holder.h"
#include "stub-mountinfo.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Most processes share a few mount namespaces: each table is read once. */
#define NAMESPACES_MAX 256

typedef struct Scan {
	const TnSelf *self;
	TnMountPoints *points;
	ino_t namespaces[NAMESPACES_MAX];
	size_t n_namespaces;
	bool no_memory;
} Scan;

static bool add_mount_point(const TnMount *mount, void *data)
{
	Scan *scan = data;
	TnMountPoints *points = scan->points;

	if (points->n_paths == points->n_allocated) {
		size_t more = points->n_allocated ? points->n_allocated * 2 : 256;
		char **paths = reallocarray(points->paths, more, sizeof(*paths));

		if (!paths) {
			scan->no_memory = true;
			return false;
		}
		points->paths = paths;
		points->n_allocated = more;
	}
	points->paths[points->n_paths] = strdup(mount->mount_point);
	scan->no_memory = !points->paths[points->n_paths];
	points->n_paths += !scan->no_memory;
	return !scan->no_memory;
}

static bool is_known_namespace(Scan *scan, const char *pid)
{
	char path[PATH_MAX];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s/ns/mnt", scan->self->proc, pid);
	if (stat(path, &status) < 0)
		return false;
	for (size_t i = 0; i < scan->n_namespaces; i++) {
		if (scan->namespaces[i] == status.st_ino)
			return true;
	}
	if (scan->n_namespaces < NAMESPACES_MAX)
		scan->namespaces[scan->n_namespaces++] = status.st_ino;
	return false;
}

static void scan_process(Scan *scan, int proc_fd, const char *pid)
{
	char path[PATH_MAX];
	struct stat status;
	int result;

	if (fstatat(proc_fd, pid, &status, 0) < 0 || status.st_uid != geteuid() ||
	    is_known_namespace(scan, pid))
		return;
	snprintf(path, sizeof(path), "%s/%s/mountinfo", scan->self->proc, pid);
	result = tn_mountinfo_walk(path, add_mount_point, scan);
	/* EINVAL: the process has no namespace any more */
	if (result < 0 && result != -ENOENT && result != -ESRCH && result != -EINVAL)
		scan->points->complete = false;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int tn_mount_points_scan(const TnSelf *self, TnMountPoints *ret)
{
	Scan scan = {.self = self, .points = ret};
	struct dirent *entry;
	DIR *dir = opendir(self->proc);

	*ret = (TnMountPoints){.complete = true};
	if (!dir)
		return -errno;
	while (!scan.no_memory && (entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			scan_process(&scan, dirfd(dir), entry->d_name);
	}
	closedir(dir);
	if (scan.no_memory) {
		tn_mount_points_clear(ret);
		return -ENOMEM;
	}
	if (ret->n_paths)
		qsort(ret->paths, ret->n_paths, sizeof(*ret->paths), compare_paths);
	return 0;
}

TnHolderState tn_mount_points_state(const TnMountPoints *points, const char *path)
{
	if (points->n_paths &&
	    bsearch(&path, points->paths, points->n_paths, sizeof(*points->paths), compare_paths))
		return TN_HOLDER_ALIVE;
	return points->complete ? TN_HOLDER_DEAD : TN_HOLDER_UNKNOWN;
}

void tn_mount_points_clear(TnMountPoints *points)
{
	for (size_t i = 0; i < points->n_paths; i++)
		free(points->paths[i]);
	free(points->paths);
	*points = (TnMountPoints){0};
}
