/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wipe.h"

#include "log.h"
#include "macros.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STUCK_PREFIX "stuck-"

static DIR *open_stream(int dir, const char *name)
{
	int fd = tn_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *stream;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	stream = fdopendir(fd);
	if (!stream)
		close(fd);
	return stream;
}

static void close_stream(DIR **stream)
{
	if (*stream)
		closedir(*stream);
}
#define STREAM __attribute__((cleanup(close_stream))) DIR

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A fresh name at the top of the trash for dir/name. 0 or -errno. */
static int move_to_top(TnWipe *wipe, int dir, const char *name, const char *prefix)
{
	char target[48];
	int r;

	do {
		snprintf(target, sizeof(target), "%s%" PRIx64, prefix, wipe->serial++);
		r = renameat2(dir, name, wipe->trash, target, RENAME_NOREPLACE);
	} while (r < 0 && errno == EEXIST);
	if (r < 0)
		return -errno;
	wipe->moved++;
	return 0;
}

/* What cannot be removed gets a name that later runs pass over. False: it cannot even move. */
static bool set_aside(TnWipe *wipe, int dir, const char *name, int error)
{
	char shown[128];

	wipe->stuck++;
	tn_log(TN_LOG_WARNING, "wipe: %s: %s (remove it by hand; chattr -i may help)",
	       tn_log_escape(name, shown, sizeof(shown)), strerror(error));
	return move_to_top(wipe, dir, name, STUCK_PREFIX) == 0;
}

/* Gives a directory all of its owner's permissions; links are not followed. 0 or -errno. */
static int open_up(int dir, const char *name)
{
	TN_AUTOFD fd = tn_open_beneath(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	char path[32];

	if (fd < 0)
		return fd;
	/* fchmod(2) refuses O_PATH descriptors; the way through /proc does not. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, 0700) < 0 ? -errno : 0;
}

/*
 * Removes a directory, or moves it to the top when it has content. False when it does not
 * go at all.
 */
static bool remove_child_directory(TnWipe *wipe, int dir, const char *name)
{
	int r;

	if (unlinkat(dir, name, AT_REMOVEDIR) == 0) {
		wipe->removed++;
		return true;
	}
	if (errno != ENOTEMPTY && errno != EEXIST)
		return set_aside(wipe, dir, name, errno);
	r = move_to_top(wipe, dir, name, "deep-");
	/* A directory that changes its parent must itself be writable (its ".." changes). */
	if (r == -EACCES && open_up(dir, name) == 0)
		r = move_to_top(wipe, dir, name, "deep-");
	return r == 0 || set_aside(wipe, dir, name, -r);
}

/* Removes one entry of dir, or moves it to the top. False when it does not go at all. */
static bool remove_child(TnWipe *wipe, int dir, const char *name, unsigned char type)
{
	if (type != DT_DIR && unlinkat(dir, name, 0) == 0) {
		wipe->removed++;
		return true;
	}
	if (type != DT_DIR && errno != EISDIR)
		return set_aside(wipe, dir, name, errno);
	return remove_child_directory(wipe, dir, name);
}

/* Opens a directory of the trash, whose owner may have taken every permission from it. */
static DIR *open_to_empty(TnWipe *wipe, const char *name)
{
	DIR *stream = open_stream(wipe->trash, name);
	struct stat st;

	if (!stream && errno == EACCES && open_up(wipe->trash, name) == 0)
		return open_stream(wipe->trash, name);
	if (stream && fstat(dirfd(stream), &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(dirfd(stream), 0700); /* if it fails, removing entries fails */
	return stream;
}

/* Empties and removes one directory of the trash. Steps used. */
static unsigned wipe_directory(TnWipe *wipe, const char *name, unsigned steps)
{
	STREAM *stream = open_to_empty(wipe, name);
	struct dirent *item;
	bool blocked = false;
	unsigned used = 0;

	if (!stream) {
		set_aside(wipe, wipe->trash, name, errno);
		return 1;
	}
	while (used < steps && (item = readdir(stream))) {
		if (is_dot(item->d_name))
			continue;
		blocked |= !remove_child(wipe, dirfd(stream), item->d_name, item->d_type);
		used++;
	}
	if (used >= steps)
		return used;
	if (unlinkat(wipe->trash, name, AT_REMOVEDIR) == 0)
		wipe->removed++;
	else if (blocked || (errno != ENOTEMPTY && errno != EEXIST))
		set_aside(wipe, wipe->trash, name, errno);
	return used + 1;
}

int tn_wipe_some(TnWipe *wipe, unsigned steps)
{
	STREAM *stream = open_stream(wipe->trash, ".");
	uint64_t before = wipe->removed + wipe->moved;
	struct dirent *item;
	unsigned used = 0;

	if (!stream)
		return -errno;
	while (used < steps && (item = readdir(stream))) {
		if (is_dot(item->d_name) ||
		    strncmp(item->d_name, STUCK_PREFIX, strlen(STUCK_PREFIX)) == 0)
			continue;
		if (unlinkat(wipe->trash, item->d_name, 0) == 0) {
			wipe->removed++;
			used++;
		} else {
			used += wipe_directory(wipe, item->d_name, steps - used);
		}
	}
	return wipe->removed + wipe->moved > before ? 1 : 0;
}
