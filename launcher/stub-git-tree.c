/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-git-tree.h"

#include "macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WORKTREES_MAX 64

_Static_assert(sizeof(((TnGitTree *)0)->top) == PATH_MAX, "TnGitTree holds paths");

/* The first line of a small file without its line break; false when there is none. */
static bool read_line(const char *path, char ret[PATH_MAX])
{
	TN_AUTOFD fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, ret, PATH_MAX - 1);

	if (got <= 0)
		return false;
	ret[got] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	return ret[0] != '\0';
}

static bool join(char ret[PATH_MAX], const char *dir, const char *name)
{
	return snprintf(ret, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

/* What a path in one of git's files means: relative ones start at the file's directory. */
static bool resolve(const char *dir, const char *path, char ret[PATH_MAX])
{
	char joined[PATH_MAX];

	if (path[0] != '/' && !join(joined, dir, path))
		return false;
	return realpath(path[0] == '/' ? path : joined, ret) != NULL;
}

static bool has(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat status;

	return join(path, dir, name) && stat(path, &status) == 0;
}

static bool is_common_dir(const char *dir)
{
	return has(dir, "HEAD") && has(dir, "objects") && has(dir, "refs");
}

/*
 * A .git file can lead anywhere, and a sandbox may have written it: a linked worktree must be
 * known to its repository (as git demands), anything else must be a whole repository.
 */
static bool follow_git_file(const char *git, const char *top, char ret_common[PATH_MAX])
{
	char line[PATH_MAX], git_dir[PATH_MAX], path[PATH_MAX], back[PATH_MAX], own[PATH_MAX];

	if (!read_line(git, line) || strncmp(line, "gitdir: ", 8) != 0 ||
	    !resolve(top, line + 8, git_dir))
		return false;
	if (!join(path, git_dir, "commondir") || !read_line(path, line)) {
		snprintf(ret_common, PATH_MAX, "%s", git_dir);
		return is_common_dir(git_dir);
	}
	return resolve(git_dir, line, ret_common) && is_common_dir(ret_common) &&
	       join(path, git_dir, "gitdir") && read_line(path, line) &&
	       resolve(git_dir, line, back) && realpath(git, own) && strcmp(back, own) == 0;
}

bool tn_stub_git_find(const char *dir, TnGitTree *ret)
{
	char at[PATH_MAX];

	if (dir[0] != '/' || snprintf(at, sizeof(at), "%s", dir) >= PATH_MAX)
		return false;
	for (;;) {
		char git[PATH_MAX];
		struct stat status;

		if (join(git, strcmp(at, "/") == 0 ? "" : at, ".git") && lstat(git, &status) == 0) {
			snprintf(ret->top, sizeof(ret->top), "%s", at);
			if (S_ISREG(status.st_mode))
				return follow_git_file(git, at, ret->common_dir);
			snprintf(ret->common_dir, sizeof(ret->common_dir), "%s", git);
			/* git itself takes a .git that is no repository for nothing at all */
			if (S_ISDIR(status.st_mode) && is_common_dir(git))
				return true;
		}
		if (strcmp(at, "/") == 0)
			return false;
		*(strrchr(at, '/') == at ? at + 1 : strrchr(at, '/')) = '\0';
	}
}

static int add_top(TnGitTops *tops, const char *git_path)
{
	char **more = reallocarray(tops->tops, tops->n_tops + 1, sizeof(*more));
	char *top;

	if (!more)
		return -ENOMEM;
	tops->tops = more;
	top = strdup(git_path);
	if (!top)
		return -ENOMEM;
	*(strrchr(top, '/') == top ? top + 1 : strrchr(top, '/')) = '\0';
	for (size_t i = 0; i < tops->n_tops; i++) {
		if (strcmp(tops->tops[i], top) == 0) {
			free(top);
			return 0;
		}
	}
	tops->tops[tops->n_tops++] = top;
	return 0;
}

/* COMMON/worktrees/NAME/gitdir holds the path of the worktree's .git file. */
static int add_linked(TnGitTops *tops, const char *common_dir)
{
	char path[PATH_MAX], line[PATH_MAX], git[PATH_MAX];
	struct dirent *entry;
	int result = 0, n = 0;
	DIR *dir;

	if (!join(path, common_dir, "worktrees"))
		return 0;
	dir = opendir(path);
	while (dir && result == 0 && n < WORKTREES_MAX && (entry = readdir(dir))) {
		char worktree[PATH_MAX];

		if (entry->d_name[0] == '.' || !join(worktree, path, entry->d_name) ||
		    snprintf(git, sizeof(git), "%s/gitdir", worktree) >= PATH_MAX ||
		    !read_line(git, line) || !resolve(worktree, line, git))
			continue;
		n++;
		result = add_top(tops, git);
	}
	if (dir)
		closedir(dir);
	return result;
}

int tn_stub_git_tops(const TnGitTree *tree, TnGitTops *ret)
{
	const char *name = strrchr(tree->common_dir, '/');
	char git[PATH_MAX];
	int result = 0;

	*ret = (TnGitTops){0};
	if (join(git, strcmp(tree->top, "/") == 0 ? "" : tree->top, ".git"))
		result = add_top(ret, git);
	if (result == 0 && strcmp(name, "/.git") == 0)
		result = add_top(ret, tree->common_dir);
	if (result == 0)
		result = add_linked(ret, tree->common_dir);
	if (result < 0)
		tn_stub_git_tops_clear(ret);
	return result;
}

void tn_stub_git_tops_clear(TnGitTops *tops)
{
	for (size_t i = 0; i < tops->n_tops; i++)
		free(tops->tops[i]);
	free(tops->tops);
	*tops = (TnGitTops){0};
}
