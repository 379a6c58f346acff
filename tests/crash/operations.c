/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "operations.h"

#include "macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>

#define PAGE 4096

/* The text of a condition that does not hold is the report. */
#define MUST(condition) \
	do { \
		if (!(condition)) \
			return errno ? report(#condition, errno) : #condition; \
	} while (0)

static int held = -1; /* a descriptor that one operation's steps share */
static char buffer[64 * 1024];

static const char *report(const char *condition, int error)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s: errno %d (%s)", condition, error, strerror(error));
	return text;
}

/* --- helpers --------------------------------------------------------------------------------- */

static const char *nothing(void)
{
	return NULL;
}

static bool put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	tn_close(&fd);
	return done;
}

static bool holds(const char *name, const char *text)
{
	int fd = open(name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, buffer, sizeof(buffer));

	tn_close(&fd);
	return n == (ssize_t)strlen(text) && memcmp(buffer, text, (size_t)n) == 0;
}

static bool is_gone(const char *name)
{
	struct stat st;

	return lstat(name, &st) < 0 && errno == ENOENT;
}

static bool has_type(const char *name, mode_t type)
{
	struct stat st;

	return lstat(name, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

static const char *unlink_f(void)
{
	MUST(unlink("f") == 0);
	return NULL;
}

static const char *make_f(void)
{
	MUST(put("f", "first"));
	return NULL;
}

static const char *make_f_and_g(void)
{
	MUST(put("f", "first") && put("g", "second"));
	return NULL;
}

/* Three pages, open as `held`. */
static const char *make_big(void)
{
	memset(buffer, 'b', 3 * PAGE);
	held = open("f", O_RDWR | O_CREAT | O_EXCL, 0644);
	MUST(held >= 0 && write(held, buffer, 3 * PAGE) == 3 * PAGE);
	return NULL;
}

static const char *drop_big(void)
{
	tn_close(&held);
	return unlink_f();
}

static bool has_size(off_t size)
{
	struct stat st;

	return fstat(held, &st) == 0 && st.st_size == size;
}

static bool has_byte(off_t at, char byte)
{
	char found;

	return pread(held, &found, 1, at) == 1 && found == byte;
}

/* --- making ---------------------------------------------------------------------------------- */

static const char *act_create(void)
{
	held = open("f", O_RDWR | O_CREAT | O_EXCL, 0640);
	MUST(held >= 0);
	return NULL;
}

static const char *tidy_create(void)
{
	struct stat st;

	MUST(fstat(held, &st) == 0 && st.st_nlink == 1 && (st.st_mode & 07777) == 0640);
	return drop_big();
}

static const char *act_mkdir(void)
{
	MUST(mkdir("d", 0750) == 0);
	return NULL;
}

static const char *tidy_mkdir(void)
{
	MUST(has_type("d", S_IFDIR) && rmdir("d") == 0);
	return NULL;
}

static const char *act_symlink(void)
{
	MUST(symlink("where/it/leads", "f") == 0);
	return NULL;
}

static const char *tidy_symlink(void)
{
	MUST(readlink("f", buffer, sizeof(buffer)) == 14);
	return unlink_f();
}

static const char *act_fifo(void)
{
	MUST(mkfifo("f", 0600) == 0);
	return NULL;
}

static const char *tidy_fifo(void)
{
	MUST(has_type("f", S_IFIFO));
	return unlink_f();
}

static const char *act_bind(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "f"};

	held = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(bind(held, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(listen(held, 1) == 0);
	return NULL;
}

static const char *tidy_bind(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "f"};
	int client = socket(AF_UNIX, SOCK_STREAM, 0);
	int r = connect(client, (struct sockaddr *)&address, sizeof(address));

	close(client);
	MUST(r == 0);
	return drop_big();
}

static const char *act_link(void)
{
	MUST(link("f", "g") == 0);
	return NULL;
}

static const char *tidy_link(void)
{
	struct stat st;

	MUST(stat("g", &st) == 0 && st.st_nlink == 2 && holds("g", "first"));
	MUST(unlink("f") == 0 && holds("g", "first") && unlink("g") == 0);
	return NULL;
}

static const char *act_tmpfile(void)
{
	held = open(".", O_TMPFILE | O_RDWR, 0600);
	MUST(held >= 0 && write(held, "unnamed", 7) == 7);
	return NULL;
}

static const char *tidy_tmpfile(void)
{
	struct stat st;

	MUST(fstat(held, &st) == 0 && st.st_nlink == 0 && st.st_size == 7 && has_byte(6, 'd'));
	tn_close(&held);
	return NULL;
}

static const char *prepare_link_unnamed(void)
{
	return act_tmpfile();
}

static const char *act_link_unnamed(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	MUST(linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW) == 0);
	return NULL;
}

static const char *tidy_link_unnamed(void)
{
	MUST(holds("f", "unnamed"));
	return drop_big();
}

/* --- taking away and moving ------------------------------------------------------------------ */

static const char *tidy_gone(void)
{
	MUST(is_gone("f"));
	return NULL;
}

static const char *tidy_unlinked_open(void)
{
	struct stat st;

	MUST(is_gone("f") && fstat(held, &st) == 0 && st.st_nlink == 0);
	MUST(has_byte(3 * PAGE - 1, 'b') && pwrite(held, "x", 1, 4 * PAGE) == 1);
	tn_close(&held);
	return NULL;
}

static const char *act_close_last(void)
{
	/* Brings the FORGET of an unlinked file, for which nobody waits. */
	tn_close(&held);
	nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
	return NULL;
}

static const char *prepare_unlinked(void)
{
	const char *error = make_big();

	return error ? error : unlink_f();
}

static const char *prepare_other_name(void)
{
	MUST(put("f", "first") && link("f", "g") == 0);
	return NULL;
}

static const char *tidy_other_name(void)
{
	MUST(is_gone("f") && holds("g", "first") && unlink("g") == 0);
	return NULL;
}

static const char *prepare_dir(void)
{
	MUST(mkdir("d", 0755) == 0);
	return NULL;
}

static const char *act_rmdir(void)
{
	MUST(rmdir("d") == 0);
	return NULL;
}

static const char *tidy_rmdir(void)
{
	MUST(is_gone("d"));
	return NULL;
}

static const char *prepare_open_dir(void)
{
	MUST(mkdir("d", 0755) == 0 && (held = open("d", O_RDONLY | O_DIRECTORY)) >= 0);
	return NULL;
}

static const char *tidy_open_dir(void)
{
	MUST(is_gone("d") && mkdirat(held, "x", 0700) < 0 && errno == ENOENT);
	tn_close(&held);
	return NULL;
}

static const char *act_rmdir_full(void)
{
	MUST(rmdir("d") < 0 && errno == ENOTEMPTY);
	return NULL;
}

static const char *prepare_full_dir(void)
{
	MUST(mkdir("d", 0755) == 0 && put("d/x", "inside"));
	return NULL;
}

static const char *tidy_full_dir(void)
{
	MUST(holds("d/x", "inside") && unlink("d/x") == 0 && rmdir("d") == 0);
	return NULL;
}

static const char *act_rename(void)
{
	MUST(rename("f", "g") == 0);
	return NULL;
}

static const char *tidy_rename(void)
{
	MUST(is_gone("f") && holds("g", "first") && unlink("g") == 0);
	return NULL;
}

static const char *prepare_over_open(void)
{
	MUST(put("f", "first") && put("g", "second") && (held = open("g", O_RDWR)) >= 0);
	return NULL;
}

static const char *tidy_over_open(void)
{
	struct stat st;
	const char *error = tidy_rename();

	MUST(!error && has_byte(0, 's') && fstat(held, &st) == 0 && st.st_nlink == 0);
	tn_close(&held);
	return NULL;
}

static const char *act_rename_dir(void)
{
	MUST(rename("d", "e") == 0);
	return NULL;
}

static const char *tidy_rename_dir(void)
{
	MUST(is_gone("d") && holds("e/x", "inside") && unlink("e/x") == 0 && rmdir("e") == 0);
	return NULL;
}

static const char *prepare_across(void)
{
	MUST(mkdir("d", 0755) == 0 && mkdir("e", 0755) == 0 && put("d/x", "inside"));
	return NULL;
}

static const char *act_across(void)
{
	MUST(rename("d/x", "e/y") == 0);
	return NULL;
}

static const char *tidy_across(void)
{
	MUST(is_gone("d/x") && holds("e/y", "inside") && unlink("e/y") == 0);
	MUST(rmdir("d") == 0 && rmdir("e") == 0);
	return NULL;
}

static const char *act_exchange(void)
{
	MUST(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_EXCHANGE) == 0);
	return NULL;
}

