/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Extended attributes and ACLs. */
#include "conformance.h"

#include <stdlib.h>
#include <sys/xattr.h>

static void need_xattrs(void)
{
	close(tc_make("probe", 0644));
	if (setxattr("probe", "user.probe", "1", 1, 0) < 0 && errno == EOPNOTSUPP)
		tc_skip("no user.* attributes here");
	ok(unlink("probe"));
}

static void basics(void)
{
	char value[16], list[64];

	need_xattrs();
	close(tc_make("f", 0644));
	equal(listxattr("f", NULL, 0), 0);
	error(getxattr("f", "user.a", value, sizeof(value)), ENODATA);
	error(removexattr("f", "user.a"), ENODATA);
	error(setxattr("f", "user.a", "x", 1, XATTR_REPLACE), ENODATA);
	ok(setxattr("f", "user.a", "hello", 5, XATTR_CREATE));
	error(setxattr("f", "user.a", "x", 1, XATTR_CREATE), EEXIST);
	equal(getxattr("f", "user.a", value, sizeof(value)), 5);
	check(memcmp(value, "hello", 5) == 0);
	equal(getxattr("f", "user.a", NULL, 0), 5);
	error(getxattr("f", "user.a", value, 4), ERANGE);
	ok(setxattr("f", "user.a", "bye", 3, XATTR_REPLACE));
	equal(getxattr("f", "user.a", value, sizeof(value)), 3);
	ok(setxattr("f", "user.empty", "", 0, 0));
	equal(getxattr("f", "user.empty", value, sizeof(value)), 0);
	equal(listxattr("f", list, sizeof(list)),
	      (int)sizeof("user.a") + (int)sizeof("user.empty"));
	error(listxattr("f", list, 5), ERANGE);
	ok(removexattr("f", "user.empty"));
	equal(listxattr("f", list, sizeof(list)), (int)sizeof("user.a"));
	check(strcmp(list, "user.a") == 0);
	error(getxattr("missing", "user.a", value, 1), ENOENT);
	error(setxattr("f", "user.a", "x", 1, XATTR_CREATE | XATTR_REPLACE), EEXIST);
}

static void follow_the_inode(void)
{
	char value[16];
	int fd;

	need_xattrs();
	fd = tc_make("f", 0644);
	ok(mkdir("d", 0755));
	ok(setxattr("d", "user.dir", "1", 1, 0));
	ok(fsetxattr(fd, "user.a", "v", 1, 0));
	ok(link("f", "d/g"));
	ok(rename("f", "h"));
	equal(getxattr("d/g", "user.a", value, 1), 1);
	equal(getxattr("h", "user.a", value, 1), 1);
	ok(unlink("h"));
	ok(unlink("d/g"));
	equal(fgetxattr(fd, "user.a", value, 1), 1);
	ok(fsetxattr(fd, "user.b", "w", 1, 0));
	equal(getxattr("d", "user.dir", value, 1), 1);
}

static void bounds(void)
{
	static char big[70000];
	char name[300] = "user.", value[16];

	need_xattrs();
	close(tc_make("f", 0644));
	memset(name + 5, 'n', 250);
	ok(setxattr("f", name, "1", 1, 0)); /* 255 bytes */
	equal(getxattr("f", name, value, 1), 1);
	ok(removexattr("f", name));
	name[255] = 'n';
	error(setxattr("f", name, "1", 1, 0), ERANGE);
	error(setxattr("f", "user.big", big, 65537, 0), E2BIG);
	error(setxattr("f", "", "1", 1, 0), ERANGE);
	error(setxattr("f", "user.", "1", 1, 0), EINVAL);
	ok(setxattr("f", "user.kilo", big, 1000, 0));
	equal(getxattr("f", "user.kilo", big, sizeof(big)), 1000);
}

static void kinds(void)
{
	need_xattrs();
	ok(symlink("x", "l"));
	ok(mkfifo("p", 0644));
	error(lsetxattr("l", "user.a", "1", 1, 0), EPERM); /* user.* is for files and directories */
	error(setxattr("p", "user.a", "1", 1, 0), EPERM);
	error(setxattr("p", "nonsense.a", "1", 1, 0), EOPNOTSUPP);
	equal(llistxattr("l", NULL, 0), 0);
}

