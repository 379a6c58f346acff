/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "handles.h"

#include "dispatch.h"
#include "journal.h"
#include "log.h"
#include "macros.h"
#include "resolve.h"
#include "sys.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

TN_SYSCALLS = {
	{SYS_fcntl}, /* leases */
	{SYS_setfsuid},
	{SYS_fstat},
};

#define INDEX_MASK UINT64_C(0xffffffff)

static bool writes(uint32_t open_flags)
{
	return (open_flags & O_ACCMODE) != O_RDONLY || (open_flags & O_TRUNC);
}

/* --- records. The table lock is held ------------------------------------------------------- */

static void count(TnNest *nest, const TnHandle *handle, int by)
{
	TnOpened *opened = &nest->arena.opened[handle->node];

	opened->opens += (uint32_t)by;
	nest->open_files += (uint64_t)by;
	if (handle->flags & TN_HANDLE_PLAIN)
		opened->plain += (uint32_t)by;
	if (handle->flags & TN_HANDLE_WRITES) {
		opened->writers += (uint32_t)by;
		nest->open_writers += (uint64_t)by;
	}
}

/* Index of a free record, or 0. */
static uint32_t find_free(TnNest *nest)
{
	TnArenaHeader *header = nest->arena.header;
	uint32_t index = nest->free_handles;

	if (index)
		nest->free_handles = nest->arena.handles[index].next_free;
	else if (header->handles_end < TN_HANDLES_MAX)
		index = header->handles_end++;
	return index;
}

static uint64_t take_record(TnNest *nest, uint32_t node, uint32_t flags)
{
	TnJournal *journal = tn_journal_current();
	uint32_t index = find_free(nest);
	TnHandle *handle = &nest->arena.handles[index];

	if (!index)
		return 0;
	if (journal)
		atomic_store(&journal->handle, index);
	tn_kill_point();
	handle->node = node;
	*(volatile uint32_t *)&handle->generation = handle->generation + 1;
	*(volatile uint32_t *)&handle->flags = flags | TN_HANDLE_USED;
	tn_kill_point();
	count(nest, handle, 1);
	return (uint64_t)handle->generation << 32 | index;
}

static TnHandle *find(TnNest *nest, uint64_t fh)
{
	uint64_t index = fh & INDEX_MASK;
	TnHandle *handle;

	if (index == 0 || index >= nest->arena.header->handles_end)
		return NULL;
	handle = &nest->arena.handles[index];
	return (handle->flags & TN_HANDLE_USED) && handle->generation == fh >> 32 ? handle : NULL;
}

static void free_record(TnNest *nest, TnHandle *handle)
{
	count(nest, handle, -1);
	*(volatile uint32_t *)&handle->flags = 0;
	tn_kill_point();
	handle->next_free = nest->free_handles;
	nest->free_handles = (uint32_t)(handle - nest->arena.handles);
}

/* --- ids -------------------------------------------------------------------------------------- */

static void close_backing(TnNest *nest, int32_t id)
{
	int r = nest->device < 0 ? 0 : tn_keeper_backing_close(nest->keeper, nest->device, id);

	/* ENOENT: a worker was killed between this and noting it. */
	if (r < 0 && r != -ENOENT)
		tn_log(TN_LOG_WARNING, "nest %s: a file of the store stays known to the kernel: %s",
		       nest->name, strerror(-r));
}