static const char *tidy_exchange(void)
{
	MUST(holds("f", "second") && holds("g", "first") && unlink("g") == 0);
	return unlink_f();
}

static const char *act_noreplace(void)
{
	MUST(renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE) < 0 && errno == EEXIST);
	return NULL;
}

static const char *tidy_noreplace(void)
{
	MUST(holds("f", "first") && holds("g", "second") && unlink("g") == 0);
	return unlink_f();
}

/* --- data ------------------------------------------------------------------------------------ */

static const char *act_append(void)
{
	held = open("f", O_WRONLY | O_APPEND);
	MUST(held >= 0 && write(held, " and more", 9) == 9);
	tn_close(&held);
	return NULL;
}

static const char *tidy_append(void)
{
	MUST(holds("f", "first and more"));
	return unlink_f();
}

static const char *act_write(void)
{
	memset(buffer, 'w', sizeof(buffer));
	MUST(pwrite(held, buffer, 5 * PAGE, PAGE) == 5 * PAGE);
	return NULL;
}

static const char *tidy_write(void)
{
	MUST(has_size(6 * PAGE) && has_byte(PAGE - 1, 'b') && has_byte(PAGE, 'w'));
	return drop_big();
}

static const char *act_write_far(void)
{
	MUST(pwrite(held, "far", 3, 100 * PAGE) == 3);
	return NULL;
}

