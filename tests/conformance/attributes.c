/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* stat, statx, chmod, chown, access, statfs. */
#include "conformance.h"

#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>

static void new_file(void)
{
	struct timespec before, after;
	struct stat st;

	clock_gettime(CLOCK_REALTIME_COARSE, &before);
	close(tc_make("f", 0666));
	clock_gettime(CLOCK_REALTIME, &after);
	st = tc_stat("f");
	equal(st.st_mode, S_IFREG | 0644);
	equal(st.st_nlink, 1);
	equal(st.st_size, 0);
	equal(st.st_blocks, 0);
	equal(st.st_uid, geteuid());
	equal(st.st_gid, getegid());
	equal(st.st_dev, tc_stat(".").st_dev);
	check(!tc_before(st.st_mtim, before) && !tc_before(after, st.st_mtim));
	check(tc_same_time(st.st_mtim, st.st_ctim));
	check(st.st_ino != 0 && st.st_ino != tc_stat(".").st_ino);
}

static void chmod_all(void)
{
	struct stat before;

	close(tc_make("f", 0644));
	ok(mkdir("d", 0755));
	for (mode_t mode = 0; mode <= 0777; mode += 037) {
		ok(chmod("f", mode));
		equal(tc_stat("f").st_mode, S_IFREG | mode);
	}
	ok(chmod("d", 01777));
	equal(tc_stat("d").st_mode, S_IFDIR | 01777);
	ok(chmod("f", 0600));
	before = tc_stat("f");
	tc_tick();
	ok(chmod("f", 0600)); /* the same: ctime moves all the same */
	check(tc_before(before.st_ctim, tc_stat("f").st_ctim));
	check(tc_same_time(before.st_mtim, tc_stat("f").st_mtim));
	int fd = (int)ok(open("f", O_RDONLY));

	ok(fchmod(fd, 0640));
	equal(tc_stat("f").st_mode, S_IFREG | 0640);
	error(chmod("missing", 0600), ENOENT);
	error(chmod("f/x", 0600), ENOTDIR);
	ok(mkfifo("p", 0600));
	ok(chmod("p", 0666));
	equal(tc_stat("p").st_mode, S_IFIFO | 0666);
}

static void chown_self(void)
{
	struct stat before;

	close(tc_make("f", 0644));
	before = tc_stat("f");
	tc_tick();
	ok(chown("f", geteuid(), getegid()));
	check(tc_before(before.st_ctim, tc_stat("f").st_ctim));
	ok(mkdir("d", 0755));
	before = tc_stat("f");
	tc_tick();
	ok(chown("f", (uid_t)-1, (gid_t)-1)); /* nothing changes but ctime */
	check(tc_before(before.st_ctim, tc_stat("f").st_ctim));
	before = tc_stat("d");
	tc_tick();
	ok(chown("d", (uid_t)-1, (gid_t)-1));
	check(tc_before(before.st_ctim, tc_stat("d").st_ctim));
	ok(chown("f", (uid_t)-1, getegid()));
	ok(symlink("missing", "l"));
	error(chown("l", geteuid(), getegid()), ENOENT);
	ok(lchown("l", geteuid(), getegid()));
	error(chown("missing", geteuid(), getegid()), ENOENT);
}

static void access_bits(void)
{
	close(tc_make("f", 0400));
	ok(access("f", R_OK));
	error(access("f", W_OK), EACCES);
	error(access("f", X_OK), EACCES);
	error(open("f", O_RDWR), EACCES);
	error(truncate("f", 0), EACCES);
	ok(chmod("f", 0200));
	error(access("f", R_OK), EACCES);
	ok(access("f", W_OK));
	error(open("f", O_RDONLY), EACCES);
	ok(chmod("f", 0));
	ok(access("f", F_OK));
	error(open("f", O_RDONLY), EACCES);
	ok(unlink("f")); /* the directory's permission counts */
}

