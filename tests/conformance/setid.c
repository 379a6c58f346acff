/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Set-uid, set-gid and sticky bits, set-gid directories. */
#include "conformance.h"

#include <grp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>

static void own_chmod(void)
{
	static const mode_t modes[] = {04755, 06755, 02755, 02745, 07777, 01644};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		close(tc_make("f", 0644));
		ok(chmod("f", modes[i]));
		equal(tc_stat("f").st_mode & 07777, modes[i]);
		ok(unlink("f"));
	}
	umask(0);
	close(tc_make("g", 06755));
	equal(tc_stat("g").st_mode & 07777, 06755);
	ok(mkdir("d", 01755));
	equal(tc_stat("d").st_mode & 07777, 01755);
}

/* What remains of a mode when a process without privilege changes the file. */
static const struct {
	mode_t before, after;
} dropped[] = {
	{04755, 0755}, {06755, 0755}, {02755, 0755}, {04644, 0644}, {06777, 0777}, {0755, 0755},
};

static void expect_after(void (*change)(int fd))
{
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		int fd = tc_make("f", 0644);

		tc_fill(fd, 0, 5000, 'x');
		ok(chmod("f", dropped[i].before));
		equal(tc_stat("f").st_mode & 07777, dropped[i].before);
		change(fd);
		if ((tc_stat("f").st_mode & 07777) != dropped[i].after)
			tc_fail(__FILE__, __LINE__, "%04o became %04o, wanted %04o",
				dropped[i].before, tc_stat("f").st_mode & 07777, dropped[i].after);
		equal(tc_fstat(fd).st_mode & 07777, dropped[i].after);
		/* set again after the change: it stays, also for the next write's sake */
		ok(chmod("f", dropped[i].before));
		equal(tc_stat("f").st_mode & 07777, dropped[i].before);
		change(fd);
		equal(tc_stat("f").st_mode & 07777, dropped[i].after);
		close(fd);
		ok(unlink("f"));
	}
}

static void change_write(int fd)
{
	ok(pwrite(fd, "y", 1, 10));
}
static void change_append(int fd)
{
	tc_fill(fd, tc_fstat(fd).st_size, 4096, 'z');
}
static void change_truncate(int fd)
{
	ok(truncate("f", 100));
	(void)fd;
}
static void change_ftruncate(int fd)
{
	ok(ftruncate(fd, 100));
}
static void change_open_trunc(int fd)
{
	close((int)ok(open("f", O_WRONLY | O_TRUNC)));
	tc_fill(fd, 0, 10, 'x'); /* of an empty file O_TRUNC alone changes nothing */
}
static void change_fallocate(int fd)
{
	ok(fallocate(fd, 0, 0, 20000));
}

static void by_write(void)
{
	expect_after(change_write);
}
static void by_append(void)
{
	expect_after(change_append);
}
static void by_truncate(void)
{
	expect_after(change_truncate);
}
static void by_ftruncate(void)
{
	expect_after(change_ftruncate);
}
static void by_open_trunc(void)
{
	expect_after(change_open_trunc);
}
static void by_fallocate(void)
{
	expect_after(change_fallocate);
}

/*
 * Where the group may not execute, set-gid is no privilege: it stays for a member of the
 * group and goes for others.
 */
static void set_gid_without_execution(void)
{
	static void (*const changes[])(int fd) = {change_write, change_truncate, change_fallocate};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		for (int member = 0; member < 2; member++) {
			int fd = tc_make("f", 0666);

			ok(chmod("f", 0666));
			close(fd);
			ok(chown("f", TC_UID2, TC_GID));
			ok(chmod("f", 02666));
			tc_become(TC_UID, member ? TC_GID : TC_GID2);
			fd = (int)ok(open("f", O_RDWR));
			changes[i](fd);
			close(fd);
			tc_back();
			equal(tc_stat("f").st_mode & 07777, member ? 02666 : 0666);
			ok(unlink("f"));
		}
	}
}

static void by_another(void)
{
	int fd;

	umask(0);
	fd = tc_make("f", 0666);
	tc_fill(fd, 0, 100, 'x');
	ok(chmod("f", 06777));
	tc_become(TC_UID, TC_GID);
	int other = (int)ok(open("f", O_WRONLY));

	ok(write(other, "y", 1));
	tc_back();
	equal(tc_stat("f").st_mode & 07777, 0777);
	ok(chmod("f", 06777));
	tc_become(TC_UID, TC_GID);
	ok(truncate("f", 10));
	tc_back();
	equal(tc_stat("f").st_mode & 07777, 0777);
	/* root with its capabilities keeps them */
	ok(chmod("f", 06777));
	ok(write(fd, "z", 1));
	equal(tc_stat("f").st_mode & 07777, 06777);
}

static void by_chown(void)
{
	close(tc_make("f", 0644));
	ok(chmod("f", 06755));
	ok(chown("f", TC_UID, TC_GID));
	equal(tc_stat("f").st_mode & 07777, 0755);
	ok(chmod("f", 06755));
	tc_become(TC_UID, TC_GID);
	ok(chown("f", (uid_t)-1, TC_GID)); /* the owner, to his own group */
	tc_back();
	equal(tc_stat("f").st_mode & 07777, 0755);
	ok(mkdir("d", 0755));
	ok(chmod("d", 06755));
	ok(chown("d", TC_UID, TC_GID)); /* a directory keeps them */
	equal(tc_stat("d").st_mode & 07777, 06755);
}

