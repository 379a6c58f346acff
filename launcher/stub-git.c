/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-git.h"

#include "macros.h"
#include "paths.h"
#include "stub-files.h"
#include "stub-git-tree.h"
#include "stub-index.h"
#include "stub-paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* How a block begins says what was there before it, so that exactly that comes back. */
typedef enum Before {
	BEFORE_WHOLE_LINES,
	BEFORE_OPEN_LINE, /* the last line was not ended: we ended it */
	BEFORE_NOTHING,   /* there was no file */
} Before;

static const char *const begins[] = {
	[BEFORE_WHOLE_LINES] = "# tmpnest stubs: begin (goes with the last one)\n",
	[BEFORE_OPEN_LINE] =
		"# tmpnest stubs: begin (goes with the last one, and so does the line break)\n",
	[BEFORE_NOTHING] =
		"# tmpnest stubs: begin (goes with the last one, and so does the file)\n",
};

#define END "# tmpnest stubs: end\n"
#define EXCLUDE_MAX (4 * 1024 * 1024)
#define TREES_MAX 64

typedef struct Exclude {
	TnStubIndex index;
	char *done[TREES_MAX]; /* common directories */
	size_t n_done;
} Exclude;

bool tn_stub_git_pattern(const char *relative, char *ret, size_t size)
{
	size_t used = 0;

	if (strpbrk(relative, "\n\r"))
		return false;
	for (const char *c = relative; used + 4 < size; c++) {
		if (c == relative)
			ret[used++] = '/';
		if (!*c) {
			ret[used++] = '\n';
			ret[used] = '\0';
			return true;
		}
		/* a space counts at the end of a line only when escaped */
		if (strchr("*?[\\", *c) || (*c == ' ' && !c[1]))
			ret[used++] = '\\';
		ret[used++] = *c;
	}
	return false;
}

typedef struct Block {
	size_t start, end;
	Before before;
} Block;

/* Where our block is, with the line break that goes with it; false when there is none. */
static bool find_block(const char *text, size_t size, Block *ret)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(begins); i++) {
		const char *begin = memmem(text, size, begins[i], strlen(begins[i]));
		const char *end;

		if (!begin || (begin > text && begin[-1] != '\n'))
			continue;
		/* a block whose end was cut off is only its first line: nobody else's text may go
		 */
		end = memmem(begin, (size_t)(text + size - begin), END, strlen(END));
		ret->before = (Before)i;
		ret->start = (size_t)(begin - text) - (i == BEFORE_OPEN_LINE && begin > text);
		ret->end = end ? (size_t)(end - text) + strlen(END)
			       : (size_t)(begin - text) + strlen(begins[i]);
		return true;
	}
	return false;
}

int tn_stub_git_splice(const char *text, size_t size, const char *block, char **ret,
		       size_t *ret_size)
{
	Block old = {.start = size, .end = size};
	bool had = text && find_block(text, size, &old);
	FILE *out;

	*ret = NULL;
	*ret_size = 0;
	if (!*block &&
	    (!text || (had && old.before == BEFORE_NOTHING && old.start == 0 && old.end == size)))
		return 0;
	out = open_memstream(ret, ret_size);
	if (!out)
		return -ENOMEM;
	if (text)
		fwrite(text, 1, old.start, out);
	if (*block) {
		Before before = had ? old.before : BEFORE_WHOLE_LINES;

		if (!text)
			before = BEFORE_NOTHING;
		else if (!had && size > 0 && text[size - 1] != '\n')
			before = BEFORE_OPEN_LINE;
		if (before == BEFORE_OPEN_LINE)
			fputc('\n', out);
		fprintf(out, "%s%s%s", begins[before], block, END);
	} else if (had && old.before == BEFORE_OPEN_LINE && old.end < size) {
		/* somebody wrote below it since: the lines stay apart */
		fputc('\n', out);
	}
	if (text)
		fwrite(text + old.end, 1, size - old.end, out);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static int read_exclude(int info_fd, char **ret, size_t *ret_size, struct stat *ret_status)
{
	TN_AUTOFD fd = openat(info_fd, "exclude", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	ssize_t got;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size > EXCLUDE_MAX)
		return -EINVAL;
	*ret = malloc((size_t)status.st_size + 1);
	if (!*ret)
		return -ENOMEM;
	got = read(fd, *ret, (size_t)status.st_size);
	if (got < 0)
		return -errno;
	*ret_size = (size_t)got;
	*ret_status = status;
	return 0;
}

/* The new file is the old one's owner's, as when root works in a user's tree; else there is none.
 */
static int replace_exclude(int info_fd, const char *text, size_t size, const struct stat *old)
{
	static const char name[] = "exclude.tmpnest-stubs";
	mode_t mode = old->st_mode & 07777;
	TN_AUTOFD fd = -1;
	struct stat made;
	int result = 0;

	unlinkat(info_fd, name, 0);
	fd = openat(info_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &made) < 0 ||
	    (old->st_nlink > 0 && (made.st_uid != old->st_uid || made.st_gid != old->st_gid) &&
	     fchown(fd, old->st_uid, old->st_gid) < 0) ||
	    write(fd, text, size) != (ssize_t)size || fchmod(fd, mode) < 0 || fdatasync(fd) < 0 ||
	    renameat(info_fd, name, info_fd, "exclude") < 0)
		result = errno ? -errno : -EIO;
	if (result < 0)
		unlinkat(info_fd, name, 0);
	return result;
}

