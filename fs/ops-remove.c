/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names go (UNLINK, RMDIR) and move (RENAME, RENAME2).
 *
 * All of it under the tree lock as the only writer. An inode that loses its last name
 * while the kernel still knows it lives on as an orphan (ops-orphan.c).
 */
#include "charge.h"
#include "journal.h"
#include "ops.h"

#include "macros.h"
#include "nest-pins.h"
#include "sys.h"
#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_unlinkat},
	TN_CALL_RENAMEAT,
	{SYS_getdents64},
};

/* A name and what it stands for now. */
typedef struct Entry {
	uint32_t parent;
	const char *name;
	TnFd dir;
	bool exists;
	struct stat st;
	uint32_t node; /* known to the kernel, or 0 */
} Entry;

static void entry_clear(Entry *entry)
{
	tn_fd_put(&entry->dir);
}
#define ENTRY __attribute__((cleanup(entry_clear))) Entry

/* Finds out about parent/name. 0 also when it does not exist. Caller has the tree lock. */
static int entry_load(TnNest *nest, uint32_t parent, const char *name, Entry *ret)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, parent);
	int r = tn_resolve_dir(nest, parent, &ret->dir);

	ret->parent = parent;
	ret->name = name;
	if (r < 0)
		return r;
	pthread_mutex_lock(lock);
	r = tn_charge_directory_load(nest, tn_node_at(nest->table, parent), ret->dir.fd);
	pthread_mutex_unlock(lock);
	if (r < 0)
		return r;
	if (fstatat(ret->dir.fd, name, &ret->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	ret->exists = true;
	pthread_mutex_lock(&nest->table_lock);
	ret->node = tn_node_by_ino(nest->table, ret->st.st_ino);
	pthread_mutex_unlock(&nest->table_lock);
	return 0;
}

static bool is_last_name(const Entry *entry)
{
	return S_ISDIR(entry->st.st_mode) || entry->st.st_nlink == 1;
}

/* --- an inode loses its last name ------------------------------------------------------ */

/*
 * Does the kernel refer to the inode, and not know how to reach it without this name? It is
 * the inode's last, or the last one known: others may be in the store since before the
 * kernel forgot them.
 */
static bool must_hold(TnNest *nest, const Entry *entry)
{
	bool hold;

	if (!entry->node)
		return false;
	pthread_mutex_lock(&nest->table_lock);
	hold = tn_node_at(nest->table, entry->node)->lookups > 0 &&
	       (is_last_name(entry) ||
		tn_node_is_only_link(nest->table, entry->node, entry->parent, entry->name));
	pthread_mutex_unlock(&nest->table_lock);
	return hold;
}

/* What goes with the inode at once: its charge, when nobody holds it. */
static int load_charge(TnNest *nest, const Entry *entry, TnGone *gone)
{
	bool xattrs = atomic_load(&nest->arena.header->xattr_bytes) > 0;
	bool readable = S_ISREG(entry->st.st_mode) || S_ISDIR(entry->st.st_mode);
	TN_AUTOFD fd = -1;
	int64_t bytes;

	if (readable) {
		fd = tn_open_beneath(entry->dir.fd, entry->name, O_RDONLY | O_NONBLOCK, 0);
		if (fd < 0)
			return fd;
	}
	bytes = tn_store_charge(&nest->store, fd, &entry->st, xattrs && readable);
	if (bytes < 0)
		return (int)bytes;
	if (xattrs && readable) {
		int64_t names = tn_store_xattr_bytes(fd);

		gone->xattrs = names > 0 ? (uint64_t)names : 0;
	}
	gone->bytes = (uint64_t)bytes;
	return 0;
}

/*
 * Before the entry goes: what there is to know of it, also for a successor, and its inode is
 * held if somebody needs it. *ret_move: see tn_hold_take(). 0 or -errno.
 */
static int prepare_gone(TnNest *nest, const Entry *entry, TnGone *ret, bool *ret_move)
{
	*ret = (TnGone){
		.exists = true,
		.ino = entry->st.st_ino,
		.parent = entry->parent,
		.directory = S_ISDIR(entry->st.st_mode),
		.last = is_last_name(entry),
		.in_use = must_hold(nest, entry),
	};
	*ret_move = false;
	if (entry->node)
		ret->node_id = tn_node_at(nest->table, entry->node)->id;
	if (ret->in_use)
		return tn_hold_take(nest, entry->dir.fd, entry->name, &entry->st, entry->node,
				    ret_move);
	return ret->last ? load_charge(nest, entry, ret) : 0;
}

/* It does not go after all. */
static void keep_after_all(TnNest *nest, const Entry *entry, const TnGone *gone)
{
	tn_journal_abandon();
	if (gone->in_use)
		tn_hold_undo(nest, entry->node);
}

static void forget_name(TnNest *nest, const TnGone *gone, const char *name)
{
	TnReleased released = {.nest = nest};
	uint32_t node;

	pthread_mutex_lock(&nest->table_lock);
	node = gone->node_id ? tn_node_by_id(nest->table, gone->node_id) : 0;
	if (node)
		tn_node_remove_link(nest->table, node, gone->parent, name, tn_released_collect,
				    &released);
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
}

/* A directory that lost an entry may have shrunk, on stores where directories do. */
static void settle_shrunk(TnNest *nest, uint32_t index, int dir)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, index);
	TnNode *parent = tn_node_at(nest->table, index);

	if (index == 0)
		return;
	pthread_mutex_lock(lock);
	if (parent->pages > 0) /* loaded by entry_load() */
		tn_charge_directory(nest, parent, dir);
	pthread_mutex_unlock(lock);
}

