/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nest-look.h"

#include "macros.h"
#include "nest-private.h"
#include "recount.h"
#include "sys.h"
#include "tree-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define HELD_AT_ONCE 64 /* unlinked files looked at between two takes of the lock */

/* --- paths ----------------------------------------------------------------------------------- */

/* path without prefix, if prefix is path or leads to it; else NULL. */
static const char *below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(path, prefix, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

/* The subtree's name in the store, and the rest of the path. NULL: it lies elsewhere. */
static const char *split_path(const char *path, const char **ret_rest)
{
	static const struct {
		const char *prefix, *subtree;
	} known[] = {{"/private/tmp", "tmp"}, {"/var/tmp", "var-tmp"}, {"/tmp", "tmp"}};

	*ret_rest = path;
	if (path[0] != '/')
		return "tmp";
	for (size_t i = 0; i < TN_ARRAY_LEN(known); i++) {
		*ret_rest = below(path, known[i].prefix);
		if (*ret_rest)
			return known[i].subtree;
	}
	return NULL;
}

/* One step down; O_PATH, so that nothing is opened that could block or act. */
static int step(int dir, const char *name, bool last)
{
	return tn_open_beneath(dir, name, O_PATH | O_NOFOLLOW | (last ? 0 : O_DIRECTORY), 0);
}

/* Component by component: a path may be longer than the kernel takes at once. */
static int descend(int start, const char *rest)
{
	TN_AUTOFD fd = step(start, ".", true);

	while (fd >= 0) {
		char name[NAME_MAX + 1];
		size_t length;
		int next;

		rest += strspn(rest, "/");
		length = strcspn(rest, "/");
		if (length == 0)
			return tn_steal_fd(&fd);
		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, rest, length);
		name[length] = '\0';
		rest += length;
		if (strcmp(name, "..") == 0)
			return -EINVAL;
		next = step(fd, name, rest[strspn(rest, "/")] == '\0');
		tn_close(&fd);
		fd = next;
	}
	return fd;
}

int tn_nest_look(TnNest *nest, const char *path)
{
	TN_AUTOFD start = -1;
	const char *rest, *subtree = split_path(path, &rest);

	if (!subtree)
		return -EINVAL;
	start = step(nest->store.data, subtree, false);
	return start < 0 ? start : descend(start, rest);
}

int tn_nest_look_dir(TnNest *nest, const char *path)
{
	TN_AUTOFD fd = tn_nest_look(nest, path);

	return fd < 0 ? fd : tn_open_beneath(fd, ".", O_RDONLY | O_DIRECTORY, 0);
}

int tn_nest_look_file(TnNest *nest, const char *path)
{
	TN_AUTOFD fd = tn_nest_look(nest, path);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return tn_reopen(fd, O_RDONLY);
}

/* --- usage ----------------------------------------------------------------------------------- */

/* The `most` largest of what was offered; a heap with the smallest on top. */
typedef struct Largest {
	TnLookUse *uses;
	size_t n, most;
} Largest;

static bool is_less(const TnLookUse *a, const TnLookUse *b)
{
	return a->bytes != b->bytes ? a->bytes < b->bytes : a->inodes < b->inodes;
}

static void sift_down(Largest *largest)
{
	TnLookUse *uses = largest->uses;

	for (size_t at = 0;;) {
		size_t least = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < largest->n; child++)
			if (is_less(&uses[child], &uses[least]))
				least = child;
		if (least == at)
			return;
		TnLookUse other = uses[at];
		uses[at] = uses[least];
		uses[least] = other;
		at = least;
	}
}

static void sift_up(Largest *largest)
{
	TnLookUse *uses = largest->uses;

	for (size_t at = largest->n - 1; at > 0;) {
		size_t parent = (at - 1) / 2;

		if (!is_less(&uses[at], &uses[parent]))
			return;
		TnLookUse other = uses[at];
		uses[at] = uses[parent];
		uses[parent] = other;
		at = parent;
	}
}

/* 0 or -ENOMEM. name is copied when it stays. */
static int offer(Largest *largest, const TnLookUse *use)
{
	bool full = largest->n == largest->most;
	char *name;

	if (largest->most == 0 || (full && !is_less(&largest->uses[0], use)))
		return 0;
	name = strdup(use->name);
	if (!name)
		return -ENOMEM;
	if (full) {
		free(largest->uses[0].name);
		largest->uses[0] = *use;
		largest->uses[0].name = name;
		sift_down(largest);
		return 0;
	}
	largest->uses[largest->n] = *use;
	largest->uses[largest->n++].name = name;
	sift_up(largest);
	return 0;
}

typedef struct Count {
	const TnStore *store;
	const atomic_bool *cancel;
	TnLookUsage *usage;
	Largest entries, files;
	TnLookUse current; /* the entry of the start that is being walked */
	void *linked;      /* tsearch(3) tree of inode numbers that have several names */
} Count;

static int compare_inodes(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? -1 : x > y;
}

static void keep_inode(void *ino)
{
	(void)ino; /* the keys are numbers */
}

/* 1: met under another name already. */
static int seen_before(Count *count, const struct stat *st)
{
	void *key = (void *)(uintptr_t)st->st_ino;

	if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
		return 0;
	if (tfind(key, &count->linked, compare_inodes))
		return 1;
	return tsearch(key, &count->linked, compare_inodes) ? 0 : -ENOMEM;
}