static void other_spaces(void)
{
	char value[64];

	close(tc_make("f", 0644));
	error(setxattr("f", "nonsense.a", "1", 1, 0), EOPNOTSUPP);
	error(getxattr("f", "nonsense.a", value, sizeof(value)), EOPNOTSUPP);
	error(setxattr("f", "noprefix", "1", 1, 0), EOPNOTSUPP);
	if (tc->view) {
		equal(setxattr("f", "trusted.a", "1", 1, 0), -1);
		check(errno == EPERM || errno == EOPNOTSUPP); /* by the caller's capabilities */
		equal(listxattr("f", value, sizeof(value)), 0);
	}
}

/* The kernel's form of an ACL: that of mode 0640, and one more user with all rights. */
static size_t make_acl(unsigned char *acl)
{
	static const struct {
		unsigned tag, rights;
		bool id;
	} entries[] = {{1, 6}, {2, 7, true}, {4, 4}, {16, 7}, {32, 0}};
	size_t n = 4;

	memcpy(acl, "\2\0\0", 4); /* version */
	for (size_t i = 0; i < 5; i++, n += 8) {
		uint16_t half[2] = {(uint16_t)entries[i].tag, (uint16_t)entries[i].rights};
		uint32_t id = entries[i].id ? geteuid() : UINT32_MAX;

		memcpy(acl + n, half, 4);
		memcpy(acl + n + 4, &id, 4);
	}
	return n;
}

static void acls(void)
{
	unsigned char acl[64];
	size_t size = make_acl(acl);
	char value[64];

	close(tc_make("f", 0640));
	ok(mkdir("d", 0755));
	if (!tc->view)
		tc_skip("a tmpfs has ACLs; a view says that it has none");
	error(setxattr("f", "system.posix_acl_access", acl, size, 0), EOPNOTSUPP);
	error(setxattr("d", "system.posix_acl_default", acl, size, 0), EOPNOTSUPP);
	equal(getxattr("f", "system.posix_acl_access", value, sizeof(value)), -1);
	check(errno == EOPNOTSUPP ||
	      errno == ENODATA); /* the kernel's word where there is no attribute */
	error(removexattr("f", "system.posix_acl_access"), EOPNOTSUPP);
	equal(listxattr("f", value, sizeof(value)), 0);
	equal(tc_stat("f").st_mode & 07777, 0640);
}

static void permissions(void)
{
	char value[8];

	need_xattrs();
	close(tc_make("f", 0644));
	ok(setxattr("f", "user.a", "1", 1, 0));
	ok(chmod("f", 0200));
	error(getxattr("f", "user.a", value, 1), EACCES);
	ok(chmod("f", 0400));
	error(setxattr("f", "user.a", "2", 1, 0), EACCES);
	error(removexattr("f", "user.a"), EACCES);
	equal(getxattr("f", "user.a", value, 1), 1);
}

static void ctime(void)
{
	struct stat before;

	need_xattrs();
	close(tc_make("f", 0644));
	before = tc_stat("f");
	tc_tick();
	ok(setxattr("f", "user.a", "1", 1, 0));
	check(tc_before(before.st_ctim, tc_stat("f").st_ctim));
	check(tc_same_time(before.st_mtim, tc_stat("f").st_mtim));
	before = tc_stat("f");
	tc_tick();
	ok(setxattr("f", "user.a", "1", 1, 0)); /* also by the value that it had */
	check(tc_before(before.st_ctim, tc_stat("f").st_ctim));
	check(tc_same_time(before.st_mtim, tc_stat("f").st_mtim));
	check(tc_same_time(before.st_atim, tc_stat("f").st_atim));
	before = tc_stat("f");
	tc_tick();
	ok(removexattr("f", "user.a"));
	check(tc_before(before.st_ctim, tc_stat("f").st_ctim));
}

const TcCase tc_xattr[] = {
	{"set, get, list, remove", basics},
	{"they belong to the inode", follow_the_inode},
	{"names and values have bounds", bounds},
	{"not on symlinks and fifos", kinds},
	{"other name spaces are refused", other_spaces},
	{"ACLs are EOPNOTSUPP", acls},
	{"permissions of the file hold", permissions, TC_PLAIN},
	{"ctime moves", ctime},
	{0},
};
