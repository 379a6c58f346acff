/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "known-command.h"
#include "macros.h"
#include "paths.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Scripts need an interpreter as well, and other formats a helper. */
static bool is_binary(const char *path)
{
	TN_AUTOFD fd = open(path, O_RDONLY | O_CLOEXEC);
	char magic[SELFMAG];

	return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* Is path, or what it leads to, something else inside? */
static bool is_mounted_over(const TnRunPlan *plan, const char *path)
{
	if (tn_path_is_below(path, plan->tmp) ||
	    (plan->var_tmp && tn_path_is_below(path, plan->var_tmp)))
		return true;
	for (size_t i = 0; i < plan->n_mounts; i++)
		if (tn_path_is_below(path, plan->mounts[i].target))
			return true;
	return false;
}

static bool is_known(const TnRunPlan *plan, const char *path)
{
	char real[PATH_MAX];
	struct stat st;

	return realpath(path, real) && tn_path_is_below(real, "/usr") && stat(real, &st) == 0 &&
	       S_ISREG(st.st_mode) && (st.st_mode & 0555) == 0555 && !is_mounted_over(plan, path) &&
	       !is_mounted_over(plan, real) && is_binary(real);
}

/* As execvp(3) searches: the first that exists is the one, unless it is in doubt. */
static bool search(const TnRunPlan *plan, const char *name, const char *path)
{
	while (*path) {
		size_t length = strcspn(path, ":");
		char candidate[PATH_MAX];
		int n = snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)length, path, name);

		if (path[0] != '/' || n < 0 || n >= (int)sizeof(candidate))
			return false;
		if (is_mounted_over(plan, candidate))
			return false;
		if (access(candidate, F_OK) == 0)
			return is_known(plan, candidate);
		path += length;
		path += *path == ':';
	}
	return false;
}

static bool sets_path(const TnRunOptions *options)
{
	for (size_t i = 0; i < options->setenvs.n; i += 2)
		if (strcmp(options->setenvs.items[i], "PATH") == 0)
			return true;
	return false;
}

bool tn_command_is_known(const TnRunPlan *plan, const TnRunOptions *options)
{
	const char *name = options->command[0];
	const char *path = getenv("PATH");

	if (options->bwrap_args.n > 0 || sets_path(options))
		return false;
	if (name[0] == '/')
		return is_known(plan, name);
	return path && *name && !strchr(name, '/') && search(plan, name, path);
}
