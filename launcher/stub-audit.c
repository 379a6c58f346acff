/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-audit.h"

#include "macros.h"
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct TnAuditMount {
	char *path;
	bool read_only;
	bool kernel; /* /proc, /dev and the like: no places for files of a user */
	size_t order;
};

typedef struct Reading {
	TnAudit *audit;
	bool no_memory;
} Reading;

static bool is_kernel_place(const TnMount *mount)
{
	static const char *const types[] = {"proc",   "sysfs",   "devpts",  "mqueue",
					    "cgroup", "cgroup2", "devtmpfs"};

	if (tn_path_is_below(mount->mount_point, "/proc") ||
	    tn_path_is_below(mount->mount_point, "/sys") ||
	    tn_path_is_below(mount->mount_point, "/dev"))
		return true;
	for (size_t i = 0; i < TN_ARRAY_LEN(types); i++) {
		/* /dev/null bound onto a file is of devtmpfs, and a deny mount */
		if (strcmp(mount->fs_type, types[i]) == 0 && strcmp(mount->root, "/") == 0)
			return true;
	}
	return false;
}

static bool add_mount(const TnMount *mount, void *data)
{
	Reading *reading = data;
	TnAudit *audit = reading->audit;
	struct TnAuditMount *more = reallocarray(audit->mounts, audit->n_mounts + 1, sizeof(*more));
	char *path = strdup(mount->mount_point);

	reading->no_memory = !more || !path;
	if (more)
		audit->mounts = more;
	if (reading->no_memory) {
		free(path);
		return false;
	}
	more[audit->n_mounts] = (struct TnAuditMount){.path = path,
						      .read_only = mount->read_only,
						      .kernel = is_kernel_place(mount),
						      .order = audit->n_mounts};
	audit->n_mounts++;
	return true;
}

static int compare_mounts(const void *a, const void *b)
{
	const struct TnAuditMount *left = a, *right = b;
	int order = strcmp(left->path, right->path);

	return order ? order : (left->order > right->order) - (left->order < right->order);
}

/* Of several mounts on one place the last is the one that counts. */
static void keep_topmost(TnAudit *audit)
{
	size_t kept = 0;

	if (audit->n_mounts)
		qsort(audit->mounts, audit->n_mounts, sizeof(*audit->mounts), compare_mounts);
	for (size_t i = 0; i < audit->n_mounts; i++) {
		if (i + 1 < audit->n_mounts &&
		    strcmp(audit->mounts[i].path, audit->mounts[i + 1].path) == 0)
			free(audit->mounts[i].path);
		else
			audit->mounts[kept++] = audit->mounts[i];
	}
	audit->n_mounts = kept;
}

/* The mount that path lies on; its own only when own is true. NULL: none. */
static const struct TnAuditMount *mount_of(const TnAudit *audit, const char *path, bool own)
{
	const struct TnAuditMount *found = NULL;

	for (size_t i = 0; i < audit->n_mounts; i++) {
		const struct TnAuditMount *mount = &audit->mounts[i];

		if (!tn_path_is_below(path, mount->path) ||
		    (!own && strcmp(path, mount->path) == 0))
			continue;
		if (!found || strlen(mount->path) > strlen(found->path))
			found = mount;
	}
	return found;
}

/* Read-only on its own account: all around it is writable, but for other deny mounts. */
static bool is_deny(const TnAudit *audit, const struct TnAuditMount *mount)
{
	const struct TnAuditMount *around = mount_of(audit, mount->path, false);

	if (!mount->read_only || mount->kernel || !around || around->kernel)
		return false;
	return !around->read_only || is_deny(audit, around);
}

static int list_writable(TnAudit *audit)
{
	audit->writable = calloc(audit->n_mounts + 1, sizeof(*audit->writable));
	if (!audit->writable)
		return -ENOMEM;
	for (size_t i = 0; i < audit->n_mounts; i++) {
		if (!audit->mounts[i].read_only && !audit->mounts[i].kernel)
			audit->writable[audit->n_writable++] = audit->mounts[i].path;
	}
	return 0;
}

int tn_audit_read(const char *mountinfo, TnAudit *ret)
{
	Reading reading = {.audit = ret};
	int result;

	*ret = (TnAudit){0};
	result = tn_mountinfo_walk(mountinfo, add_mount, &reading);
	if (result == 0 && reading.no_memory)
		result = -ENOMEM;
	if (result == 0 && ret->n_mounts == 0)
		result = -EBADMSG;
	if (result == 0) {
		keep_topmost(ret);
		result = list_writable(ret);
	}
	if (result < 0)
		tn_audit_clear(ret);
	return result;
}

void tn_audit_clear(TnAudit *audit)
{
	for (size_t i = 0; i < audit->n_mounts; i++)
		free(audit->mounts[i].path);
	free(audit->mounts);
	free(audit->writable);
	*audit = (TnAudit){0};
}

static bool has_path(const TnStubPaths *paths, const char *path)
{
	for (size_t i = 0; i < paths->n_paths; i++) {
		if (strcmp(paths->paths[i], path) == 0)
			return true;
	}
	return false;
}

size_t tn_audit_compare(const TnAudit *audit, const TnStubPaths *paths, const TnStubPaths *also,
			void (*denied_only)(void *data, const char *path),
			void (*profile_only)(void *data, const char *path), void *data)
{
	size_t n = 0;

	for (size_t i = 0; i < audit->n_mounts; i++) {
		const char *path = audit->mounts[i].path;

		if (!is_deny(audit, &audit->mounts[i]) || has_path(paths, path) ||
		    has_path(also, path))
			continue;
		denied_only(data, path);
		n++;
	}
	for (size_t i = 0; i < paths->n_paths; i++) {
		const struct TnAuditMount *mount = mount_of(audit, paths->paths[i], true);

		if (!mount || mount->read_only || mount->kernel)
			continue;
		profile_only(data, paths->paths[i]);
		n++;
	}
	return n;
}
