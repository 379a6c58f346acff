/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names come to be known (LOOKUP, FORGET) and come to be (MKNOD, MKDIR, SYMLINK, LINK).
 *
 * The VFS holds the parent's lock until the answer, so of one name only one request is
 * under way; the tree lock keeps the parent's own place still: what the rules say of a new
 * name is true only under it.
 */
#include "charge.h"
#include "journal.h"
#include "ops.h"

#include "macros.h"
#include "nest-pins.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

TN_SYSCALLS = {
	{SYS_mkdirat}, {SYS_mknodat},  {SYS_symlinkat},
	{SYS_linkat},  {SYS_unlinkat}, {SYS_renameat2},
};

/* --- LOOKUP, FORGET ------------------------------------------------------------------ */

/* "There is no such name", for that long unless somebody makes it. */
static int reply_missing(TnRequest *request, uint64_t seconds)
{
	struct fuse_entry_out *entry = tn_reply_alloc(request, sizeof(*entry));

	entry->entry_valid = seconds;
	return 0;
}

/*
 * Looks and enters what is found under one lock: a revalidating LOOKUP comes without the
 * parent's lock, and the name must not go in between.
 */
static int find_name(TnRequest *request, struct fuse_entry_out *ret)
{
	TnNest *nest = request->nest;
	TN_FD dir = TN_FD_NONE;
	struct stat st;
	int r;

	pthread_rwlock_rdlock(&nest->tree);
	r = tn_resolve_dir(nest, request->node, &dir);
	if (r == 0 && fstatat(dir.fd, request->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0)
		r = tn_fill_entry(request, request->node, request->name, &st, ret);
	pthread_rwlock_unlock(&nest->tree);
	return r;
}

int tn_op_lookup(TnRequest *request)
{
	TnNest *nest = request->nest;
	struct fuse_entry_out entry;
	int r;

	if (tn_verdict_of_name(nest, request->node, request->name) == TN_DENIED) {
		tn_refused(nest, request->node, request->name, -ENOENT);
		/* The rule may go, and the kernel could not be told of every name. */
		return reply_missing(request, 0);
	}
	r = find_name(request, &entry);
	if (r == -ENOENT)
		return reply_missing(request, TN_VALID_SECONDS);
	if (r < 0)
		return r;
	memcpy(tn_reply_alloc(request, sizeof(entry)), &entry, sizeof(entry));
	return 0;
}

static void forget(TnNest *nest, uint64_t nodeid, uint64_t count)
{
	TnReleased released = {.nest = nest};
	uint32_t index;

	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_by_id(nest->table, nodeid);
	if (index)
		tn_node_forget(nest->table, index, count, tn_released_collect, &released);
	else
		tn_journal_take_none();
	pthread_mutex_unlock(&nest->table_lock);
	tn_released_finish(&released);
}

int tn_op_forget(TnRequest *request)
{
	const struct fuse_forget_in *in = (const void *)request->arg;

	if (request->again && tn_journal_taken() > 0)
		return TN_NO_REPLY;
	forget(request->nest, request->in->nodeid, in->nlookup);
	return TN_NO_REPLY;
}

int tn_op_batch_forget(TnRequest *request)
{
	const struct fuse_batch_forget_in *in = (const void *)request->arg;
	const struct fuse_forget_one *one = (const void *)(request->arg + sizeof(*in));
	size_t most = (request->arg_size - sizeof(*in)) / sizeof(*one);

	/* From where an earlier attempt came to: nothing is taken back twice. */
	for (size_t i = request->again ? tn_journal_taken() : 0; i < in->count && i < most; i++)
		forget(request->nest, one[i].nodeid, one[i].nlookup);
	return TN_NO_REPLY;
}

/* --- new entries ---------------------------------------------------------------------- */

/* One entry in the making: its kind, and what it takes of the account. */
typedef struct NewEntry {
	uint32_t parent;
	const char *name;
	mode_t mode;
	const char *target; /* of a symlink */
	uint64_t bytes;     /* charged besides the inode */
	int fd;             /* of a regular file just made, to be written to next; or -1 */
} NewEntry;

static void new_entry_clear(NewEntry *new)
{
	tn_close(&new->fd);
}
#define NEW_ENTRY __attribute__((cleanup(new_entry_clear))) NewEntry

/* An earlier attempt of this request has made it: the VFS kept everybody else off the name. */
static bool is_made(int dir, const NewEntry *new)
{
	struct stat st;

	return fstatat(dir, new->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_mode & S_IFMT) == (new->mode &S_IFMT);
}

/* Opened as well: who makes a file mostly writes to it, and that would have to open it. */
static int make_file(int dir, NewEntry *new)
{
	new->fd = tn_open_beneath(dir, new->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
				  new->mode & 07777);
	if (new->fd != -EMFILE &&new->fd != -ENFILE)
		return new->fd < 0 ? new->fd : 0;
	return mknodat(dir, new->name, new->mode, 0) < 0 ? -errno : 0;
}

static int make(int dir, NewEntry *new)
{
	int r;

	if (S_ISREG(new->mode))
		return make_file(dir, new);
	if (S_ISDIR(new->mode))
		r = mkdirat(dir, new->name, new->mode & 07777);
	else if (S_ISLNK(new->mode))
		r = symlinkat(new->target, dir, new->name);
	else
		r = mknodat(dir, new->name, new->mode, 0);
	return r < 0 ? -errno : 0;
}

/* Charges what the directory grew by taking the name; undoes the entry when that is too much. */
static int settle_directory(TnNest *nest, const NewEntry *new, int dir)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, new->parent);
	int r;

	pthread_mutex_lock(lock);
	r = tn_charge_directory(nest, tn_node_at(nest->table, new->parent), dir);
	pthread_mutex_unlock(lock);
	if (r < 0)
		unlinkat(dir, new->name, S_ISDIR(new->mode) ? AT_REMOVEDIR : 0);
	return r;
}

