/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-files.h"

#include "macros.h"
#include "stub-paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#define TEXT_MAX 64
/* A hold takes milliseconds: what was born later than this after its plan is not ours. */
#define PLAN_WINDOW_MS (60 * 1000)

int64_t tn_stub_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Where openat2(2) is filtered away: one component after the other. */
static int walk_without_links(const char *dir)
{
	TN_AUTOFD fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char part[NAME_MAX + 1];

	while (fd >= 0 && *dir) {
		size_t length = strcspn(dir, "/");

		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		if (length > 0) {
			int next;

			memcpy(part, dir, length);
			part[length] = '\0';
			next = openat(fd, part, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
			if (next < 0)
				return errno == ENOTDIR ? -ELOOP : -errno;
			tn_close(&fd);
			fd = next;
		}
		dir += length;
		dir += *dir == '/';
	}
	return fd < 0 ? -errno : tn_steal_fd(&fd);
}

int tn_stub_open_parent(const char *path, const char **ret_name)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	long fd;

	if (path[0] != '/' || !slash[1] || slash - path >= PATH_MAX - 1)
		return -EINVAL;
	memcpy(dir, path, (size_t)(slash - path) + 1);
	dir[slash - path + (slash == path)] = '\0';
	*ret_name = slash + 1;
	fd = syscall(SYS_openat2, AT_FDCWD, dir, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return walk_without_links(dir);
	return fd < 0 ? -errno : (int)fd;
}

int tn_stub_dir_of(TnStubDir *dir, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;

	if (length && dir->fd >= 0 && strncmp(dir->path, path, length) == 0 &&
	    dir->path[length] == '\0') {
		*ret_name = slash + 1;
		return dir->fd;
	}
	tn_close(&dir->fd);
	dir->fd = tn_stub_open_parent(path, ret_name);
	if (dir->fd >= 0)
		snprintf(dir->path, sizeof(dir->path), "%.*s", (int)length, path);
	return dir->fd;
}

void tn_stub_dir_clear(TnStubDir *dir)
{
	tn_close(&dir->fd);
}

static int look(int fd, const char *name, int flags, struct statx *ret)
{
	return statx(fd, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		     STATX_BASIC_STATS | STATX_BTIME, ret) < 0
		       ? -errno
		       : 0;
}

static int64_t nanoseconds(const struct statx_timestamp *time)
{
	return time->tv_sec * 1000000000LL + time->tv_nsec;
}

static int64_t birth(const struct statx *status)
{
	return status->stx_mask & STATX_BTIME ? nanoseconds(&status->stx_btime) : 0;
}

/* As Node.js computes it, so that the other runtime can compare for equality. */
static double milliseconds(const struct statx_timestamp *time)
{
	return (double)time->tv_sec * 1e3 + (double)time->tv_nsec / 1e6;
}

static void set_identity(TnLedgerEntry *entry, const struct statx *status)
{
	entry->dev = makedev(status->stx_dev_major, status->stx_dev_minor);
	entry->ino = status->stx_ino;
	entry->btime_ns = birth(status);
}

static int write_text(int fd, const char *text)
{
	size_t size = strlen(text);
	ssize_t written = write(fd, text, size);

	if (written == (ssize_t)size)
		return 0;
	return written < 0 ? -errno : -ENOSPC;
}

/* The caller's umask may have taken bits away that the sandbox's user needs. */
static int complete_file(int fd, const TnLedgerEntry *entry, const char *text, struct statx *ret)
{
	int looked;

	if (entry->filled) {
		int result = write_text(fd, text);

		if (result < 0)
			return result;
	}
	looked = look(fd, "", AT_EMPTY_PATH, ret);
	if (looked < 0 || (ret->stx_mode & 07777) == 0444)
		return looked;
	return fchmod(fd, 0444) < 0 ? -errno : 0;
}

int tn_stub_prepare(int parent_fd, TnLedgerEntry *entry)
{
	TN_AUTOFD fd = -1;
	struct statx status;

	entry->planned = true;
	entry->created_ms = tn_stub_now_ms();
	if (entry->kind == TN_STUB_DIR)
		return -ENOTSUP;
	fd = openat(parent_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0444);
	if (fd < 0 || complete_file(fd, entry, tn_stub_text(entry->path), &status) < 0)
		return -ENOTSUP;
	set_identity(entry, &status);
	return tn_steal_fd(&fd);
}

static int publish_file(int parent_fd, const char *name, const TnLedgerEntry *entry)
{
	TN_AUTOFD fd =
		openat(parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	struct statx status;
	int result;

	if (fd < 0)
		return -errno;
	result = complete_file(fd, entry, tn_stub_text(entry->path), &status);
	if (result < 0) {
		unlinkat(parent_fd, name, 0);
		return result;
	}
	return tn_steal_fd(&fd);
}

static int fill_dir(int dir_fd)
{
	TnLedgerEntry inner = {.filled = true, .path = TN_STUB_INNER_NAME};
	TN_AUTOFD fd = publish_file(dir_fd, TN_STUB_INNER_NAME, &inner);

	return fd < 0 ? fd : 0;
}

static int publish_dir(int parent_fd, const char *name, const TnLedgerEntry *entry)
{
	TN_AUTOFD fd = -1;
	int result = 0;

	if (mkdirat(parent_fd, name, 0755) < 0)
		return -errno;
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		result = -errno;
	else if (entry->filled)
		result = fill_dir(fd);
	if (result < 0) {
		unlinkat(parent_fd, name, AT_REMOVEDIR);
		return result;
	}
	return tn_steal_fd(&fd);
}

static int publish_prepared(int parent_fd, const char *name, int prepared)
{
	char by_fd[64];

	/* linkat(AT_EMPTY_PATH) needs a capability */
	snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", prepared);
	return linkat(AT_FDCWD, by_fd, parent_fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : prepared;
}

int tn_stub_publish(int parent_fd, const char *name, int prepared, TnLedgerEntry *entry)
{
	TN_AUTOFD unnamed = prepared < 0 ? -1 : prepared;
	TN_AUTOFD made = -1;
	struct statx status;
	int fd, result;

	if (unnamed >= 0)
		fd = publish_prepared(parent_fd, name, unnamed);
	else if (entry->kind == TN_STUB_DIR)
		fd = made = publish_dir(parent_fd, name, entry);
	else
		fd = made = publish_file(parent_fd, name, entry);
	if (fd < 0)
		return fd;
	result = look(fd, "", AT_EMPTY_PATH, &status);
	if (result < 0)
		return result;
	set_identity(entry, &status);
	entry->has_ctime_ms = entry->kind == TN_STUB_FILE;
	if (entry->has_ctime_ms) {
		entry->ctime_ms = milliseconds(&status.stx_ctime);
		entry->ctime_ns = nanoseconds(&status.stx_ctime);
	}
	entry->planned = false;
	return 0;
}

/* -ESTALE unless the file holds text, or nothing where that is allowed too. */
static int check_content(int dir_fd, const char *name, const char *text, bool empty_is_fine)
{
	TN_AUTOFD fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char content[TEXT_MAX];
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, content, sizeof(content));
	if (got < 0)
		return -errno;
	if (got == 0 && empty_is_fine)
		return 0;
	return (size_t)got == strlen(text) && memcmp(content, text, (size_t)got) == 0 ? 0 : -ESTALE;
}

static bool change_time_differs(const TnLedgerEntry *entry, const struct statx *status)
{
	if (entry->ctime_ns)
		return entry->ctime_ns != nanoseconds(&status->stx_ctime);
	if (!entry->has_ctime_ms)
		return false;
	/* others may have stored it rounded to whole milliseconds */
	if (entry->ctime_ms == floor(entry->ctime_ms))
		return floor(milliseconds(&status->stx_ctime)) != entry->ctime_ms;
	return fabs(milliseconds(&status->stx_ctime) - entry->ctime_ms) > 0.001;
}

/* A stub whose maker died before it could note what it made: told by owner, mode and age. */
static bool fits_plan(const TnLedgerEntry *entry, const struct statx *status)
{
	int64_t born = birth(status) ? birth(status) : nanoseconds(&status->stx_ctime);
	int64_t planned = entry->created_ms * 1000000LL;
	unsigned mode = entry->kind == TN_STUB_DIR ? 0755 : 0444;

	/* times of files come from a clock that lags by up to one tick (10 ms) */
	return status->stx_uid == geteuid() && (status->stx_mode & 07777 & ~mode) == 0 &&
	       born >= planned - 10 * 1000000LL && born <= planned + PLAN_WINDOW_MS * 1000000LL;
}

static int check_file(int parent_fd, const char *name, const TnLedgerEntry *entry,
		      const struct statx *status)
{
	const char *text = tn_stub_text(entry->path);
	bool may_be_empty = !entry->filled || entry->planned;

	/* nobody makes a stub that may be written: what a forged entry names is somebody's */
	if (!S_ISREG(status->stx_mode) || (status->stx_mode & 0333) != 0 ||
	    status->stx_nlink != 1 || status->stx_size > TEXT_MAX ||
	    change_time_differs(entry, status))
		return -ESTALE;
	if (status->stx_size == 0)
		return may_be_empty ? 0 : -ESTALE;
	return entry->filled ? check_content(parent_fd, name, text, may_be_empty) : -ESTALE;
}

/* Empty but for our own file; *ret_filled says whether that is there. */
static int check_dir(int parent_fd, const char *name, bool *ret_filled)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	int result = 0;
	DIR *dir;

	*ret_filled = false;
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		result = -errno;
		tn_close(&fd);
		return result;
	}
	while (result == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		result = -ESTALE;
		if (strcmp(entry->d_name, TN_STUB_INNER_NAME) == 0) {
			*ret_filled = true;
			result = check_content(dirfd(dir), TN_STUB_INNER_NAME,
					       tn_stub_text(TN_STUB_INNER_NAME), true);
		}
	}
	closedir(dir);
	return result;
}

