/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several users in one /tmp. */
#include "conformance.h"

#include <grp.h>
#include <sys/xattr.h>

static void made_by(void)
{
	tc_become(TC_UID, TC_GID);
	close(tc_make("f", 0640));
	ok(mkdir("d", 0750));
	ok(symlink("x", "l"));
	tc_back();
	tc_become(TC_UID2, TC_GID2);
	close(tc_make("g", 0640));
	tc_back();
	close(tc_make("h", 0640));
	equal(tc_stat("f").st_uid, TC_UID);
	equal(tc_stat("f").st_gid, TC_GID);
	equal(tc_stat("d").st_uid, TC_UID);
	equal(tc_stat("l").st_uid, TC_UID);
	equal(tc_stat("g").st_uid, TC_UID2);
	equal(tc_stat("h").st_uid, 0);
	equal(tc_stat("h").st_gid, 0);
}

static void classes(void)
{
	static const struct {
		mode_t mode;
		bool owner, group, other; /* may read */
	} rows[] = {
		{0444, true, true, true},   {0400, true, false, false},  {0040, false, true, false},
		{0004, false, false, true}, {0440, true, true, false},   {0044, false, true, true},
		{0404, true, false, true},  {0000, false, false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		close(tc_make("f", 0600));
		ok(chown("f", TC_UID, TC_GID));
		ok(chmod("f", rows[i].mode));
		for (int who = 0; who < 3; who++) {
			bool may = who == 0   ? rows[i].owner
				   : who == 1 ? rows[i].group
					      : rows[i].other;
			int fd;

			tc_become(who == 0 ? TC_UID : TC_UID2, who == 2 ? TC_GID2 : TC_GID);
			fd = open("f", O_RDONLY);
			if ((fd >= 0) != may)
				tc_fail(__FILE__, __LINE__, "mode %04o, class %d: %s", rows[i].mode,
					who, fd < 0 ? strerrorname_np(errno) : "opened");
			if (fd >= 0)
				close(fd);
			tc_back();
		}
		ok(unlink("f"));
	}
}

static void supplementary_groups(void)
{
	gid_t groups[] = {TC_GID2};

	ok(mkdir("d", 0770));
	ok(chown("d", 0, TC_GID2));
	ok(chmod("d", 0770));
	ok(setgroups(1, groups));
	ok(setegid(TC_GID));
	ok(seteuid(TC_UID));
	close(tc_make("d/f", 0660)); /* allowed by the second group alone */
	ok(mkdir("d/e", 0770));
	ok(symlink("x", "d/l"));
	ok(link("d/f", "d/g"));
	ok(rename("d/g", "d/h"));
	int fd = open("d", O_TMPFILE | O_RDWR, 0600);

	ok(fd);
	ok(linkat(AT_FDCWD, "d/f", AT_FDCWD, "d/i", 0));
	ok(unlink("d/h"));
	/* one's own file to a group one is in, not to another */
	ok(chown("d/f", (uid_t)-1, TC_GID2));
	error(chown("d/f", (uid_t)-1, TC_GID2 + 1), EPERM);
	tc_back();
	equal(tc_stat("d/f").st_uid, TC_UID);
	equal(tc_stat("d/f").st_gid, TC_GID2);
}

static void not_mine(void)
{
	close(tc_make("f", 0644));
	ok(mkdir("d", 0755));
	tc_become(TC_UID, TC_GID);
	error(chmod("f", 0777), EPERM);
	error(chown("f", TC_UID, (gid_t)-1), EPERM);
	error(chown("f", (uid_t)-1, TC_GID), EPERM);
	error(open("f", O_WRONLY), EACCES);
	error(open("d/x", O_RDWR | O_CREAT, 0644), EACCES);
	error(setxattr("f", "user.x", "1", 1, 0), EACCES);
	error(truncate("f", 0), EACCES);
	close(tc_make("mine", 0644));
	error(chown("mine", TC_UID2, (gid_t)-1), EPERM);
	error(chown("mine", (uid_t)-1, TC_GID2), EPERM);
	tc_back();
	ok(chown("mine", TC_UID2, TC_GID2));
	equal(tc_stat("mine").st_uid, TC_UID2);
}

/* A directory that the maker himself cannot use any more: root goes on. */
static void closed_directories(void)
{
	tc_become(TC_UID, TC_GID);
	ok(mkdir("d", 0700));
	close(tc_make("d/f", 0600));
	ok(chmod("d", 0));
	tc_back();
	equal(tc_count("d"), 1);
	close(tc_make("d/root", 0600));
	ok(rename("d/f", "d/g"));
	ok(unlink("d/g"));
}

static void mode_zero_file(void)
{
	int fd = tc_make("f", 0);

	/* the descriptor was opened with the file's making; its mode does not matter */
	tc_fill(fd, 0, 10000, 'x');
	check(tc_is_filled(fd, 0, 10000, 'x'));
	ok(ftruncate(fd, 5));
	ok(fallocate(fd, 0, 0, 50000));
	equal(tc_fstat(fd).st_mode, S_IFREG);
	error(open("f", O_RDONLY), EACCES);
	ok(rename("f", "g"));
	ok(link("g", "h"));
	ok(unlink("g"));
	ok(unlink("h"));
	check(tc_is_filled(fd, 0, 5, 'x'));
}

const TcCase tc_owners[] = {
	{"a new entry belongs to its maker", made_by, TC_IDS},
	{"owner, group and other are told apart", classes, TC_IDS},
	{"supplementary groups count", supplementary_groups, TC_IDS},
	{"what only an owner may do", not_mine, TC_IDS},
	{"root works in a directory closed to its owner", closed_directories, TC_IDS},
	{"an open file of mode 0", mode_zero_file, TC_PLAIN},
	{0},
};
