/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names and paths. */
#include "conformance.h"

#include <limits.h>
#include <stdlib.h>

static char *of_length(char *buffer, size_t length)
{
	memset(buffer, 'n', length);
	buffer[length] = '\0';
	return buffer;
}

static void length_255(void)
{
	char name[300];

	of_length(name, 255);
	close(tc_make(name, 0644));
	ok(link(name, "short"));
	equal(tc_stat(name).st_nlink, 2);
	ok(unlink(name));
	ok(mkdir(name, 0755));
	ok(rmdir(name));
	ok(symlink("target", name));
	ok(rename(name, "moved"));
	ok(rename("moved", name));
	ok(unlink(name));
	ok(mkfifo(name, 0644));
	equal(tc_count("."), 2);
	check(S_ISFIFO(tc_stat(name).st_mode));
}

static void length_256(void)
{
	char name[300];
	struct stat st;

	of_length(name, 256);
	close(tc_make("f", 0644));
	error(open(name, O_RDWR | O_CREAT, 0644), ENAMETOOLONG);
	error(open(name, O_RDONLY), ENAMETOOLONG);
	error(stat(name, &st), ENAMETOOLONG);
	error(mkdir(name, 0755), ENAMETOOLONG);
	error(rmdir(name), ENAMETOOLONG);
	error(unlink(name), ENAMETOOLONG);
	error(symlink("x", name), ENAMETOOLONG);
	error(mkfifo(name, 0644), ENAMETOOLONG);
	error(link("f", name), ENAMETOOLONG);
	error(link(name, "f2"), ENAMETOOLONG);
	error(rename("f", name), ENAMETOOLONG);
	error(rename(name, "f2"), ENAMETOOLONG);
	equal(tc_count("."), 1);
}

static void any_byte(void)
{
	char name[3] = "x";

	for (int byte = 1; byte < 256; byte++) {
		if (byte == '/' || byte == '.')
			continue;
		name[0] = (char)byte;
		close(tc_make(name, 0644));
	}
	equal(tc_count("."), 253);
	for (int byte = 1; byte < 256; byte++) {
		if (byte == '/' || byte == '.')
			continue;
		name[0] = (char)byte;
		equal(tc_stat(name).st_size, 0);
		ok(unlink(name));
	}
	close(tc_make("a\nb", 0644));
	close(tc_make("\xff\xfe", 0644));
	close(tc_make(" ", 0644));
	close(tc_make("...", 0644));
	equal(tc_count("."), 4);
}

static void case_matters(void)
{
	close(tc_make("name", 0644));
	close(tc_make("NAME", 0644));
	/* one letter composed and as a base with a combining mark: two names */
	close(tc_make("\xc3\xa9", 0644));
	close(tc_make("e\xcc\x81", 0644));
	equal(tc_count("."), 4);
}

static void long_paths(void)
{
	static char path[PATH_MAX + 10];
	char part[130];
	struct stat st;
	int depth = 0;

	of_length(part, 127);
	while (depth < 31) { /* 31 * 128 = 3968 */
		ok(mkdir(part, 0755));
		strcat(strcat(path, part), "/");
		ok(chdir(part));
		depth++;
	}
	for (; depth > 0; depth--)
		ok(chdir(".."));
	/* PATH_MAX counts the final NUL */
	memset(path + strlen(path), 'x', 4095 - strlen(path));
	ok(close((int)ok(open(path, O_RDWR | O_CREAT, 0644))));
	ok(stat(path, &st));
	path[4095] = 'x';
	error(stat(path, &st), ENAMETOOLONG);
	error(open(path, O_RDONLY), ENAMETOOLONG);
}

static void deeper_than_a_path(void)
{
	enum { DEPTH = 600 };
	int before = (int)ok(open(".", O_RDONLY | O_DIRECTORY));
	char cwd[32];

	for (int i = 0; i < DEPTH; i++) {
		ok(mkdir("directory", 0755));
		ok(chdir("directory"));
	}
	tc_put("bottom", "here");
	tc_has("bottom", "here");
	error(getcwd(cwd, sizeof(cwd)) ? 0 : -1, ERANGE);
	ok(unlink("bottom"));
	for (int i = 0; i < DEPTH; i++) {
		ok(chdir(".."));
		ok(rmdir("directory"));
	}
	equal(tc_fstat(before).st_ino, tc_stat(".").st_ino);
}

static void empty_and_odd(void)
{
	struct stat st;

	close(tc_make("file", 0644));
	ok(mkdir("dir", 0755));
	error(stat("", &st), ENOENT);
	error(open("", O_RDWR | O_CREAT, 0644), ENOENT);
	error(stat("missing/x", &st), ENOENT);
	error(stat("file/x", &st), ENOTDIR);
	error(stat("file/", &st), ENOTDIR);
	error(stat("file/.", &st), ENOTDIR);
	ok(stat("dir/", &st));
	ok(stat("dir//../dir/./", &st));
	error(open("new/", O_RDWR | O_CREAT, 0644), EISDIR);
	ok(mkdir("new/", 0755));
	error(rmdir("dir/."), EINVAL);
	error(rmdir("dir/.."), ENOTEMPTY);
	error(mkdir(".", 0755), EEXIST);
	error(mkdir("..", 0755), EEXIST);
	error(rename(".", "x"), EBUSY);
	error(rename("..", "x"), EBUSY);
	error(unlink("file/"), ENOTDIR);
	error(open("dir/..", O_RDWR), EISDIR);
}

static void missing_then_made(void)
{
	struct stat st;

	for (int i = 0; i < 20; i++) { /* what is known to be missing must not stay so */
		error(stat("a", &st), ENOENT);
		close(tc_make("a", 0644));
		ok(stat("a", &st));
		ok(unlink("a"));
		error(stat("a", &st), ENOENT);
		ok(mkdir("a", 0755));
		check(S_ISDIR(tc_stat("a").st_mode));
		ok(rmdir("a"));
		ok(symlink("b", "a"));
		error(stat("a", &st), ENOENT);
		ok(unlink("a"));
	}
}

const TcCase tc_names[] = {
	{"255 bytes work everywhere", length_255},
	{"256 bytes are ENAMETOOLONG everywhere", length_256},
	{"any byte but slash and NUL", any_byte},
	{"case and normal forms stay apart", case_matters},
	{"paths up to 4,095 bytes", long_paths},
	{"trees deeper than a path can say", deeper_than_a_path},
	{"empty names, dots, trailing slashes", empty_and_odd},
	{"a missing name can be made, again and again", missing_then_made},
	{0},
};