int tn_stub_check(int parent_fd, const char *name, const TnLedgerEntry *entry)
{
	struct statx status;
	int result = look(parent_fd, name, 0, &status);

	if (result < 0)
		return result;
	if (entry->ino == 0 && !fits_plan(entry, &status))
		return -ESTALE;
	if (entry->ino != 0 && (status.stx_ino != entry->ino ||
				makedev(status.stx_dev_major, status.stx_dev_minor) != entry->dev))
		return -ESTALE;
	if (entry->btime_ns && birth(&status) && birth(&status) != entry->btime_ns)
		return -ESTALE;
	if (entry->kind == TN_STUB_FILE)
		return check_file(parent_fd, name, entry, &status);
	return S_ISDIR(status.stx_mode) ? 0 : -ESTALE;
}

static int remove_dir(int parent_fd, const char *name)
{
	bool filled;
	int result = check_dir(parent_fd, name, &filled);

	if (result < 0)
		return result;
	if (filled) {
		TN_AUTOFD fd =
			openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 || unlinkat(fd, TN_STUB_INNER_NAME, 0) < 0)
			return -errno;
	}
	return unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int tn_stub_remove(int parent_fd, const char *name, const TnLedgerEntry *entry)
{
	int result = tn_stub_check(parent_fd, name, entry);

	if (result < 0)
		return result;
	if (entry->kind == TN_STUB_DIR)
		return remove_dir(parent_fd, name);
	return unlinkat(parent_fd, name, 0) < 0 ? -errno : 0;
}

static bool dir_is_empty(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n_entries = 0;

	if (!dir) {
		tn_close(&fd);
		return false;
	}
	while (n_entries < 3 && readdir(dir))
		n_entries++;
	closedir(dir);
	return n_entries <= 2;
}

bool tn_stub_is_lasting(int parent_fd, const char *name)
{
	struct statx status;

	if (look(parent_fd, name, 0, &status) < 0)
		return false;
	if (S_ISREG(status.stx_mode))
		return status.stx_size > 0;
	return !S_ISDIR(status.stx_mode) || !dir_is_empty(parent_fd, name);
}