static int charge_of(const Count *count, const TnTreeEntry *entry, uint64_t *ret)
{
	TN_AUTOFD fd = -1;
	int64_t bytes;

	if (S_ISREG(entry->stat->st_mode) || S_ISDIR(entry->stat->st_mode)) {
		/* Not blocking: it may have become a fifo since. */
		fd = tn_open_beneath(entry->dir, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
				     0);
		if (fd < 0 || fstat(fd, entry->stat) < 0)
			return -ENOENT;
	}
	bytes = tn_store_charge(count->store, fd, entry->stat, fd >= 0);
	*ret = bytes > 0 ? (uint64_t)bytes : 0;
	return bytes < 0 ? (int)bytes : 0;
}

static int end_current(Count *count)
{
	int r = count->current.name ? offer(&count->entries, &count->current) : 0;

	free(count->current.name);
	count->current = (TnLookUse){0};
	return r;
}

static int count_entry(const TnTreeEntry *entry, void *data)
{
	Count *count = data;
	TnLookUse use = {.inodes = 1, .type = entry->stat->st_mode & S_IFMT};
	int r;

	if (atomic_load_explicit(count->cancel, memory_order_relaxed))
		return -ECANCELED;
	if (entry->depth == 0) {
		r = end_current(count);
		if (r < 0)
			return r;
		count->usage->entries_seen++;
		count->current = (TnLookUse){.name = strdup(entry->name), .type = use.type};
		if (!count->current.name)
			return -ENOMEM;
	}
	r = seen_before(count, entry->stat);
	if (r != 0)
		return r < 0 ? r : 0;
	if (charge_of(count, entry, &use.bytes) < 0)
		return 0; /* gone since */
	count->current.bytes += use.bytes;
	count->current.inodes++;
	count->usage->bytes += use.bytes;
	count->usage->inodes++;
	use.name = (char *)entry->path;
	if (!S_ISREG(use.type) || !entry->path)
		return 0;
	return offer(&count->files, &use);
}

/* The held descriptors of some nodes from *index on, duplicated. How many. */
static size_t take_held(TnNest *nest, uint32_t *index, int fds[HELD_AT_ONCE])
{
	size_t n = 0;

	pthread_mutex_lock(&nest->table_lock);
	while (n < HELD_AT_ONCE && (*index = tn_node_next(nest->table, *index)) != 0) {
		const TnNode *node = tn_node_at(nest->table, *index);

		if (!(node->flags & TN_NODE_ORPHAN) || node->held_fd < 0)
			continue;
		fds[n] = fcntl(node->held_fd, F_DUPFD_CLOEXEC, 3);
		if (fds[n] >= 0)
			n++;
	}
	pthread_mutex_unlock(&nest->table_lock);
	return n;
}

static int count_orphan(const TnTreeEntry *entry, void *data)
{
	Count *count = data;
	uint64_t bytes = 0;

	if (atomic_load_explicit(count->cancel, memory_order_relaxed))
		return -ECANCELED;
	if (charge_of(count, entry, &bytes) < 0)
		return 0;
	count->usage->held_bytes += bytes;
	count->usage->held_inodes++;
	return 0;
}

static int count_held(TnNest *nest, Count *count)
{
	TnUsage held = {0};
	uint32_t index = 0;
	bool complete;
	int r;

	do {
		int fds[HELD_AT_ONCE];
		size_t n = take_held(nest, &index, fds);

		for (size_t i = 0; i < n; i++) {
			(void)tn_recount_held(&nest->store, fds[i], &held);
			tn_close(&fds[i]);
		}
	} while (index != 0);
	r = tn_tree_walk(nest->store.orphans, count_orphan, count, &complete);
	count->usage->held_bytes += held.bytes;
	count->usage->held_inodes += held.inodes;
	return r;
}

static int largest_first(const void *a, const void *b)
{
	const TnLookUse *x = a, *y = b;

	if (is_less(x, y) || is_less(y, x))
		return is_less(x, y) ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void hand_over(Largest *largest, TnLookUse **ret, size_t *ret_n)
{
	if (largest->n > 0)
		qsort(largest->uses, largest->n, sizeof(*largest->uses), largest_first);
	*ret = largest->uses;
	*ret_n = largest->n;
}

static int count_dir(TnNest *nest, int dir, Count *count)
{
	int r = tn_tree_walk(dir, count_entry, count, &count->usage->complete);
	int end = end_current(count);

	if (r == 0)
		r = end;
	return r < 0 ? r : count_held(nest, count);
}

int tn_nest_look_usage(TnNest *nest, const char *path, size_t most, const atomic_bool *cancel,
		       TnLookUsage *ret)
{
	TN_AUTOFD dir = tn_nest_look_dir(nest, path);
	TnLookUsage usage = {0};
	Count count = {
		.store = &nest->store,
		.cancel = cancel,
		.usage = &usage,
		.entries = {.most = most, .uses = calloc(most + 1, sizeof(TnLookUse))},
		.files = {.most = most, .uses = calloc(most + 1, sizeof(TnLookUse))},
	};
	int r = dir;

	if (!count.entries.uses || !count.files.uses)
		r = -ENOMEM;
	if (r >= 0)
		r = count_dir(nest, dir, &count);
	tdestroy(count.linked, keep_inode);
	hand_over(&count.entries, &usage.entries, &usage.n_entries);
	hand_over(&count.files, &usage.files, &usage.n_files);
	if (r < 0)
		tn_look_usage_clear(&usage);
	else
		*ret = usage;
	return r;
}

static void clear_uses(TnLookUse *uses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(uses[i].name);
	free(uses);
}

void tn_look_usage_clear(TnLookUsage *usage)
{
	clear_uses(usage->entries, usage->n_entries);
	clear_uses(usage->files, usage->n_files);
	*usage = (TnLookUsage){0};
}