static const char *tidy_write_far(void)
{
	MUST(has_size(100 * PAGE + 3) && has_byte(50 * PAGE, 0) && has_byte(100 * PAGE, 'f'));
	return drop_big();
}

static const char *act_shrink(void)
{
	MUST(ftruncate(held, PAGE + 1) == 0);
	return NULL;
}

static const char *tidy_shrink(void)
{
	MUST(has_size(PAGE + 1) && has_byte(PAGE, 'b'));
	return drop_big();
}

static const char *act_grow(void)
{
	MUST(ftruncate(held, 10 * PAGE) == 0);
	return NULL;
}

static const char *tidy_grow(void)
{
	MUST(has_size(10 * PAGE) && has_byte(9 * PAGE, 0));
	return drop_big();
}

static const char *act_allocate(void)
{
	MUST(fallocate(held, 0, 0, 8 * PAGE) == 0);
	return NULL;
}

static const char *tidy_allocate(void)
{
	MUST(has_size(8 * PAGE) && has_byte(0, 'b') && has_byte(4 * PAGE, 0));
	return drop_big();
}

static const char *act_punch(void)
{
	MUST(fallocate(held, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE) == 0);
	return NULL;
}

static const char *tidy_punch(void)
{
	MUST(has_size(3 * PAGE) && has_byte(PAGE, 0) && has_byte(2 * PAGE, 'b'));
	return drop_big();
}

static bool can_zero;