/* The store's file, by O_PATH where it is not open anyway. -errno or its descriptor. */
static int open_path(TnNest *nest, uint32_t index)
{
	TN_PLACE place = {.dir = TN_FD_NONE};
	int fd, r = tn_resolve_place(nest, index, &place);

	if (r < 0)
		return r;
	if (!(place.at_flags & AT_EMPTY_PATH))
		return tn_open_beneath(place.dir.fd, place.name, O_PATH | O_NOFOLLOW, 0);
	fd = fcntl(place.dir.fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* Caller holds the tree lock and the node's. 0, or -errno: the file goes by READ and WRITE. */
static int open_backing(TnNest *nest, uint32_t index, TnOpened *opened)
{
	TN_FD known = tn_fdcache_get(nest->files, nest->id, tn_node_at(nest->table, index)->id);
	TN_AUTOFD file = known.fd < 0 ? open_path(nest, index) : -1;
	TnBackingFile backing = {
		.nest_id = nest->id,
		.node = index,
		.device = nest->device,
		.file = known.fd < 0 ? file : known.fd,
	};

	return backing.file < 0 ? backing.file
				: tn_keeper_backing_open(nest->keeper, &backing, &opened->backing);
}

static void say_once(TnNest *nest, int error)
{
	if (!atomic_exchange(&nest->said_mediated, true))
		tn_log(TN_LOG_WARNING,
		       "nest %s: the kernel cannot be given a file: %s; it is read and written "
		       "through the daemon",
		       nest->name, strerror(error));
}

/* Which way this open goes; makes the id known when it is the first. Caller holds both locks. */
static bool is_passed_through(TnNest *nest, uint32_t index, TnOpened *opened)
{
	int r;

	if (opened->plain > 0)
		return false;
	if (opened->backing)
		return true;
	r = open_backing(nest, index, opened);
	tn_kill_point();
	if (r < 0)
		say_once(nest, -r);
	return r == 0;
}

int tn_handle_take(TnNest *nest, uint32_t index, uint32_t open_flags, uint64_t *ret_fh,
		   int32_t *ret_backing, bool *ret_first_writer)
{
	TnOpened *opened = &nest->arena.opened[index];
	uint32_t flags = writes(open_flags) ? TN_HANDLE_WRITES : 0;
	int32_t unused = 0;

	pthread_mutex_lock(tn_nest_node_lock(nest, index));
	if (!is_passed_through(nest, index, opened))
		flags |= TN_HANDLE_PLAIN;
	pthread_mutex_lock(&nest->table_lock);
	*ret_fh = take_record(nest, index, flags);
	*ret_backing = flags & TN_HANDLE_PLAIN ? 0 : opened->backing;
	*ret_first_writer = (flags & TN_HANDLE_WRITES) && opened->written == 0;
	if (flags & TN_HANDLE_WRITES)
		opened->written += opened->written == UINT32_MAX ? 2 : 1;
	if (!*ret_fh && opened->opens == 0) {
		unused = opened->backing;
		opened->backing = 0;
	}
	pthread_mutex_unlock(&nest->table_lock);
	if (unused)
		close_backing(nest, unused);
	pthread_mutex_unlock(tn_nest_node_lock(nest, index));
	return *ret_fh ? 0 : -ENFILE;
}

void tn_handle_release(TnNest *nest, uint64_t fh)
{
	uint32_t index;
	TnHandle *handle;
	TnOpened *opened;
	int32_t id = 0;

	pthread_mutex_lock(&nest->table_lock);
	handle = find(nest, fh);
	index = handle ? handle->node : 0;
	pthread_mutex_unlock(&nest->table_lock);
	if (!index)
		return;
	/* The node's lock first: nobody may open it anew between its last end and the id's. */
	pthread_mutex_lock(tn_nest_node_lock(nest, index));
	pthread_mutex_lock(&nest->table_lock);
	opened = &nest->arena.opened[index];
	handle = find(nest, fh);
	if (handle)
		free_record(nest, handle);
	if (opened->opens == 0)
		id = opened->backing;
	pthread_mutex_unlock(&nest->table_lock);
	if (id) {
		close_backing(nest, id);
		tn_kill_point();
		*(volatile int32_t *)&opened->backing = 0;
	}
	pthread_mutex_unlock(tn_nest_node_lock(nest, index));
}

/* --- attributes --------------------------------------------------------------------------------
 */

/* Leases are for a file's owner. */
static bool can_lease(int file, uid_t owner)
{
	int before = setfsuid(owner);
	bool can = fcntl(file, F_SETLEASE, F_RDLCK) == 0;

	if (can)
		(void)fcntl(file, F_SETLEASE, F_UNLCK);
	setfsuid((uid_t)before);
	return can;
}

/*
 * Does anybody still have the store's file open for writing, be it by a mapping alone? A lease
 * for reading is given only when nobody has (check_conflicting_open() in fs/locks.c).
 */
static bool is_written(TnNest *nest, uint32_t index)
{
	TN_PLACE place = {.dir = TN_FD_NONE};
	TN_AUTOFD file = -1;
	struct stat st;

	tn_fdcache_drop(nest->files, nest->id, tn_node_at(nest->table, index)->id);
	pthread_rwlock_rdlock(&nest->tree);
	if (tn_resolve_place(nest, index, &place) == 0)
		file = place.at_flags & AT_EMPTY_PATH ? tn_reopen(place.dir.fd, O_RDONLY)
						      : tn_open_beneath(place.dir.fd, place.name,
									O_RDONLY | O_NOFOLLOW, 0);
	pthread_rwlock_unlock(&nest->tree);
	return file < 0 || fstat(file, &st) < 0 || !can_lease(file, st.st_uid);
}

uint64_t tn_attr_valid(const TnNest *nest, uint32_t index)
{
	return nest->data_path == TN_PATH_PASSTHROUGH && nest->arena.opened[index].written
		       ? 0
		       : TN_VALID_SECONDS;
}

void tn_opened_look(TnNest *nest, uint32_t index)
{
	TnOpened *opened = &nest->arena.opened[index];
	uint32_t before;
	bool is_open;

	if (nest->data_path != TN_PATH_PASSTHROUGH)
		return;
	pthread_mutex_lock(&nest->table_lock);
	before = opened->written;
	is_open = opened->writers > 0;
	pthread_mutex_unlock(&nest->table_lock);
	if (!before || is_open || is_written(nest, index))
		return;
	pthread_mutex_lock(&nest->table_lock);
	if (opened->written == before && opened->writers == 0)
		opened->written = 0;
	pthread_mutex_unlock(&nest->table_lock);
}

/* --- ends ---------------------------------------------------------------------------------------
 */

void tn_opened_forget(TnNest *nest, uint32_t index)
{
	TnOpened *opened = &nest->arena.opened[index];

	if (nest->data_path != TN_PATH_PASSTHROUGH)
		return;
	/* A RELEASE always comes before: what is left is of one that was lost. */
	for (uint32_t i = 1; opened->opens > 0 && i < nest->arena.header->handles_end; i++) {
		TnHandle *handle = &nest->arena.handles[i];

		if ((handle->flags & TN_HANDLE_USED) && handle->node == index)
			free_record(nest, handle);
	}
	if (opened->backing)
		close_backing(nest, opened->backing);
	*opened = (TnOpened){0};
}

void tn_opened_reset(TnNest *nest)
{
	TnArenaHeader *header = nest->arena.header;

	/* tn_arena_trim() gives the records back. */
	nest->open_files = nest->open_writers = 0;
	nest->free_handles = 0;
	header->handles_end = 1;
}

/* --- after a worker's death ----------------------------------------------------------------------
 */

void tn_handle_take_back(TnNest *nest)
{
	TnJournal *journal = tn_journal_current();
	uint32_t index = atomic_load(&journal->handle);

	if (index == 0 || index >= nest->arena.header->handles_end)
		return;
	*(volatile uint32_t *)&nest->arena.handles[index].flags = 0;
	tn_kill_point();
	atomic_store(&journal->handle, 0);
}

/* What the keeper made known, and the dead worker could not note. */
static void close_unnoted(TnNest *nest)
{
	TnStateBacking *note = nest->state ? &nest->state->backing : NULL;
	int32_t id = note ? atomic_load(&note->id) : 0;

	if (id > 0 && note->nest_id == nest->id && note->device == nest->device &&
	    note->node < nest->arena.header->nodes_end &&
	    nest->arena.opened[note->node].backing != id) {
		close_backing(nest, id);
		atomic_store(&note->id, 0);
	}
}

void tn_opened_adopt(TnNest *nest)
{
	TnArenaHeader *header = nest->arena.header;

	if (nest->data_path != TN_PATH_PASSTHROUGH)
		return;
	for (uint32_t i = 1; i < header->nodes_end; i++) {
		TnOpened *opened = &nest->arena.opened[i];

		opened->opens = opened->writers = opened->plain = 0;
	}
	for (uint32_t i = 1; i < header->handles_end; i++) {
		TnHandle *handle = &nest->arena.handles[i];

		if ((handle->flags & TN_HANDLE_USED) && handle->node < header->nodes_end &&
		    nest->arena.nodes[handle->node].id) {
			count(nest, handle, 1);
		} else {
			handle->flags = 0;
			handle->next_free = nest->free_handles;
			nest->free_handles = i;
		}
	}
	close_unnoted(nest);
	for (uint32_t i = 1; i < header->nodes_end; i++) {
		TnOpened *opened = &nest->arena.opened[i];

		if (opened->backing && opened->opens == 0) {
			close_backing(nest, opened->backing);
			opened->backing = 0;
		}
	}
}
