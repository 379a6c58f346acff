/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "locate.h"
#include "config.h"
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRONT "tmpnest-bwrap"
#define BUILD_FOLDER "launcher"

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* dir/middle/program in ret, if there is such a program. */
static bool try_dir(const char *dir, const char *middle, const char *program, char ret[PATH_MAX])
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s%s", dir, middle, program);

	if (n < 0 || n >= (int)sizeof(path) || !is_program(path))
		return false;
	memcpy(ret, path, (size_t)n + 1);
	return true;
}

/* The folder that this program was started from. */
static bool own_dir(char ret[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *slash;

	if (length <= 0)
		return false;
	ret[length] = '\0';
	slash = strrchr(ret, '/');
	if (!slash || slash == ret)
		return false;
	*slash = '\0';
	return true;
}

/* Only there may a program be taken from beside us: nobody else's ../fs/ is meant. */
static bool is_build_folder(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash && strcmp(slash + 1, BUILD_FOLDER) == 0;
}

static bool ends_with(const char *dir, const char *end)
{
	size_t n = strlen(dir), m = strlen(end);

	return n > m && dir[n - m - 1] == '/' && strcmp(dir + n - m, end) == 0;
}

/* Is path of the same owner as this program? Beside a copy in a public place lies anything. */
static bool is_of_our_owner(const char *path)
{
	struct stat ours, theirs;

	return stat("/proc/self/exe", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_uid == theirs.st_uid;
}

/*
 * In a tree that was installed and then moved (or unpacked elsewhere): the same way from folder to
 * folder as below the prefix.
 */
static bool find_moved(const char *dir, const char *program, char ret[PATH_MAX])
{
	char found[PATH_MAX];

	if (TN_BIN_BELOW[0] == '/' || TN_LIBEXEC_BELOW[0] == '/')
		return false;
	return ((ends_with(dir, TN_BIN_BELOW) &&
		 (try_dir(dir, "", program, found) ||
		  try_dir(dir, TN_BIN_UP TN_LIBEXEC_BELOW "/", program, found))) ||
		(ends_with(dir, TN_LIBEXEC_BELOW) &&
		 (try_dir(dir, "", program, found) ||
		  try_dir(dir, TN_LIBEXEC_UP TN_BIN_BELOW "/", program, found)))) &&
	       is_of_our_owner(found) && realpath(found, ret);
}

static bool find(const char *program, char ret[PATH_MAX])
{
	char dir[PATH_MAX];

	if (own_dir(dir) && ((is_build_folder(dir) && (try_dir(dir, "", program, ret) ||
						       try_dir(dir, "../fs/", program, ret))) ||
			     find_moved(dir, program, ret)))
		return true;
	return try_dir(TN_LIBEXEC_DIR, "", program, ret) || try_dir(TN_BIN_DIR, "", program, ret);
}

int tn_locate(const char *program, char ret[PATH_MAX])
{
	if (find(program, ret))
		return 0;
	return tn_fail(-ENOENT,
		       "locate: %s: not beside this program, in %s or in %s (build or "
		       "install tmpnest completely)",
		       program, TN_LIBEXEC_DIR, TN_BIN_DIR);
}

/* True when path is our own front, under whatever name. */
static bool is_front(const char *path)
{
	char front[PATH_MAX];
	struct stat a, b;

	if (stat(path, &a) < 0)
		return false;
	if (stat("/proc/self/exe", &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return true;
	return find(FRONT, front) && stat(front, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static bool search_path(const char *path, char ret[PATH_MAX])
{
	while (*path) {
		size_t length = strcspn(path, ":");
		char dir[PATH_MAX];

		/* an empty or relative entry depends on the cwd, which may be a payload's */
		if (length > 0 && length < sizeof(dir) && path[0] == '/') {
			memcpy(dir, path, length);
			dir[length] = '\0';
			if (try_dir(dir, "", "bwrap", ret) && !is_front(ret))
				return true;
		}
		path += length;
		if (*path == ':')
			path++;
	}
	return false;
}

int tn_locate_bwrap(char ret[PATH_MAX])
{
	const char *chosen = getenv("TMPNEST_BWRAP");
	const char *path = getenv("PATH");

	if (chosen && *chosen) {
		if (chosen[0] != '/' || strlen(chosen) >= PATH_MAX || !is_program(chosen))
			return tn_fail(-ENOENT,
				       "bwrap: %s: not an absolute path of a program (set "
				       "TMPNEST_BWRAP to the real bwrap)",
				       chosen);
		if (is_front(chosen))
			return tn_fail(-ENOENT,
				       "bwrap: %s: is tmpnest itself (set TMPNEST_BWRAP to the "
				       "real bwrap)",
				       chosen);
		strcpy(ret, chosen);
		return 0;
	}
	if ((path && search_path(path, ret)) || search_path("/usr/local/bin:/usr/bin:/bin", ret))
		return 0;
	return tn_fail(-ENOENT, "bwrap: not found in PATH (install bubblewrap, or set "
				"TMPNEST_BWRAP)");
}