/* Collapsing and inserting ranges never reach a FUSE daemon: the kernel refuses them. */
static const char *act_zero(void)
{
	can_zero = fallocate(held, FALLOC_FL_ZERO_RANGE, PAGE, 3 * PAGE) == 0;
	MUST(can_zero || errno == EOPNOTSUPP); /* as a tmpfs says */
	return NULL;
}

static const char *tidy_zero(void)
{
	MUST(!can_zero || (has_size(4 * PAGE) && has_byte(2 * PAGE, 0)));
	MUST(has_byte(PAGE - 1, 'b'));
	return drop_big();
}

/* --- attributes and looking ------------------------------------------------------------------ */

static const char *act_chmod(void)
{
	MUST(chmod("f", 0711) == 0);
	return NULL;
}

static const char *tidy_chmod(void)
{
	struct stat st;

	MUST(stat("f", &st) == 0 && (st.st_mode & 07777) == 0711);
	return unlink_f();
}

static const char *act_times(void)
{
	const struct timespec times[2] = {{.tv_sec = 1000, .tv_nsec = 7}, {.tv_sec = 2000}};

	MUST(utimensat(AT_FDCWD, "f", times, 0) == 0);
	return NULL;
}

static const char *tidy_times(void)
{
	struct stat st;

	MUST(stat("f", &st) == 0 && st.st_atim.tv_nsec == 7 && st.st_mtim.tv_sec == 2000);
	return unlink_f();
}

static bool has_xattrs;

static const char *act_setxattr(void)
{
	int r = setxattr("f", "user.name", "value", 5, XATTR_CREATE);

	has_xattrs = r == 0;
	MUST(r == 0 || errno == EOPNOTSUPP);
	return NULL;
}

static const char *tidy_setxattr(void)
{
	MUST(!has_xattrs || (getxattr("f", "user.name", buffer, 64) == 5));
	return unlink_f();
}

static const char *prepare_xattr(void)
{
	const char *error = make_f();

	return error ? error : act_setxattr();
}

static const char *act_replace_xattr(void)
{
	MUST(!has_xattrs || setxattr("f", "user.name", "a longer value", 14, XATTR_REPLACE) == 0);
	MUST(!has_xattrs ||
	     (setxattr("f", "user.name", "", 0, XATTR_CREATE) < 0 && errno == EEXIST));
	return NULL;
}

static const char *tidy_replace_xattr(void)
{
	MUST(!has_xattrs || getxattr("f", "user.name", buffer, 64) == 14);
	return unlink_f();
}

static const char *act_removexattr(void)
{
	MUST(!has_xattrs || removexattr("f", "user.name") == 0);
	MUST(!has_xattrs || (removexattr("f", "user.name") < 0 && errno == ENODATA));
	return NULL;
}

static const char *prepare_many(void)
{
	MUST(mkdir("d", 0755) == 0);
	for (int i = 0; i < 60; i++) {
		snprintf(buffer, 64, "d/%d", i);
		MUST(symlink("x", buffer) == 0);
	}
	return NULL;
}