static void by_shared_mapping(void)
{
	int fd = tc_make("f", 0644);
	char *map;

	tc_fill(fd, 0, 4096, 'x');
	ok(chmod("f", 04755));
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(map != MAP_FAILED);
	map[0] = 'y';
	ok(msync(map, 4096, MS_SYNC));
	/* no file system drops the bits here: the opener could write */
	equal(tc_stat("f").st_mode & 0777, 0755);
}

static void group_is_inherited(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "d/socket"};
	int fd;

	ok(mkdir("d", 0777));
	ok(chown("d", 0, TC_GID2));
	ok(chmod("d", 02777));
	tc_become(TC_UID, TC_GID);
	close(tc_make("d/file", 0644));
	ok(mkdir("d/dir", 0755));
	ok(symlink("x", "d/link"));
	ok(mkfifo("d/fifo", 0644));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ok(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	fd = open("d", O_TMPFILE | O_RDWR, 0644);
	ok(fd);
	equal(tc_fstat(fd).st_gid, TC_GID2);
	tc_back();
	equal(tc_stat("d/file").st_gid, TC_GID2);
	equal(tc_stat("d/file").st_uid, TC_UID);
	equal(tc_stat("d/dir").st_gid, TC_GID2);
	equal(tc_stat("d/dir").st_mode & 07777, 02755);
	equal(tc_stat("d/link").st_gid, TC_GID2);
	equal(tc_stat("d/fifo").st_gid, TC_GID2);
	equal(tc_stat("d/socket").st_gid, TC_GID2);
	equal(tc_stat("d/file").st_mode & 07777, 0644);
	tc_become(TC_UID, TC_GID);
	ok(mkdir("d/dir/below", 0700)); /* and on */
	tc_back();
	equal(tc_stat("d/dir/below").st_gid, TC_GID2);
	equal(tc_stat("d/dir/below").st_mode & 07777, 02700);
}

static void inherited_by_oneself(void)
{
	ok(mkdir("d", 0777));
	ok(chmod("d", 02777));
	ok(mkdir("d/e", 0700));
	equal(tc_stat("d/e").st_mode & 07777, 02700);
	close(tc_make("d/f", 0600));
	equal(tc_stat("d/f").st_mode & 07777, 0600);
	ok(mkdir("plain", 0755));
	ok(mkdir("plain/e", 0755));
	equal(tc_stat("plain/e").st_mode & 07777, 0755);
}

static void not_for_strangers(void)
{
	/* a new set-gid program for a group that one is not in */
	umask(0);
	ok(mkdir("d", 0777));
	ok(chown("d", 0, TC_GID2));
	ok(chmod("d", 02777));
	tc_become(TC_UID, TC_GID);
	close(tc_make("d/f", 02775));
	tc_back();
	equal(tc_stat("d/f").st_gid, TC_GID2);
	equal(tc_stat("d/f").st_mode & 07777, 0775);
	/* chmod by the owner, not a member of the file's group */
	tc_become(TC_UID, TC_GID);
	ok(chmod("d/f", 02775));
	tc_back();
	equal(tc_stat("d/f").st_mode & 07777, 0775);
	/* a member of the group, by a supplementary group, may */
	gid_t groups[] = {TC_GID2};

	ok(setgroups(1, groups));
	ok(setegid(TC_GID));
	ok(seteuid(TC_UID));
	ok(chmod("d/f", 02775));
	equal(tc_stat("d/f").st_mode & 07777, 02775);
	close(tc_make("d/g", 02775));
	tc_back();
	equal(tc_stat("d/g").st_mode & 07777, 02775);
}

static void nosuid(void)
{
	struct statvfs st;

	ok(statvfs(".", &st));
	check(st.f_flag & ST_NOSUID);
}

const TcCase tc_set_id[] = {
	{"one's own chmod sets every bit", own_chmod, TC_PLAIN},
	{"dropped by a write", by_write, TC_PLAIN},
	{"dropped by an append", by_append, TC_PLAIN},
	{"dropped by truncate", by_truncate, TC_PLAIN},
	{"dropped by ftruncate", by_ftruncate, TC_PLAIN},
	{"dropped by O_TRUNC and a write", by_open_trunc, TC_PLAIN},
	{"dropped by fallocate", by_fallocate, TC_PLAIN},
	{"set-gid without group execution: for members it stays", set_gid_without_execution,
	 TC_IDS},
	{"dropped by another user's change, kept by root's", by_another, TC_IDS},
	{"dropped by chown, kept on directories", by_chown, TC_IDS},
	{"a shared mapping leaves the mode readable", by_shared_mapping, TC_PLAIN},
	{"a set-gid directory gives its group and bit", group_is_inherited, TC_IDS},
	{"a set-gid directory of one's own", inherited_by_oneself},
	{"no set-gid file for a group one is not in", not_for_strangers, TC_IDS},
	{"the mount is nosuid all the same", nosuid},
	{0},
};
