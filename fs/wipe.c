/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wipe.h"

#include "log.h"
#include "macros.h"
#include "sys.h"
#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

TN_SYSCALLS = {
#ifdef SYS_chmod
	{SYS_chmod},
#endif
	{SYS_fchmodat}, {SYS_fchmod}, {SYS_unlinkat}, {SYS_renameat2}, {SYS_getdents64},
};

#define STUCK_PREFIX "stuck-"
#define DEEP_PREFIX "deep-"
#define ID_DIGITS 16
#define SHARE 4U /* the part of the steps that one directory may take at a time */

uint64_t tn_wipe_id(const char *name)
{
	static const char *const prefixes[] = {STUCK_PREFIX, DEEP_PREFIX};
	static const char digits[] = "0123456789abcdef";
	uint64_t id = 0;

	for (size_t i = 0; i < TN_ARRAY_LEN(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
			name += strlen(prefixes[i]);
			break;
		}
	}
	for (int i = 0; i < ID_DIGITS; i++) {
		const char *digit = name[i] ? strchr(digits, name[i]) : NULL;

		if (!digit)
			return 0;
		id = id << 4 | (uint64_t)(digit - digits);
	}
	return name[ID_DIGITS] == '\0' || name[ID_DIGITS] == '-' ? id : 0;
}

bool tn_wipe_is_stuck(const char *name)
{
	return strncmp(name, STUCK_PREFIX, strlen(STUCK_PREFIX)) == 0;
}

static void tell(const TnWipe *wipe, TnWipeEvent event, uint64_t bytes)
{
	if (wipe->tell)
		wipe->tell(event, wipe->id, bytes, wipe->data);
}

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
	char target[64];
	int r;

	do {
		snprintf(target, sizeof(target), "%s%016" PRIx64 "-%" PRIx64, prefix, wipe->id,
			 wipe->serial++);
		r = renameat2(dir, name, wipe->trash, target, RENAME_NOREPLACE);
	} while (r < 0 && errno == EEXIST);
	if (r < 0)
		return -errno;
	wipe->moved++;
	return 0;
}

static bool is_reported(const TnWipe *wipe, uint64_t ino)
{
	for (unsigned i = 0; i < wipe->n_reported; i++) {
		if (wipe->reported[i] == ino)
			return true;
	}
	return false;
}

/*
 * An entry that can neither go nor be renamed is passed over from now on. False: it was
 * reported before, or there is no room to remember it.
 */
static bool note_reported(TnWipe *wipe, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	if (is_reported(wipe, st.st_ino) || wipe->n_reported == TN_WIPE_REPORTED_MAX)
		return false;
	wipe->reported[wipe->n_reported++] = st.st_ino;
	return true;
}

/* What cannot be removed gets a name that later runs pass over. False: it cannot even move. */
static bool set_aside(TnWipe *wipe, int dir, const char *name, int error)
{
	char shown[128];
	bool moved = move_to_top(wipe, dir, name, STUCK_PREFIX) == 0;

	if (!moved && !note_reported(wipe, dir, name))
		return false;
	wipe->stuck++;
	if (dir == wipe->trash)
		tell(wipe, TN_WIPE_STUCK, 0);
	tn_log(TN_LOG_WARNING,
	       "wipe: %s: %s (perhaps immutable: chattr -i, then tmpnest gc tries again)",
	       tn_log_escape(name, shown, sizeof(shown)), strerror(error));
	return moved;
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
		tell(wipe, TN_WIPE_REMOVED, 0);
		return true;
	}
	if (errno != ENOTEMPTY && errno != EEXIST)
		return set_aside(wipe, dir, name, errno);
	r = move_to_top(wipe, dir, name, DEEP_PREFIX);
	/* A directory that changes its parent must itself be writable (its ".." changes). */
	if (r == -EACCES && open_up(dir, name) == 0)
		r = move_to_top(wipe, dir, name, DEEP_PREFIX);
	if (r < 0)
		return set_aside(wipe, dir, name, -r);
	tell(wipe, TN_WIPE_MOVED, 0);
	return true;
}

/* Bytes that go with this name; 0 when the file has others. */
static uint64_t bytes_behind(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_nlink != 1)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

/* Removes one entry of dir, or moves it to the top. False when it does not go at all. */
static bool remove_child(TnWipe *wipe, int dir, const char *name, unsigned char type)
{
	uint64_t bytes = wipe->tell && type == DT_REG ? bytes_behind(dir, name) : 0;

	if (type != DT_DIR && unlinkat(dir, name, 0) == 0) {
		wipe->removed++;
		tell(wipe, TN_WIPE_REMOVED, bytes);
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
	uint64_t before = wipe->removed + wipe->moved;
	bool blocked = false;
	unsigned used = 0;

	if (!stream) {
		set_aside(wipe, wipe->trash, name, errno);
		return 1;
	}
	while (used < steps && (item = readdir(stream))) {
		if (is_dot(item->d_name))
			continue;
		if (is_reported(wipe, item->d_ino)) {
			blocked = true;
			continue;
		}
		blocked |= !remove_child(wipe, dirfd(stream), item->d_name, item->d_type);
		used++;
	}
	if (used >= steps && wipe->removed + wipe->moved > before)
		return used;
	if (unlinkat(wipe->trash, name, AT_REMOVEDIR) == 0) {
		wipe->removed++;
		tell(wipe, TN_WIPE_GONE, 0);
	} else if (blocked || (errno != ENOTEMPTY && errno != EEXIST)) {
		set_aside(wipe, wipe->trash, name, errno);
	}
	return used + 1;
}

int tn_wipe_some(TnWipe *wipe, unsigned steps)
{
	STREAM *stream = open_stream(wipe->trash, ".");
	uint64_t before = wipe->removed + wipe->moved;
	unsigned share = steps / SHARE + 1;
	struct dirent *item;
	unsigned used = 0;

	if (!stream)
		return -errno;
	while (used < steps && (item = readdir(stream))) {
		if (is_dot(item->d_name) || tn_wipe_is_stuck(item->d_name) ||
		    is_reported(wipe, item->d_ino))
			continue;
		wipe->id = tn_wipe_id(item->d_name);
		if (unlinkat(wipe->trash, item->d_name, 0) == 0) {
			wipe->removed++;
			tell(wipe, TN_WIPE_GONE, 0);
			used++;
		} else {
			unsigned left = steps - used;

			used += wipe_directory(wipe, item->d_name, left < share ? left : share);
		}
	}
	return wipe->removed + wipe->moved > before ? 1 : 0;
}

int tn_wipe_retry(TnWipe *wipe)
{
	STREAM *stream = open_stream(wipe->trash, ".");
	struct dirent *item;
	int n = 0;

	if (!stream)
		return -errno;
	wipe->stuck = 0;
	wipe->n_reported = 0;
	while ((item = readdir(stream))) {
		if (!tn_wipe_is_stuck(item->d_name))
			continue;
		wipe->id = tn_wipe_id(item->d_name);
		if (move_to_top(wipe, wipe->trash, item->d_name, DEEP_PREFIX) < 0)
			continue;
		tell(wipe, TN_WIPE_MOVED, 0);
		n++;
	}
	return n;
}