/* A file that we made goes with our block; and so may its directory. */
static int write_exclude(int git_fd, const char *block)
{
	TN_AUTOFREE char *text = NULL, *spliced = NULL;
	size_t size = 0, spliced_size = 0;
	TN_AUTOFD info_fd = -1;
	struct stat status = {.st_mode = 0644}; /* no link: there was none */
	int result;

	if (*block && mkdirat(git_fd, "info", 0777) < 0 && errno != EEXIST)
		return -errno;
	info_fd = openat(git_fd, "info", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (info_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	result = read_exclude(info_fd, &text, &size, &status);
	if (result < 0 && result != -ENOENT)
		return result;
	result = tn_stub_git_splice(text, size, block, &spliced, &spliced_size);
	if (result < 0)
		return result;
	if (!text == !spliced && spliced_size == size &&
	    (!text || memcmp(text, spliced, size) == 0))
		return 0;
	if (spliced)
		return replace_exclude(info_fd, spliced, spliced_size, &status);
	if (unlinkat(info_fd, "exclude", 0) < 0)
		return -errno;
	unlinkat(git_fd, "info", AT_REMOVEDIR);
	return 0;
}

/* False when the same pattern would hide a file of another worktree that is no stub. */
static bool is_free_elsewhere(const Exclude *exclude, const TnGitTops *tops, const char *top,
			      const char *relative)
{
	for (size_t i = 0; i < tops->n_tops; i++) {
		char path[PATH_MAX];
		struct stat status;
		size_t place;

		if (strcmp(tops->tops[i], top) == 0 ||
		    snprintf(path, sizeof(path), "%s/%s", tops->tops[i], relative) >= PATH_MAX ||
		    lstat(path, &status) < 0)
			continue;
		place = tn_stub_index_find(&exclude->index, path);
		if (place == exclude->index.n_positions ||
		    strcmp(tn_stub_index_at(&exclude->index, place)->path, path) != 0)
			return false;
	}
	return true;
}

/* A directory is named by what we put into it: git does not show empty ones. */
static void name_stub(FILE *out, const Exclude *exclude, const TnGitTops *tops, const char *top,
		      const TnLedgerEntry *entry)
{
	char relative[PATH_MAX], pattern[PATH_MAX * 2 + 8];
	const char *name;
	TN_AUTOFD parent = tn_stub_open_parent(entry->path, &name);

	if (parent < 0 || tn_stub_check(parent, name, entry) < 0 ||
	    (entry->kind == TN_STUB_DIR && !entry->filled))
		return;
	if (snprintf(relative, sizeof(relative), "%s%s",
		     entry->path + strlen(top) + (strcmp(top, "/") != 0),
		     entry->kind == TN_STUB_DIR ? "/" TN_STUB_INNER_NAME : "") >= PATH_MAX)
		return;
	if (is_free_elsewhere(exclude, tops, top, relative) &&
	    tn_stub_git_pattern(relative, pattern, sizeof(pattern)))
		fputs(pattern, out);
}

/* True when the stub belongs to the work tree at top, not to one nested in it. */
static bool lies_in(const TnLedgerEntry *entry, const TnGitTree *tree)
{
	char dir[PATH_MAX];
	TnGitTree own;

	snprintf(dir, sizeof(dir), "%s", entry->path);
	*strrchr(dir, '/') = '\0';
	/* what lies in .git is not git's to show */
	return tn_path_is_below(entry->path, tree->top) &&
	       !tn_path_is_below(entry->path, tree->common_dir) &&
	       tn_stub_git_find(*dir ? dir : "/", &own) && strcmp(own.top, tree->top) == 0;
}

static void name_stubs_of(FILE *out, const Exclude *exclude, const TnGitTops *tops,
			  const char *common_dir)
{
	const TnStubIndex *index = &exclude->index;

	for (size_t i = 0; i < tops->n_tops; i++) {
		TnGitTree tree;
		size_t place = tn_stub_index_find(index, tops->tops[i]);

		snprintf(tree.top, sizeof(tree.top), "%s", tops->tops[i]);
		snprintf(tree.common_dir, sizeof(tree.common_dir), "%s", common_dir);
		while (place < index->n_positions && strncmp(tn_stub_index_at(index, place)->path,
							     tree.top, strlen(tree.top)) == 0) {
			size_t end = tn_stub_index_group_end(index, place);

			for (bool named = false; place < end; place++) {
				const TnLedgerEntry *entry = tn_stub_index_at(index, place);

				if (named || entry->dropped || !lies_in(entry, &tree))
					continue;
				name_stub(out, exclude, tops, tree.top, entry);
				named = true;
			}
		}
	}
}

static int update_tree(const Exclude *exclude, const TnGitTree *tree)
{
	TN_AUTOFREE char *block = NULL;
	TN_AUTOFD git_fd = -1;
	TnGitTops tops = {0};
	char info[PATH_MAX];
	const char *name;
	size_t size = 0;
	FILE *out;
	int result;

	if (snprintf(info, sizeof(info), "%s/info", tree->common_dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	/* what was resolved a moment ago may be a link by now: a sandbox may write here */
	git_fd = tn_stub_open_parent(info, &name);
	if (git_fd < 0)
		return git_fd;
	out = open_memstream(&block, &size);
	if (!out)
		return -ENOMEM;
	result = tn_stub_git_tops(tree, &tops);
	if (result == 0)
		name_stubs_of(out, exclude, &tops, tree->common_dir);
	if (fclose(out) != 0)
		result = -ENOMEM;
	if (result == 0)
		result = write_exclude(git_fd, block);
	tn_stub_git_tops_clear(&tops);
	return result;
}

static bool is_done(Exclude *exclude, const TnGitTree *tree)
{
	for (size_t i = 0; i < exclude->n_done; i++) {
		if (strcmp(exclude->done[i], tree->common_dir) == 0)
			return true;
	}
	if (exclude->n_done < TREES_MAX)
		exclude->done[exclude->n_done] = strdup(tree->common_dir);
	if (exclude->n_done < TREES_MAX && exclude->done[exclude->n_done])
		exclude->n_done++;
	return false;
}

void tn_stub_git_update(const TnLedger *ledger, const char *const *paths, size_t n_paths,
			void (*warn)(void *data, const char *path, const char *why), void *data)
{
	Exclude exclude = {0};
	char dir[PATH_MAX], last[PATH_MAX];

	if (n_paths == 0 || tn_stub_index_init(&exclude.index, ledger) < 0)
		return;
	last[0] = '\0';
	for (size_t i = 0; i < n_paths; i++) {
		TnGitTree tree;
		int result;

		snprintf(dir, sizeof(dir), "%s", paths[i]);
		*strrchr(dir, '/') = '\0';
		if (strcmp(dir, last) == 0)
			continue;
		snprintf(last, sizeof(last), "%s", dir);
		if (!tn_stub_git_find(*dir ? dir : "/", &tree) || is_done(&exclude, &tree))
			continue;
		result = update_tree(&exclude, &tree);
		if (result < 0 && result != -EROFS && result != -EACCES && result != -EPERM &&
		    result != -ELOOP)
			warn(data, tree.common_dir, strerror(-result));
	}
	while (exclude.n_done > 0)
		free(exclude.done[--exclude.n_done]);
	tn_stub_index_clear(&exclude.index);
}