/* Enters what was just made into the node table, or takes it away again. */
static int hand_over(TnRequest *request, NewEntry *new, int dir, struct stat *ret_st,
		     struct fuse_entry_out *ret)
{
	TnNest *nest = request->nest;
	int r = new->fd >= 0 ? fstat(new->fd, ret_st)
			     : fstatat(dir, new->name, ret_st, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		r = -errno;
	if (r == 0)
		r = tn_fill_entry(request, new->parent, new->name, ret_st, ret);
	if (r < 0)
		unlinkat(dir, new->name, S_ISDIR(new->mode) ? AT_REMOVEDIR : 0);
	if (r == 0 && new->fd >= 0) {
		TN_FD kept =
			tn_fdcache_add(nest->files, nest->id, ret->nodeid, tn_steal_fd(&new->fd));
	}
	return r;
}

static int make_entry(TnRequest *request, NewEntry *new, struct stat *ret_st,
		      struct fuse_entry_out *ret)
{
	TnNest *nest = request->nest;
	pthread_mutex_t *lock = tn_nest_node_lock(nest, new->parent);
	TN_FD dir = TN_FD_NONE;
	int r = tn_resolve_dir(nest, new->parent, &dir);

	if (r < 0)
		return r;
	pthread_mutex_lock(lock);
	r = tn_charge_directory_load(nest, tn_node_at(nest->table, new->parent), dir.fd);
	pthread_mutex_unlock(lock);
	if (r < 0)
		return r;
	tn_request_become_caller(request);
	tn_kill_point();
	r = make(dir.fd, new);
	tn_kill_point();
	if (r == -EEXIST && request->again && is_made(dir.fd, new))
		r = 0;
	if (r == 0)
		r = settle_directory(nest, new, dir.fd);
	tn_kill_point();
	return r < 0 ? r : hand_over(request, new, dir.fd, ret_st, ret);
}

/* A fresh inode has no data yet: its charge is known without asking the store. */
static void note_new_charge(TnNest *nest, uint64_t nodeid, mode_t mode)
{
	uint32_t index;

	if (S_ISLNK(mode))
		return;
	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_by_id(nest->table, nodeid);
	pthread_mutex_unlock(&nest->table_lock);
	pthread_mutex_lock(tn_nest_node_lock(nest, index));
	tn_charge_note(tn_node_at(nest->table, index), 0, 0);
	pthread_mutex_unlock(tn_nest_node_lock(nest, index));
}

/* May the name come to be? The answer holds as long as the tree lock is held. */
static int check_new(TnNest *nest, const NewEntry *new)
{
	int r = tn_check_new_name(nest, new->parent, new->name);

	/* bwrap makes files and directories at a pin, never links: what it would follow. */
	if (r == 0 && S_ISLNK(new->mode))
		r = tn_check_pinned(nest, new->parent, new->name, true);
	return r;
}

/* What an earlier attempt had reserved may have been taken by others since it died. */
static int reserve(TnRequest *request, const NewEntry *new, TnReservation *ret)
{
	TnNest *nest = request->nest;
	TN_FD dir = TN_FD_NONE;
	int r;

	if (tn_journal_step() == TN_STEP_SETTLED)
		return 0;
	r = tn_nest_reserve(nest, new->bytes, 1, ret);
	if (r == -ENOSPC && request->again && tn_resolve_dir(nest, new->parent, &dir) == 0 &&
	    is_made(dir.fd, new))
		r = 0;
	return r;
}

static int create(TnRequest *request, NewEntry *new)
{
	TN_RESERVATION reservation = {0};
	TnChange change = {.bytes = (int64_t) new->bytes, .inodes = 1, .settles = true};
	TnNest *nest = request->nest;
	struct fuse_entry_out entry;
	struct stat st;
	int r = check_new(nest, new); /* so that a refusal comes before a lack of space */

	if (r == 0 && !request->again)
		r = tn_check_room_for_name(nest, true);
	if (r == 0)
		r = reserve(request, new, &reservation);
	if (r < 0)
		return r;
	pthread_rwlock_rdlock(&nest->tree);
	r = check_new(nest, new);
	if (r == 0)
		r = make_entry(request, new, &st, &entry);
	pthread_rwlock_unlock(&nest->tree);
	if (r < 0)
		return r;
	note_new_charge(nest, entry.nodeid, st.st_mode);
	if (tn_journal_step() != TN_STEP_SETTLED)
		tn_journal_settle(nest, &reservation, &change);
	memcpy(tn_reply_alloc(request, sizeof(entry)), &entry, sizeof(entry));
	return 0;
}

int tn_create_file(TnRequest *request, mode_t mode)
{
	NEW_ENTRY new = {
		.parent = request->node,
		.name = request->name,
		.mode = S_IFREG | (mode & 07777),
		.fd = -1,
	};

	return create(request, &new);
}

int tn_op_mknod(TnRequest *request)
{
	const struct fuse_mknod_in *in = (const void *)request->arg;
	NEW_ENTRY new = {
		.parent = request->node,
		.name = request->name,
		.mode = in->mode,
		.fd = -1,
	};

	switch (in->mode & S_IFMT) {
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		return create(request, &new);
	case S_IFCHR:
	case S_IFBLK:
		return -EPERM;
	default:
		return -EINVAL;
	}
}

int tn_op_mkdir(TnRequest *request)
{
	const struct fuse_mkdir_in *in = (const void *)request->arg;
	NewEntry new = {
		.parent = request->node,
		.name = request->name,
		.mode = S_IFDIR | (in->mode & 07777),
		.fd = -1,
	};

	return create(request, &new);
}

int tn_op_symlink(TnRequest *request)
{
	NewEntry new = {
		.parent = request->node,
		.name = request->name,
		.mode = S_IFLNK | 0777,
		.target = request->name2,
		.bytes = strlen(request->name2),
		.fd = -1,
	};

	return create(request, &new);
}

/* --- LINK ------------------------------------------------------------------------------ */

/* An unlinked file has no way back (-ENOENT); *ret: an unnamed one lies in orphans/. */
static int check_linkable(TnNest *nest, uint32_t index, bool *ret)
{
	uint32_t flags;

	pthread_mutex_lock(&nest->table_lock);
	flags = tn_node_at(nest->table, index)->flags;
	pthread_mutex_unlock(&nest->table_lock);
	*ret = (flags & TN_NODE_UNNAMED) && (flags & TN_NODE_IN_ORPHANS);
	return (flags & TN_NODE_ORPHAN) && !(flags & TN_NODE_UNNAMED) ? -ENOENT : 0;
}

/* An earlier attempt of this request has made the link. */
static bool is_linked(TnNest *nest, uint32_t index, int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == tn_node_at(nest->table, index)->ino;
}

static int link_place(TnNest *nest, uint32_t index, int dir, const char *name)
{
	TN_PLACE from = {.dir = TN_FD_NONE};
	bool is_unnamed;
	char path[32];
	int r = check_linkable(nest, index, &is_unnamed);

	if (r == 0)
		r = tn_resolve_place(nest, index, &from);
	if (r < 0)
		return r;
	if (is_unnamed) {
		/* What has no name but ours gets this one instead. */
		r = renameat2(from.dir.fd, from.name, dir, name, RENAME_NOREPLACE);
	} else if (from.at_flags & AT_EMPTY_PATH) {
		/* linkat(2) takes AT_EMPTY_PATH with CAP_DAC_READ_SEARCH in the initial user
		 * namespace only; the way through /proc needs none. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", from.dir.fd);
		r = linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW);
	} else {
		r = linkat(from.dir.fd, from.name, dir, name, 0);
	}
	return r < 0 ? -errno : 0;
}

static int link_entry(TnRequest *request, uint32_t source, struct fuse_entry_out *ret)
{
	TnNest *nest = request->nest;
	NewEntry new = {
		.parent = request->node,
		.name = request->name,
		.mode = S_IFREG,
		.fd = -1,
	};
	pthread_mutex_t *lock = tn_nest_node_lock(nest, new.parent);
	TN_FD dir = TN_FD_NONE;
	struct stat st;
	int r = tn_resolve_dir(nest, new.parent, &dir);

	if (r < 0)
		return r;
	pthread_mutex_lock(lock);
	r = tn_charge_directory_load(nest, tn_node_at(nest->table, new.parent), dir.fd);
	pthread_mutex_unlock(lock);
	if (r < 0)
		return r;
	tn_kill_point();
	if (!request->again || !is_linked(nest, source, dir.fd, new.name))
		r = link_place(nest, source, dir.fd, new.name);
	tn_kill_point();
	if (r == 0)
		r = settle_directory(nest, &new, dir.fd);
	return r < 0 ? r : hand_over(request, &new, dir.fd, &st, ret);
}

/* The node a LINK starts from; 0 when there is none such. */
static uint32_t link_source(TnNest *nest, uint64_t nodeid, uint8_t *ret_subtree)
{
	uint32_t index;

	pthread_mutex_lock(&nest->table_lock);
	index = tn_node_by_id(nest->table, nodeid);
	*ret_subtree = index ? tn_node_at(nest->table, index)->subtree : (uint8_t)TN_SUBTREE_NONE;
	pthread_mutex_unlock(&nest->table_lock);
	return index;
}

int tn_op_link(TnRequest *request)
{
	const struct fuse_link_in *in = (const void *)request->arg;
	TnNest *nest = request->nest;
	struct fuse_entry_out entry;
	uint8_t from_subtree, to_subtree;
	uint32_t source = link_source(nest, in->oldnodeid, &from_subtree);
	int r;

	link_source(nest, request->in->nodeid, &to_subtree);
	if (!source)
		return -ENOENT;
	r = tn_check_new_name(nest, request->node, request->name);
	if (r == 0 && !request->again)
		r = tn_check_room_for_name(nest, true);
	if (r < 0)
		return r;
	/* As a writer: an unnamed file gives up the descriptor that others may be using. */
	pthread_rwlock_wrlock(&nest->tree);
	r = tn_check_new_name(nest, request->node, request->name);
	if (r == 0)
		r = tn_check_change(nest, source);
	if (r == 0 && from_subtree != to_subtree)
		r = -EXDEV;
	if (r == 0)
		r = link_entry(request, source, &entry);
	if (r == 0)
		tn_hold_adopted(nest, source);
	pthread_rwlock_unlock(&nest->tree);
	if (r < 0)
		return r;
	memcpy(tn_reply_alloc(request, sizeof(entry)), &entry, sizeof(entry));
	return 0;
}
