/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * READDIR and READDIRPLUS. There is no handle: the offset the kernel sends is the store's
 * own directory position (d_off), which survives removals. Denied names are not listed.
 */
#include "ops.h"

#include "macros.h"
#include "syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

TN_SYSCALLS = {
	{SYS_getdents64},
	{SYS_fsync},
};

#define DIRENT_BYTES 32768

/* As getdents64(2) fills it. */
typedef struct StoreEntry {
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
} StoreEntry;

/* Positions and reads under the directory's lock: the descriptor is shared. Bytes or -errno. */
static ssize_t read_entries(TnNest *nest, uint32_t index, int dir, uint64_t offset, void *buffer)
{
	pthread_mutex_t *lock = tn_nest_node_lock(nest, index);
	ssize_t n;

	pthread_mutex_lock(lock);
	if (lseek(dir, (off_t)offset, SEEK_SET) < 0)
		n = -errno;
	else {
		n = syscall(SYS_getdents64, dir, buffer, DIRENT_BYTES);
		if (n < 0)
			n = -errno;
	}
	pthread_mutex_unlock(lock);
	return n;
}

static void fill_dirent(struct fuse_dirent *out, const StoreEntry *entry, size_t length)
{
	out->ino = entry->ino;
	out->off = (uint64_t)entry->next;
	out->namelen = (uint32_t)length;
	out->type = entry->type;
	memcpy(out->name, entry->name, length);
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Adds one entry to the reply; false when it does not fit any more. */
static bool add_plain(TnRequest *request, const StoreEntry *entry, size_t room)
{
	size_t length = strlen(entry->name);
	size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);

	if (request->reply_size + size > room)
		return false;
	fill_dirent(tn_reply_alloc(request, size), entry, length);
	return true;
}

/* The same with attributes; an entry that is gone by now is left out. */
static bool add_plus(TnRequest *request, int dir, const StoreEntry *entry, size_t room)
{
	size_t length = strlen(entry->name);
	size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + length);
	struct fuse_entry_out entry_out = {0};
	struct fuse_direntplus *out;
	struct stat st;

	if (request->reply_size + size > room)
		return false;
	/* nodeid 0 makes the kernel take the name alone. */
	if (!is_dot(entry->name)) {
		if (fstatat(dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				return true;
		} else if (tn_fill_entry(request, request->node, entry->name, &st, &entry_out) < 0)
			entry_out = (struct fuse_entry_out){0};
	}
	out = tn_reply_alloc(request, size);
	out->entry_out = entry_out;
	fill_dirent(&out->dirent, entry, length);
	return true;
}

static int list(TnRequest *request, int dir, uint64_t offset, size_t room, bool plus)
{
	TnNest *nest = request->nest;
	_Alignas(StoreEntry) uint8_t buffer[DIRENT_BYTES];

	for (;;) {
		ssize_t n = read_entries(nest, request->node, dir, offset, buffer);

		if (n <= 0)
			return request->reply_size > 0 ? 0 : (int)n;
		for (ssize_t at = 0; at < n;) {
			const StoreEntry *entry = (const void *)(buffer + at);
			bool fits = true;

			if (is_dot(entry->name) ||
			    tn_verdict_of_name(nest, request->node, entry->name) != TN_DENIED)
				fits = plus ? add_plus(request, dir, entry, room)
					    : add_plain(request, entry, room);
			if (!fits)
				return 0;
			offset = (uint64_t)entry->next;
			at += entry->size;
		}
	}
}

static int read_directory(TnRequest *request, bool plus)
{
	const struct fuse_read_in *in = (const void *)request->arg;
	size_t room = in->size < TN_MAX_WRITE ? in->size : TN_MAX_WRITE;
	TN_FD dir = TN_FD_NONE;
	int r;

	pthread_rwlock_rdlock(&request->nest->tree);
	r = tn_resolve_dir(request->nest, request->node, &dir);
	if (r == 0)
		r = list(request, dir.fd, in->offset, room, plus);
	pthread_rwlock_unlock(&request->nest->tree);
	return r;
}

int tn_op_fsyncdir(TnRequest *request)
{
	TN_FD dir = TN_FD_NONE;
	int r;

	/* As tn_op_fsync(): a scratch nest waits for no disk. */
	if (!request->nest->durable)
		return -ENOSYS;
	pthread_rwlock_rdlock(&request->nest->tree);
	r = tn_resolve_dir(request->nest, request->node, &dir);
	pthread_rwlock_unlock(&request->nest->tree);
	if (r == 0 && fsync(dir.fd) < 0)
		r = -errno;
	return r;
}

int tn_op_readdir(TnRequest *request)
{
	return read_directory(request, false);
}

int tn_op_readdirplus(TnRequest *request)
{
	return read_directory(request, true);
}