static void birth_time(void)
{
	struct statx x, y;
	struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 6}};

	close(tc_make("f", 0644));
	ok(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS | STATX_BTIME, &x));
	check(x.stx_mask & STATX_BTIME);
	check(x.stx_btime.tv_sec == x.stx_mtime.tv_sec ||
	      x.stx_btime.tv_sec + 1 == x.stx_mtime.tv_sec);
	tc_tick();
	ok(utimensat(AT_FDCWD, "f", times, 0));
	ok(chmod("f", 0600));
	ok(rename("f", "g"));
	ok(statx(AT_FDCWD, "g", 0, STATX_BASIC_STATS | STATX_BTIME, &y));
	equal(y.stx_btime.tv_sec, x.stx_btime.tv_sec);
	equal(y.stx_btime.tv_nsec, x.stx_btime.tv_nsec);
	equal(y.stx_mtime.tv_sec, 6);
	equal(y.stx_mode, S_IFREG | 0600);
	check((y.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
}

static void statx_is_stat(void)
{
	static const char *const names[] = {"f", "d", "l", "p"};
	int fd = tc_make("f", 0640);

	tc_fill(fd, 0, 10000, 'x');
	ok(mkdir("d", 0750));
	ok(symlink("f", "l"));
	ok(mkfifo("p", 0600));
	for (int i = 0; i < 4; i++) {
		struct stat st = tc_stat(names[i]);
		struct statx x;

		ok(statx(AT_FDCWD, names[i], AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
			 STATX_BASIC_STATS | STATX_BTIME, &x));
		equal(x.stx_mode, st.st_mode);
		equal(x.stx_ino, st.st_ino);
		equal(x.stx_nlink, st.st_nlink);
		equal(x.stx_size, st.st_size);
		equal(x.stx_blocks, st.st_blocks);
		equal(x.stx_uid, st.st_uid);
		equal(x.stx_gid, st.st_gid);
		equal(x.stx_mtime.tv_sec, st.st_mtim.tv_sec);
		equal(x.stx_mtime.tv_nsec, st.st_mtim.tv_nsec);
		equal(x.stx_ctime.tv_nsec, st.st_ctim.tv_nsec);
		equal(makedev(x.stx_dev_major, x.stx_dev_minor), st.st_dev);
	}
	ok(unlink("f"));
	struct statx x;

	ok(statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | STATX_BTIME, &x));
	equal(x.stx_nlink, 0);
	equal(x.stx_size, 10000);
}

static void blocks(void)
{
	int fd = tc_make("f", 0644);

	tc_fill(fd, 0, 8192, 'x');
	equal(tc_fstat(fd).st_blocks, 16);
	tc_fill(fd, 8192, 1, 'x');
	equal(tc_fstat(fd).st_blocks, 24);
	ok(ftruncate(fd, 1));
	equal(tc_fstat(fd).st_blocks, 8);
	ok(ftruncate(fd, 1 << 30));
	equal(tc_fstat(fd).st_blocks, 8);
	equal(tc_fstat(fd).st_size, 1 << 30);
}

static void fsid(void)
{
	struct statfs a, b;

	ok(mkdir("d", 0755));
	ok(statfs(".", &a));
	ok(statfs("d", &b));
	check(memcmp(&a.f_fsid, &b.f_fsid, sizeof(a.f_fsid)) == 0);
	equal(a.f_namelen, 255);
	equal(a.f_bsize, 4096);
	check(a.f_bfree <= a.f_blocks && a.f_bavail <= a.f_bfree && a.f_ffree <= a.f_files);
	struct statvfs v;

	ok(statvfs(".", &v));
	check(v.f_flag & ST_NOSUID);
	check(v.f_flag & ST_NODEV);
	check(!(v.f_flag & ST_NOEXEC));
}

static void inode_numbers(void)
{
	enum { FILES = 300 };
	ino_t seen[FILES];
	char name[32];

	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		close(tc_make(name, 0644));
		seen[i] = tc_stat(name).st_ino;
		for (int k = 0; k < i; k++)
			check(seen[k] != seen[i]);
	}
	for (int i = 0; i < FILES; i++) { /* and stay */
		snprintf(name, sizeof(name), "f%d", i);
		equal(tc_stat(name).st_ino, seen[i]);
	}
}

const TcCase tc_attributes[] = {
	{"of a new file", new_file},
	{"chmod", chmod_all},
	{"chown to oneself", chown_self},
	{"access and the bits of a file", access_bits, TC_PLAIN},
	{"statx tells the birth time, which stays", birth_time},
	{"statx and stat agree", statx_is_stat},
	{"blocks are the allocated pages", blocks},
	{"statfs: one fsid, name length, flags", fsid},
	{"inode numbers are distinct and stay", inode_numbers},
	{0},
};
