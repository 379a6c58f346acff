/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lease-names.h"

#include "macros.h"
#include "stranger.h"
#include "sys.h"
#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

TN_SYSCALLS = {
	TN_CALL_READLINK,
	{SYS_unlinkat},
	{SYS_getdents64},
};

#define FRESH_NS INT64_C(60000000000) /* between a launcher's mkfifo and its open */
#define PRUNE_MAX 4096 /* looked at in one go: anybody may fill the system's directory */

static int open_leases(int runtime)
{
	return tn_open_beneath(runtime, "leases", O_RDONLY | O_DIRECTORY, 0);
}

void tn_lease_name_remove(int runtime, int lease)
{
	TN_AUTOFD leases = open_leases(runtime);
	char link[40], path[PATH_MAX], *name;
	struct stat named, held;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", lease);
	n = readlink(link, path, sizeof(path) - 1);
	if (leases < 0 || n < 0)
		return;
	path[n] = '\0';
	name = strrchr(path, '/');
	/* The path only proposes a name; that it is the very same FIFO decides. */
	if (name && tn_stranger_stat(lease, &held) == 0 &&
	    fstatat(leases, name + 1, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    named.st_dev == held.st_dev && named.st_ino == held.st_ino)
		unlinkat(leases, name + 1, 0);
}

static bool is_ended(int leases, const char *name)
{
	TN_AUTOFD place = tn_open_beneath(leases, name, O_PATH | O_NOFOLLOW, 0);
	TN_AUTOFD fifo = -1;
	struct stat st;
	char byte;

	if (place < 0 || fstat(place, &st) < 0 || !S_ISFIFO(st.st_mode) ||
	    tn_now() - st.st_ctim.tv_sec * INT64_C(1000000000) < FRESH_NS)
		return false;
	fifo = tn_reopen(place, O_RDONLY | O_NONBLOCK);
	return fifo >= 0 && read(fifo, &byte, 1) == 0;
}

void tn_lease_names_prune(int runtime)
{
	int leases = open_leases(runtime);
	DIR *dir = leases < 0 ? NULL : fdopendir(leases);
	struct dirent *entry;

	if (!dir) {
		tn_close(&leases);
		return;
	}
	for (int i = 0; i < PRUNE_MAX && (entry = readdir(dir)); i++)
		if (is_ended(dirfd(dir), entry->d_name))
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}
