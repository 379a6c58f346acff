/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every route to a name that a rule forbids, by every spelling, and the errno of each.
 *
 *   deny-routes PARENT NAME deny|read-only
 *
 * PARENT is an existing directory of the view in which NAME is forbidden and absent.
 * Making the name must give EACCES (deny) or EROFS (read-only), using it as if it were
 * there ENOENT. Prints what differs and a count; exit status 1 when something differed,
 * 2 when the scene could not be set.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#endif

/* Set up in the parent before each route and taken away after it. */
#define FILE_NAME "route-file"
#define DIR_NAME "route-dir"
#define LINK_NAME "route-link"
#define SPARE_NAME "route-spare"

typedef int (*Route)(const char *path);

static int result(int value)
{
	return value < 0 ? -errno : 0;
}

static int close_opened(int fd)
{
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* ---- routes that make the name ---- */

static int make_directory(const char *path)
{
	return result(mkdir(path, 0755));
}

static int make_by_open(const char *path)
{
	return close_opened(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static int make_exclusively(const char *path)
{
	return close_opened(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
}

static int make_symlink(const char *path)
{
	return result(symlink("/etc/passwd", path));
}

static int make_regular_node(const char *path)
{
	return result(mknod(path, S_IFREG | 0644, 0));
}

static int make_fifo(const char *path)
{
	return result(mkfifo(path, 0644));
}

static int make_socket_node(const char *path)
{
	return result(mknod(path, S_IFSOCK | 0644, 0));
}

/* bind(2) and connect(2) of a fresh socket; a path that does not fit cannot be a route. */
static int with_socket(const char *path, int (*call)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(address.sun_path)) {
		close(sock);
		return -ENAMETOOLONG;
	}
	strcpy(address.sun_path, path);
	int error = result(call(sock, (struct sockaddr *)&address, sizeof(address)));
	close(sock);
	return error;
}

static int make_by_bind(const char *path)
{
	return with_socket(path, bind);
}

static int make_by_link(const char *path)
{
	return result(link(FILE_NAME, path));
}

static int make_by_link_of_symlink(const char *path)
{
	return result(linkat(AT_FDCWD, LINK_NAME, AT_FDCWD, path, 0));
}

static int make_by_rename_of_file(const char *path)
{
	return result(rename(FILE_NAME, path));
}

static int make_by_rename_of_directory(const char *path)
{
	return result(rename(DIR_NAME, path));
}

static int make_by_rename_of_symlink(const char *path)
{
	return result(rename(LINK_NAME, path));
}

static int make_by_rename_noreplace(const char *path)
{
	return result(renameat2(AT_FDCWD, FILE_NAME, AT_FDCWD, path, RENAME_NOREPLACE));
}

static int make_from_unnamed_file(const char *path)
{
	char proc[64];
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);

	if (fd < 0)
		return -EOPNOTSUPP; /* told apart in run_unnamed_file() */
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	int error = result(linkat(AT_FDCWD, proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW));
	close(fd);
	return error;
}

/* ---- routes that use it as if it were there ---- */

static int use_stat(const char *path)
{
	struct stat unused;
	return result(stat(path, &unused));
}

static int use_lstat(const char *path)
{
	struct stat unused;
	return result(lstat(path, &unused));
}

static int use_access(const char *path)
{
	return result(access(path, F_OK));
}

static int use_open(const char *path)
{
	return close_opened(open(path, O_RDONLY | O_CLOEXEC));
}

static int use_open_to_write(const char *path)
{
	return close_opened(open(path, O_WRONLY | O_TRUNC | O_CLOEXEC));
}

static int use_open_path(const char *path)
{
	return close_opened(open(path, O_PATH | O_CLOEXEC));
}

static int use_open_directory(const char *path)
{
	return close_opened(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int use_readlink(const char *path)
{
	char target[64];
	return result((int)readlink(path, target, sizeof(target)));
}

static int use_chdir(const char *path)
{
	return result(chdir(path));
}

static int use_unlink(const char *path)
{
	return result(unlink(path));
}

static int use_rmdir(const char *path)
{
	return result(rmdir(path));
}

static int use_chmod(const char *path)
{
	return result(chmod(path, 0700));
}

static int use_truncate(const char *path)
{
	return result(truncate(path, 0));
}

static int use_utimes(const char *path)
{
	return result(utimensat(AT_FDCWD, path, NULL, 0));
}

static int use_xattr(const char *path)
{
	return result(setxattr(path, "user.route", "x", 1, 0));
}

static int use_connect(const char *path)
{
	return with_socket(path, connect);
}

static int use_link_from(const char *path)
{
	return result(link(path, SPARE_NAME));
}

static int use_rename_from(const char *path)
{
	return result(rename(path, SPARE_NAME));
}

static int use_exchange_from(const char *path)
{
	return result(renameat2(AT_FDCWD, path, AT_FDCWD, FILE_NAME, RENAME_EXCHANGE));
}

static int use_exchange_to(const char *path)
{
	return result(renameat2(AT_FDCWD, FILE_NAME, AT_FDCWD, path, RENAME_EXCHANGE));
}

typedef struct RouteRow {
	const char *name;
	Route route;
	bool for_directory; /* makes sense with a slash at the end of the name */
} RouteRow;

static const RouteRow making[] = {
	{"mkdir", make_directory, true},
	{"open(O_CREAT)", make_by_open, false},
	{"open(O_CREAT|O_EXCL)", make_exclusively, false},
	{"symlink", make_symlink, false},
	{"mknod(S_IFREG)", make_regular_node, false},
	{"mkfifo", make_fifo, false},
	{"mknod(S_IFSOCK)", make_socket_node, false},
	{"bind", make_by_bind, false},
	{"link to", make_by_link, false},
	{"link of a symlink to", make_by_link_of_symlink, false},
	{"rename of a file to", make_by_rename_of_file, false},
	{"rename of a directory to", make_by_rename_of_directory, true},
	{"rename of a symlink to", make_by_rename_of_symlink, false},
	{"rename(NOREPLACE) to", make_by_rename_noreplace, false},
};

static const RouteRow using[] = {
	{"stat", use_stat, true},
	{"lstat", use_lstat, true},
	{"access", use_access, true},
	{"open", use_open, true},
	{"open(O_TRUNC)", use_open_to_write, false},
	{"open(O_PATH)", use_open_path, true},
	{"open(O_DIRECTORY)", use_open_directory, true},
	{"readlink", use_readlink, false},
	{"chdir", use_chdir, true},
	{"unlink", use_unlink, false},
	{"rmdir", use_rmdir, true},
	{"chmod", use_chmod, true},
	{"truncate", use_truncate, false},
	{"utimensat", use_utimes, true},
	{"setxattr", use_xattr, true},
	{"connect", use_connect, false},
	{"link from", use_link_from, false},
	{"rename from", use_rename_from, true},
	{"rename(EXCHANGE) from", use_exchange_from, false},
	{"rename(EXCHANGE) to", use_exchange_to, false},
};

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

typedef struct Tally {
	unsigned checks, wrong;
} Tally;

static void judge(Tally *tally, const char *route, const char *path, int got, int wanted)
{
	tally->checks++;
	if (got == wanted)
		return;
	tally->wrong++;
	printf("wrong: %s %s: %s, wanted %s\n", route, path,
	       got == 0 ? "it worked" : strerrorname_np(-got), strerrorname_np(-wanted));
}

static int set_scene(const char *parent)
{
	int fd;

	if (chdir(parent) < 0)
		return -errno;
	unlink(FILE_NAME);
	unlink(LINK_NAME);
	unlink(SPARE_NAME);
	rmdir(SPARE_NAME);
	rmdir(DIR_NAME);
	fd = open(FILE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "x", 1) != 1)
		return -errno;
	close(fd);
	if (mkdir(DIR_NAME, 0755) < 0 || symlink(FILE_NAME, LINK_NAME) < 0)
		return -errno;
	return 0;
}

static void clear_scene(const char *parent)
{
	if (chdir(parent) < 0)
		return;
	unlink(FILE_NAME);
	unlink(LINK_NAME);
	rmdir(DIR_NAME);
}

static void run_rows(Tally *tally, const char *parent, const char *path, const RouteRow *rows,
		     size_t n, int wanted)
{
	bool slash = path[strlen(path) - 1] == '/';

	for (size_t i = 0; i < n; i++) {
		if (slash && !rows[i].for_directory)
			continue;
		int error = set_scene(parent);
		if (error < 0) {
			printf("cannot set the scene in %s: %s\n", parent, strerror(-error));
			exit(2);
		}
		judge(tally, rows[i].name, path, rows[i].route(path), wanted);
	}
	clear_scene(parent);
}

static void run_spelling(Tally *tally, const char *parent, const char *path, int refusal)
{
	run_rows(tally, parent, path, making, LENGTH(making), refusal);
	run_rows(tally, parent, path, using, LENGTH(using), -ENOENT);
}

/* The name is followed through a symbolic link to it: only calls that follow make a file. */
static void run_symlink_to_name(Tally *tally, const char *parent, const char *path, int refusal)
{
	const char *name = "route-to-name";

	if (chdir(parent) < 0 || symlink(path, name) < 0) {
		printf("cannot make a link in %s: %s\n", parent, strerror(errno));
		exit(2);
	}
	judge(tally, "open(O_CREAT) through a symlink", path, make_by_open(name), refusal);
	judge(tally, "open(O_EXCL) through a symlink", path, make_exclusively(name), -EEXIST);
	judge(tally, "mkdir over a symlink", path, make_directory(name), -EEXIST);
	judge(tally, "stat through a symlink", path, use_stat(name), -ENOENT);
	judge(tally, "open through a symlink", path, use_open(name), -ENOENT);
	judge(tally, "chdir through a symlink", path, use_chdir(name), -ENOENT);
	judge(tally, "truncate through a symlink", path, use_truncate(name), -ENOENT);
	judge(tally, "connect through a symlink", path, use_connect(name), -ENOENT);
	unlink(name);
}

static void run_below(Tally *tally, const char *parent, const char *path)
{
	char below[PATH_MAX + 8];

	snprintf(below, sizeof(below), "%s/inner", path);
	run_rows(tally, parent, below, making, LENGTH(making), -ENOENT);
	run_rows(tally, parent, below, using, LENGTH(using), -ENOENT);
}

static void run_unnamed_file(Tally *tally, const char *parent, const char *path, int refusal)
{
	if (set_scene(parent) < 0)
		exit(2);
	int got = make_from_unnamed_file(path);
	if (got == -EOPNOTSUPP)
		puts("note: no O_TMPFILE here, so linkat of an unnamed file is no route");
	else
		judge(tally, "linkat of an unnamed file to", path, got, refusal);
	clear_scene(parent);
}

static void run_listing(Tally *tally, const char *parent, const char *name)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	if (!dir)
		exit(2);
	while ((entry = readdir(dir)))
		judge(tally, "readdir", entry->d_name, strcmp(entry->d_name, name) ? 0 : -EEXIST,
		      0);
	closedir(dir);
}

/* Spellings of parent/name; the scene's directory and a link to the parent help. */
static void run_all(Tally *tally, const char *parent, const char *name, int refusal)
{
	static const char *const formats[] = {
		"%s/%s",
		"/%s//%s",
		"%s/./%s",
		"%s/" DIR_NAME "/../%s",
		"%s/to-parent/%s",
		"%s/%s/",
		"/proc/self/root/%s/%s",
	};
	static const char *const relative[] = {
		"%s", "./%s", DIR_NAME "/../%s", "to-parent/%s", "/proc/self/cwd/%s", "%s/"};
	char path[PATH_MAX];

	if (chdir(parent) < 0 || symlink(parent, "to-parent") < 0) {
		printf("cannot make a link in %s: %s\n", parent, strerror(errno));
		exit(2);
	}
	for (size_t i = 0; i < LENGTH(formats); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path, sizeof(path), formats[i], parent, name);
		run_spelling(tally, parent, path, refusal);
	}
	for (size_t i = 0; i < LENGTH(relative); i++) {
		snprintf(path, sizeof(path), relative[i], name);
#pragma GCC diagnostic pop
		run_spelling(tally, parent, path, refusal);
	}
	snprintf(path, sizeof(path), "%s/%s", parent, name);
	run_symlink_to_name(tally, parent, path, refusal);
	run_below(tally, parent, path);
	run_unnamed_file(tally, parent, path, refusal);
	run_listing(tally, parent, name);
	if (chdir(parent) == 0)
		unlink("to-parent");
}

int main(int argc, char **argv)
{
	Tally tally = {0};

	if (argc != 4 || (strcmp(argv[3], "deny") && strcmp(argv[3], "read-only"))) {
		fputs("usage: deny-routes PARENT NAME deny|read-only\n", stderr);
		return 2;
	}
	run_all(&tally, argv[1], argv[2], strcmp(argv[3], "deny") == 0 ? -EACCES : -EROFS);
	printf("%u checks, %u wrong\n", tally.checks, tally.wrong);
	return tally.wrong ? 1 : 0;
}
