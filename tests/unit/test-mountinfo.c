/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mountinfo: the table's form, its escapes, and the other paths of a directory. */
#include "mountinfo.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int parse(const char *text, TnMountTable *ret)
{
	char *copy = strdup(text);
	int r;

	assert_non_null(copy);
	r = tn_mountinfo_parse(copy, ret);
	free(copy);
	return r;
}

static void form(void **state)
{
	TnMountTable table;

	assert_int_equal(
		parse("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		      "4000000000 22 0:4000000000 /a/b /mnt/x ro master:1 propagate_from:2 "
		      "- tmpfs none rw,size=4k\n",
		      &table),
		0);
	assert_int_equal(table.n, 2);
	assert_int_equal(table.entries[0].id, 22);
	assert_int_equal(table.entries[0].major, 8);
	assert_int_equal(table.entries[0].minor, 1);
	assert_string_equal(table.entries[0].root, "/");
	assert_string_equal(table.entries[0].point, "/");
	assert_true(table.entries[1].id == 4000000000);
	assert_true(table.entries[1].minor == 4000000000);
	assert_string_equal(table.entries[1].root, "/a/b");
	assert_string_equal(table.entries[1].point, "/mnt/x");
	tn_mount_table_clear(&table);

	assert_int_equal(parse("", &table), 0);
	assert_int_equal(table.n, 0);
	tn_mount_table_clear(&table);
}

static void escapes(void **state)
{
	static const char *const cases[][2] = {
		{"/a\\040b", "/a b"},   {"/\\011\\012\\134", "/\t\n\\"},
		{"/\\1340", "/\\0"},    {"/\\134040", "/\\040"},
		{"/x\\", "/x\\"},       {"/x\\04", "/x\\04"},
		{"/x\\08z", "/x\\08z"}, {"/\\303\\244", "/\303\244"},
		{"/\\777", "/\\777"},   {"/\\377", "/\377"},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TnMountTable table;
		char line[128];

		snprintf(line, sizeof(line), "1 1 1:1 %s %s rw - x y z", cases[i][0], cases[i][0]);
		assert_int_equal(parse(line, &table), 0);
		assert_string_equal(table.entries[0].root, cases[i][1]);
		assert_string_equal(table.entries[0].point, cases[i][1]);
		tn_mount_table_clear(&table);
	}
}

static void wrong(void **state)
{
	static const char *const cases[] = {
		"x",
		"1",
		"1 1",
		"1 1 8:1",
		"1 1 8:1 /",
		"1 1 8 / / rw",
		"1 1 :1 / / rw",
		"1 1 8: / / rw",
		"1 1 8:1x / / rw",
		"x 1 8:1 / / rw",
		"-1 1 8:1 / / rw",
		"1  8:1 / / rw",
		"1 1 4294967296:1 / / rw",
		"99999999999999999999 1 8:1 / / rw",
		"1 1 8:1 / / rw - a b c\nrubbish\n",
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TnMountTable table;

		if (parse(cases[i], &table) != -EINVAL)
			fail_msg("\"%s\" is taken", cases[i]);
		tn_mount_table_clear(&table);
	}
}

/* The store is /data/home/eve/store of the file system 8:2, reached through /home. */
static void aliases(void **state)
{
	static const char text[] =
		"1 0 8:1 / / rw - ext4 a rw\n"
		"2 1 8:2 /data/home /home rw - ext4 b rw\n"
		"3 1 8:2 / /whole rw - ext4 b rw\n"                           /* above */
		"4 1 8:2 /data/home/eve /mnt/e\\040ve rw - ext4 b rw\n"       /* above, nearer */
		"5 1 8:2 /data/home/eve/store /srv/s rw - ext4 b rw\n"        /* itself */
		"6 1 8:2 /data/home/eve/store/nests/1 /leak rw - ext4 b rw\n" /* below */
		"7 1 8:2 /data/home/eve/store2 /no1 rw - ext4 b rw\n"         /* a neighbour */
		"8 1 8:2 /data/home/adam /no2 rw - ext4 b rw\n"
		"9 1 8:3 /data/home/eve /no3 rw - ext4 c rw\n" /* another file system */
		"10 3 8:2 /data/home /whole/again rw - ext4 b rw\n";
	static const char *const wanted[] = {
		"/whole/data/home/eve/store", "/mnt/e ve/store", "/srv/s", "/leak",
		"/whole/again/eve/store",
	};
	TnMountTable table;
	TnWords found = {0};

	assert_int_equal(parse(text, &table), 0);
	assert_true(tn_mount_aliases(&table, 2, "/home/eve/store", &found));
	assert_int_equal(found.n, TN_ARRAY_LEN(wanted));
	for (size_t i = 0; i < found.n; i++)
		assert_string_equal(found.items[i], wanted[i]);
	tn_words_clear(&found);

	/* through another of its mounts: the same set, seen from there */
	assert_true(tn_mount_aliases(&table, 3, "/whole/data/home/eve/store", &found));
	assert_int_equal(found.n, TN_ARRAY_LEN(wanted));
	assert_string_equal(found.items[0], "/home/eve/store");
	tn_words_clear(&found);

	/* the root of a mount */
	assert_true(tn_mount_aliases(&table, 5, "/srv/s", &found));
	assert_int_equal(found.n, TN_ARRAY_LEN(wanted));
	tn_words_clear(&found);

	assert_true(tn_mount_aliases(&table, 1, "/var/lib/x", &found));
	assert_int_equal(found.n, 0);
	/* who does not know the mount cannot know the aliases */
	assert_false(tn_mount_aliases(&table, 77, "/home/eve/store", &found));
	assert_false(tn_mount_aliases(&table, 2, "/elsewhere", &found));
	tn_words_clear(&found);
	tn_mount_table_clear(&table);
}

/* This machine's own table is of the form, and holds the mount of the cwd. */
static void own_table(void **state)
{
	static char text[1 << 20];
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	struct statx st;
	TnMountTable table;
	bool found = false;
	size_t used = 0;
	ssize_t n;

	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	assert_int_equal(statx(AT_FDCWD, ".", 0, STATX_MNT_ID, &st), 0);
	assert_int_equal(tn_mountinfo_parse(text, &table), 0);
	for (size_t i = 0; i < table.n; i++)
		found |= table.entries[i].id == st.stx_mnt_id;
	assert_true(found);
	tn_mount_table_clear(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(form),    cmocka_unit_test(escapes),   cmocka_unit_test(wrong),
		cmocka_unit_test(aliases), cmocka_unit_test(own_table),
	};

	return cmocka_run_group_tests_name("mountinfo", tests, NULL, NULL);
}