/*
 * The name has gone from the store: the rest, which may be done again by a successor. The
 * node is looked for by its id, since it may have been forgotten by then.
 */
static void finish_gone(TnNest *nest, const TnGone *gone, const char *name, int dir)
{
	TnChange change = {
		.bytes = -(int64_t)gone->bytes,
		.inodes = -1,
		.xattrs = -(int64_t)gone->xattrs,
		.settles = true,
	};
	uint32_t node = 0;

	pthread_mutex_lock(&nest->table_lock);
	if (gone->in_use)
		node = tn_node_by_id(nest->table, gone->node_id);
	pthread_mutex_unlock(&nest->table_lock);
	tn_kill_point();
	if (node)
		tn_hold_keep(nest, node, gone->last);
	tn_kill_point();
	forget_name(nest, gone, name);
	tn_kill_point();
	settle_shrunk(nest, gone->parent, dir);
	if (gone->last && !gone->in_use && tn_journal_step() != TN_STEP_SETTLED)
		tn_journal_settle(nest, NULL, &change);
}

/* Takes the entry away; its inode too, unless it has other names or is in use. */
static int remove_entry(TnNest *nest, const Entry *entry)
{
	TnNotes notes = {0};
	TnGone *gone = &notes.removed.gone;
	bool move;
	int r = prepare_gone(nest, entry, gone, &move);

	if (r == 0) {
		strcpy(notes.removed.name, entry->name); /* checked by dispatch, or a pin's */
		tn_journal_begin(&notes);
		if (move)
			r = tn_hold_move(nest, entry->dir.fd, entry->name, entry->node);
		else if (unlinkat(entry->dir.fd, entry->name, gone->directory ? AT_REMOVEDIR : 0) <
			 0)
			r = -errno;
	}
	if (r < 0) {
		keep_after_all(nest, entry, gone);
		return r;
	}
	finish_gone(nest, gone, entry->name, entry->dir.fd);
	return 0;
}

/*
 * Did an interrupted attempt take the name away? The VFS holds the parent's lock until the
 * answer, so nobody else can have.
 */
static bool has_gone(const Entry *entry, const TnGone *gone)
{
	return !(entry->exists && entry->st.st_ino == gone->ino);
}

static int remove_existing(TnNest *nest, const Entry *entry, bool directory)
{
	if (!entry->exists)
		return -ENOENT;
	if (S_ISDIR(entry->st.st_mode) != directory)
		return directory ? -ENOTDIR : -EISDIR;
	return remove_entry(nest, entry);
}