static int list(DIR *stream)
{
	struct dirent *item;
	struct stat st;
	int n = 0;

	errno = 0;
	while ((item = readdir(stream))) {
		n++;
		if (fstatat(dirfd(stream), item->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
	}
	return errno ? -1 : n;
}

static const char *act_list(void)
{
	DIR *stream = opendir("d");
	int n = stream ? list(stream) : -1, error = errno;

	if (stream)
		closedir(stream);
	errno = n < 0 ? error : 0;
	MUST(n == 62);
	return NULL;
}

static const char *tidy_many(void)
{
	for (int i = 0; i < 60; i++) {
		snprintf(buffer, 64, "d/%d", i);
		MUST(unlink(buffer) == 0);
	}
	MUST(rmdir("d") == 0);
	return NULL;
}

static const char *act_read(void)
{
	int direct = open("f", O_RDONLY | O_DIRECT);
	static _Alignas(PAGE) char page[PAGE];
	ssize_t n = direct < 0 ? -1 : read(direct, page, sizeof(page));

	tn_close(&direct);
	MUST(n == 5 && memcmp(page, "first", 5) == 0);
	return NULL;
}

static const char *act_statfs(void)
{
	struct statvfs st;

	MUST(statvfs(".", &st) == 0 && st.f_blocks > 0);
	return NULL;
}

static const char *prepare_lock(void)
{
	const char *error = make_big();

	MUST(!error && flock(held, LOCK_EX) == 0);
	return NULL;
}

static const char *act_against_lock(void)
{
	int other = open("f", O_RDWR);
	int r = other < 0 ? 0 : flock(other, LOCK_EX | LOCK_NB), error = errno;

	tn_close(&other);
	errno = error;
	MUST(r < 0 && errno == EWOULDBLOCK);
	return NULL;
}

void operations_close(void)
{
	tn_close(&held);
}

const Operation operations[] = {
	{"create", nothing, act_create, tidy_create},
	{"mkdir", nothing, act_mkdir, tidy_mkdir},
	{"symlink", nothing, act_symlink, tidy_symlink},
	{"mkfifo", nothing, act_fifo, tidy_fifo},
	{"bind a socket", nothing, act_bind, tidy_bind},
	{"link", make_f, act_link, tidy_link},
	{"O_TMPFILE", nothing, act_tmpfile, tidy_tmpfile},
	{"link an unnamed file", prepare_link_unnamed, act_link_unnamed, tidy_link_unnamed},
	{"unlink", make_f, unlink_f, tidy_gone},
	{"unlink an open file", make_big, unlink_f, tidy_unlinked_open},
	{"unlink one of two names", prepare_other_name, unlink_f, tidy_other_name},
	{"last close of an unlinked file", prepare_unlinked, act_close_last, nothing},
	{"rmdir", prepare_dir, act_rmdir, tidy_rmdir},
	{"rmdir an open directory", prepare_open_dir, act_rmdir, tidy_open_dir},
	{"rmdir a full directory", prepare_full_dir, act_rmdir_full, tidy_full_dir},
	{"rename", make_f, act_rename, tidy_rename},
	{"rename over a file", make_f_and_g, act_rename, tidy_rename},
	{"rename over an open file", prepare_over_open, act_rename, tidy_over_open},
	{"rename a directory", prepare_full_dir, act_rename_dir, tidy_rename_dir},
	{"rename across directories", prepare_across, act_across, tidy_across},
	{"exchange", make_f_and_g, act_exchange, tidy_exchange},
	{"rename that must not replace", make_f_and_g, act_noreplace, tidy_noreplace},
	{"append", make_f, act_append, tidy_append},
	{"write", make_big, act_write, tidy_write},
	{"write far behind the end", make_big, act_write_far, tidy_write_far},
	{"truncate", make_big, act_shrink, tidy_shrink},
	{"truncate to more", make_big, act_grow, tidy_grow},
	{"fallocate", make_big, act_allocate, tidy_allocate},
	{"punch a hole", make_big, act_punch, tidy_punch},
	{"zero a range", make_big, act_zero, tidy_zero},
	{"chmod", make_f, act_chmod, tidy_chmod},
	{"utimensat", make_f, act_times, tidy_times},
	{"setxattr", make_f, act_setxattr, tidy_setxattr},
	{"setxattr of what is there", prepare_xattr, act_replace_xattr, tidy_replace_xattr},
	{"removexattr", prepare_xattr, act_removexattr, unlink_f},
	{"list with attributes", prepare_many, act_list, tidy_many},
	{"read", make_f, act_read, unlink_f},
	{"statfs", nothing, act_statfs, nothing},
	{"a lock of another", prepare_lock, act_against_lock, drop_big},
};
const size_t n_operations = TN_ARRAY_LEN(operations);
