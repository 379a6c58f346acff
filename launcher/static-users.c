/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Linked into the programs that start sandboxes, which are static: loading libc costs half of
 * such a program's start. What a static program cannot do is look users up, since libc loads
 * libraries for that. These stand in for libc's functions and execute the same program, linked
 * as usual, with the same words; it begins anew. So this has to happen before anything is
 * done: for the user of --run-as it does; one's own home, which may be asked for at any time
 * when HOME does not say it, is dealt with before main().
 */
#include "locate.h"
#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX (4UL * 1024 * 1024) /* more than execve(2) takes */

/* The words of this process, one behind the other, each with its NUL. Their size, or -1. */
static ssize_t read_words(char *ret)
{
	TN_AUTOFD fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = -1;

	while (fd >= 0 && used < WORDS_MAX && (n = read(fd, ret + used, WORDS_MAX - used)) > 0)
		used += (size_t)n;
	return n < 0 ? -1 : (ssize_t)used;
}

/* Returns only when it fails. */
static void become_dynamic(void)
{
	TN_AUTOFREE char *words = malloc(WORDS_MAX);
	TN_AUTOFREE char **argv = NULL;
	char path[PATH_MAX];
	ssize_t size = words ? read_words(words) : -1;
	size_t n = 0;

	if (size <= 0 || tn_locate(TN_DYNAMIC_PROGRAM, path) < 0)
		return;
	argv = calloc((size_t)size + 1, sizeof(*argv));
	if (!argv)
		return;
	for (char *at = words; at < words + size; at += strlen(at) + 1)
		argv[n++] = at;
	execv(path, argv);
}

__attribute__((constructor)) static void have_a_home(void)
{
	const char *home = getenv("HOME");

	if (!home || home[0] != '/')
		become_dynamic();
}

struct passwd *getpwnam(const char *name)
{
	(void)name;
	become_dynamic();
	errno = ENOSYS;
	return NULL;
}

struct passwd *getpwuid(uid_t uid)
{
	(void)uid;
	become_dynamic();
	errno = ENOSYS;
	return NULL;
}

/* For a message only, which says the number as well: groups of the machine's own file will do. */
struct group *getgrgid(gid_t gid)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *group = NULL;

	if (!file)
		return NULL;
	while ((group = fgetgrent(file)) && group->gr_gid != gid)
		;
	fclose(file);
	return group;
}

/* Comes after getpwnam(). */
int initgroups(const char *user, gid_t group)
{
	(void)user;
	(void)group;
	errno = ENOSYS;
	return -1;
}