static int remove_name(TnRequest *request, bool directory)
{
	ENTRY entry = {.dir = TN_FD_NONE};
	const TnNotes *before = tn_journal_interrupted();
	TnNest *nest = request->nest;
	int r;

	pthread_rwlock_wrlock(&nest->tree);
	r = tn_check_old_name(nest, request->node, request->name);
	if (r == 0)
		r = tn_check_pinned(nest, request->node, request->name, false);
	if (r == 0)
		r = entry_load(nest, request->node, request->name, &entry);
	if (r == 0 && before && has_gone(&entry, &before->removed.gone))
		finish_gone(nest, &before->removed.gone, request->name, entry.dir.fd);
	else if (r == 0)
		r = remove_existing(nest, &entry, directory);
	pthread_rwlock_unlock(&nest->tree);
	return r;
}

int tn_op_unlink(TnRequest *request)
{
	return remove_name(request, false);
}

int tn_op_rmdir(TnRequest *request)
{
	return remove_name(request, true);
}

int tn_remove_if_empty(TnNest *nest, int dir, const char *name, uint64_t *ret_parent)
{
	/* The directory may be one that the kernel does not know: then there is no node. */
	Entry entry = {.name = name, .dir = {.fd = dir}};
	struct stat parent;

	if (fstat(dir, &parent) < 0)
		return -errno;
	pthread_mutex_lock(&nest->table_lock);
	entry.parent = tn_node_by_ino(nest->table, parent.st_ino);
	*ret_parent = entry.parent ? tn_node_at(nest->table, entry.parent)->id : 0;
	pthread_mutex_unlock(&nest->table_lock);
	if (fstatat(dir, name, &entry.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(entry.st.st_mode) &&
	    (!S_ISREG(entry.st.st_mode) || entry.st.st_size > 0 || entry.st.st_nlink > 1))
		return -ENOTEMPTY;
	pthread_mutex_lock(&nest->table_lock);
	entry.node = tn_node_by_ino(nest->table, entry.st.st_ino);
	pthread_mutex_unlock(&nest->table_lock);
	return remove_entry(nest, &entry);
}

/* Is the entry that a killed worker was removing still there? -1: that cannot be told. */
static int is_still_there(TnNest *nest, const TnGone *gone, const char *name, int dir)
{
	uint32_t node = gone->node_id ? tn_node_by_id(nest->table, gone->node_id) : 0;
	char orphan[TN_ORPHAN_NAME_MAX];
	struct stat st;

	if (dir >= 0)
		return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == gone->ino;
	if (!gone->in_use || !node)
		return -1;
	if (tn_node_at(nest->table, node)->held_fd >= 0)
		return fstat(tn_node_at(nest->table, node)->held_fd, &st) == 0 && st.st_nlink > 0;
	tn_orphan_name(orphan, gone->node_id);
	return fstatat(nest->store.orphans, orphan, &st, AT_SYMLINK_NOFOLLOW) < 0;
}

void tn_remove_resume(TnNest *nest)
{
	const TnNotes *before = tn_journal_interrupted();
	const TnGone *gone;
	const char *name;
	TN_FD dir = TN_FD_NONE;
	int there;

	if (!before)
		return;
	gone = &before->removed.gone;
	name = before->removed.name;
	if (gone->parent && tn_resolve_dir(nest, gone->parent, &dir) < 0)
		dir = TN_FD_NONE;
	there = is_still_there(nest, gone, name, dir.fd);
	if (there == 0)
		finish_gone(nest, gone, name, dir.fd);
	else if (there < 0)
		tn_nest_recharge(nest);
}

/* --- RENAME ------------------------------------------------------------------------------ */

/* Does the tree below dir hold a name that the rest of a rule's pattern matches? */
static bool holds_match(int dir, const char *const *pattern, size_t n);

static bool directory_matches(int dir, const char *name, const char *const *pattern, size_t n)
{
	TN_AUTOFD below = -1;
	struct stat st;

	/* Not faccessat(2): it leaves the daemon's capabilities aside. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT;
	if (n == 0 || !S_ISDIR(st.st_mode))
		return n == 0;
	below = tn_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return below < 0 || holds_match(below, pattern, n); /* cannot look: as if it did */
}

static bool holds_match(int dir, const char *const *pattern, size_t n)
{
	struct dirent *item;
	bool found = false;
	DIR *stream;
	int copy;

	if (!strpbrk(pattern[0], "*?["))
		return directory_matches(dir, pattern[0], pattern + 1, n - 1);
	copy = tn_open_beneath(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	stream = copy < 0 ? NULL : fdopendir(copy);
	if (!stream) {
		if (copy >= 0)
			close(copy);
		return true; /* cannot look: as if it did */
	}
	while (!found && (item = readdir(stream))) {
		found = strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0 &&
			tn_policy_component_matches(pattern[0], item->d_name) &&
			directory_matches(dir, item->d_name, pattern + 1, n - 1);
	}
	closedir(stream);
	return found;
}

typedef struct BelowSearch {
	int dir;
	TnVerdict strictest;
} BelowSearch;

static bool search_below(const char *const *pattern, size_t n, TnVerdict verdict, void *data)
{
	BelowSearch *search = data;

	if (verdict > search->strictest && holds_match(search->dir, pattern, n))
		search->strictest = verdict;
	return search->strictest == TN_DENIED;
}

/*
 * A directory moves: no rule may hold for a place inside it, at the end it comes from (the
 * place would get out of the rule) or at the end it goes to (a name would come to be that
 * nobody could have made). 0, -EACCES or -EROFS.
 */
static int check_inside(TnNest *nest, const Entry *moved, uint32_t parent, const char *name)
{
	const char *components[TN_RULE_DEPTH_MAX];
	char copies[TN_RULE_DEPTH_MAX][NAME_MAX + 1];
	BelowSearch search = {.strictest = TN_ALLOWED};
	TN_AUTOFD dir = -1;
	TnSubtree subtree;
	size_t n, most = tn_policy_depth(nest->policy);

	if (!S_ISDIR(moved->st.st_mode) || most < 2)
		return 0;
	pthread_mutex_lock(&nest->table_lock);
	n = tn_node_place(nest->table, parent, name, components, most, &subtree);
	for (size_t i = 0; i < n; i++) {
		strcpy(copies[i], components[i]); /* names are at most NAME_MAX: dispatch checks */
		components[i] = copies[i];
	}
	pthread_mutex_unlock(&nest->table_lock);
	dir = tn_open_beneath(moved->dir.fd, moved->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return dir;
	search.dir = dir;
	tn_policy_each_below(nest->policy, subtree, components, n, search_below, &search);
	if (search.strictest == TN_ALLOWED)
		return 0;
	return tn_refused(nest, parent, name, search.strictest == TN_DENIED ? -EACCES : -EROFS);
}

static int check_rename(TnNest *nest, const Entry *from, const Entry *to, unsigned flags)
{
	int r = check_inside(nest, from, to->parent, to->name);

	if (r == 0)
		r = check_inside(nest, from, from->parent, from->name);
	if (r == 0 && (flags & RENAME_EXCHANGE)) {
		r = check_inside(nest, to, from->parent, from->name);
		if (r == 0)
			r = check_inside(nest, to, to->parent, to->name);
	}
	return r;
}

/* Undoes tn_hold_move(). */
static void put_back(TnNest *nest, const Entry *entry)
{
	char orphan[TN_ORPHAN_NAME_MAX];

	tn_orphan_name(orphan, tn_node_at(nest->table, entry->node)->id);
	renameat(nest->store.orphans, orphan, entry->dir.fd, entry->name);
}

/* The names change places, or the old one becomes the new one, in the node table. */
static void move_names(TnNest *nest, const Entry *from, const Entry *to, bool exchange)
{
	TnReleased released = {.nest = nest};

	pthread_mutex_lock(&nest->table_lock);
	if (from->node && tn_node_has_link(nest->table, from->node, from->parent, from->name)) {
		tn_node_add_link(nest->table, from->node, to->parent, to->name);
		tn_node_remove_link(nest->table, from->node, from->parent, from->name,
				    tn_released_collect, &released);
	}
	if (exchange && to->node && tn_node_has_link(nest->table, to->node, to->parent, to->name)) {
		tn_node_add_link(nest->table, to->node, from->parent, from->name);
		tn_node_remove_link(nest->table, to->node, to->parent, to->name,
				    tn_released_collect, &released);
	}
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
}

/* Charges what the new directory grew; a rename is not undone for it. */
static void settle_renamed(TnNest *nest, const Entry *from, const Entry *to)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, to->parent);

	pthread_mutex_lock(lock);
	tn_charge_directory(nest, tn_node_at(nest->table, to->parent), to->dir.fd);
	pthread_mutex_unlock(lock);
	if (from->parent != to->parent)
		settle_shrunk(nest, from->parent, from->dir.fd);
}

/* The store has renamed: the rest, which may be done again by a successor. */
static void finish_rename(TnNest *nest, Entry *from, Entry *to, const TnNotes *notes,
			  unsigned flags)
{
	const TnGone *replaced = &notes->renamed.replaced;
	bool exchange = flags & RENAME_EXCHANGE;

	if (replaced->exists && !exchange)
		finish_gone(nest, replaced, to->name, to->dir.fd);
	pthread_mutex_lock(&nest->table_lock);
	from->node =
		notes->renamed.node_id ? tn_node_by_id(nest->table, notes->renamed.node_id) : 0;
	to->node =
		exchange && replaced->node_id ? tn_node_by_id(nest->table, replaced->node_id) : 0;
	pthread_mutex_unlock(&nest->table_lock);
	move_names(nest, from, to, exchange);
	tn_kill_point();
	settle_renamed(nest, from, to);
}

static int do_rename(TnNest *nest, Entry *from, Entry *to, unsigned flags)
{
	TnNotes notes = {0};
	TnGone *replaced = &notes.renamed.replaced;
	bool exchange = flags & RENAME_EXCHANGE, move = false;
	int r = 0;

	notes.renamed.ino = from->st.st_ino;
	if (from->node)
		notes.renamed.node_id = tn_node_at(nest->table, from->node)->id;
	if (exchange) {
		*replaced = (TnGone){.exists = true, .ino = to->st.st_ino};
		if (to->node)
			replaced->node_id = tn_node_at(nest->table, to->node)->id;
	} else if (to->exists) {
		r = prepare_gone(nest, to, replaced, &move);
	}
	if (r == 0) {
		tn_journal_begin(&notes);
		if (move)
			r = tn_hold_move(nest, to->dir.fd, to->name, to->node);
		tn_kill_point();
		if (r == 0 && renameat2(from->dir.fd, from->name, to->dir.fd, to->name, flags) < 0)
			r = -errno;
	}
	if (r < 0) {
		if (move)
			put_back(nest, to);
		if (!exchange)
			keep_after_all(nest, to, replaced);
		tn_journal_abandon();
		return r;
	}
	finish_rename(nest, from, to, &notes, flags);
	return 0;
}

/*
 * What an interrupted attempt has come to. 1: the store has renamed; 0: it has not, and what
 * it had moved out of the way is back.
 */
static int look_at_interrupted(TnNest *nest, const Entry *from, Entry *to, const TnNotes *notes,
			       unsigned flags)
{
	const TnGone *replaced = &notes->renamed.replaced;

	if (to->exists && to->st.st_ino == notes->renamed.ino &&
	    (!(flags & RENAME_EXCHANGE) || (from->exists && from->st.st_ino == replaced->ino)))
		return 1;
	if (!to->exists && replaced->exists && replaced->in_use) {
		pthread_mutex_lock(&nest->table_lock);
		to->node = tn_node_by_id(nest->table, replaced->node_id);
		pthread_mutex_unlock(&nest->table_lock);
		if (to->node)
			put_back(nest, to);
	}
	tn_journal_abandon();
	return 0;
}

static int load_both(TnNest *nest, Entry *from, Entry *to, TnRequest *request, uint32_t to_parent)
{
	int r = entry_load(nest, request->node, request->name, from);

	return r < 0 ? r : entry_load(nest, to_parent, request->name2, to);
}

/* What rename(2) says of the two names before anything moves. 0, 1: nothing to do, or -errno. */
static int check_both(const Entry *from, const Entry *to, unsigned flags)
{
	if (!from->exists || (!to->exists && (flags & RENAME_EXCHANGE)))
		return -ENOENT;
	if (!to->exists)
		return 0;
	if (flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (from->st.st_ino == to->st.st_ino)
		return 1;
	if (!(flags & RENAME_EXCHANGE) && S_ISDIR(from->st.st_mode) != S_ISDIR(to->st.st_mode))
		return S_ISDIR(to->st.st_mode) ? -EISDIR : -ENOTDIR;
	return 0;
}

/* What rules, subtrees and pins say of the two names; true as long as the tree lock is held. */
static int check_names(TnRequest *request, uint32_t to_parent, unsigned flags)
{
	TnNest *nest = request->nest;
	uint8_t from_subtree, to_subtree;
	int r = tn_check_old_name(nest, request->node, request->name);

	if (r == 0)
		r = flags & RENAME_EXCHANGE ? tn_check_old_name(nest, to_parent, request->name2)
					    : tn_check_new_name(nest, to_parent, request->name2);
	if (r < 0)
		return r;
	pthread_mutex_lock(&nest->table_lock);
	from_subtree = tn_node_at(nest->table, request->node)->subtree;
	to_subtree = tn_node_at(nest->table, to_parent)->subtree;
	pthread_mutex_unlock(&nest->table_lock);
	if (from_subtree != to_subtree)
		return -EXDEV;
	r = tn_check_pinned(nest, request->node, request->name, true);
	if (r == 0)
		r = tn_check_pinned(nest, to_parent, request->name2, flags & RENAME_EXCHANGE);
	return r;
}

/* Caller holds the tree lock, names and rules allow it. */
static int rename_loaded(TnRequest *request, uint32_t to_parent, Entry *from, Entry *to,
			 unsigned flags)
{
	const TnNotes *before = tn_journal_interrupted();
	TnNest *nest = request->nest;
	int r = load_both(nest, from, to, request, to_parent);

	if (r == 0 && before) {
		if (look_at_interrupted(nest, from, to, before, flags) == 1) {
			finish_rename(nest, from, to, before, flags);
			return 0;
		}
		entry_clear(from);
		entry_clear(to);
		*from = *to = (Entry){.dir = TN_FD_NONE};
		r = load_both(nest, from, to, request, to_parent);
	}
	if (r == 0)
		r = check_both(from, to, flags);
	if (r == 1) /* two names of one inode: nothing to do */
		return 0;
	if (r == 0)
		r = check_rename(nest, from, to, flags);
	if (r == 0 && !request->again && !to->exists && from->parent != to->parent)
		r = tn_check_room_for_name(nest, false);
	return r < 0 ? r : do_rename(nest, from, to, flags);
}

static int rename_entry(TnRequest *request, uint64_t new_parent, unsigned flags)
{
	ENTRY from = {.dir = TN_FD_NONE}, to = {.dir = TN_FD_NONE};
	TnNest *nest = request->nest;
	uint32_t to_parent;
	int r;

	if ((flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) ||
	    flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	pthread_mutex_lock(&nest->table_lock);
	to_parent = tn_node_by_id(nest->table, new_parent);
	pthread_mutex_unlock(&nest->table_lock);
	if (!to_parent)
		return -ENOENT;
	pthread_rwlock_wrlock(&nest->tree);
	r = check_names(request, to_parent, flags);
	if (r == 0)
		r = rename_loaded(request, to_parent, &from, &to, flags);
	pthread_rwlock_unlock(&nest->tree);
	return r;
}

int tn_op_rename(TnRequest *request)
{
	const struct fuse_rename_in *in = (const void *)request->arg;

	return rename_entry(request, in->newdir, 0);
}

int tn_op_rename2(TnRequest *request)
{
	const struct fuse_rename2_in *in = (const void *)request->arg;

	return rename_entry(request, in->newdir, in->flags);
}
