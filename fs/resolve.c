/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "resolve.h"

#include "macros.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tn_orphan_name(char name[TN_ORPHAN_NAME_MAX], uint64_t id)
{
	snprintf(name, TN_ORPHAN_NAME_MAX, "%" PRIu64, id);
}

/* What the table says of a node, copied out of the lock. */
typedef struct Known {
	uint64_t id, ino;
	uint32_t index, parent, flags;
	uint16_t type;
	int held_fd;
	char name[NAME_MAX + 1];
} Known;

static void look_up(TnNest *nest, uint32_t index, Known *ret)
{
	const TnNode *node;

	pthread_mutex_lock(&nest->table_lock);
	node = tn_node_at(nest->table, index);
	ret->index = index;
	ret->id = node->id;
	ret->ino = node->ino;
	ret->flags = node->flags;
	ret->type = node->type;
	ret->held_fd = node->held_fd;
	ret->name[0] = '\0';
	ret->parent = tn_node_name(nest->table, index, ret->name);
	pthread_mutex_unlock(&nest->table_lock);
}

static int check_inode(int fd, const Known *known)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_ino == known->ino && (st.st_mode & S_IFMT) == known->type ? 0 : -ESTALE;
}

/* Opens beneath dir, checks that it is the node. A descriptor or -errno. */
static int open_known(int dir, const char *name, const Known *known, int flags)
{
	TN_AUTOFD fd = tn_open_beneath(dir, name, flags | O_NOFOLLOW, 0);
	int r;

	if (fd < 0)
		return fd;
	r = check_inode(fd, known);
	return r < 0 ? r : tn_steal_fd(&fd);
}

/* A directory whose descriptor is at hand. False: it must be opened from its parent. */
static bool directory_at_hand(TnNest *nest, const Known *known, TnFd *ret)
{
	if (known->index == TN_ROOT_INDEX) {
		*ret = (TnFd){.fd = nest->store.data};
		return true;
	}
	if (known->held_fd >= 0) {
		*ret = (TnFd){.fd = known->held_fd};
		return true;
	}
	*ret = tn_fdcache_get(nest->dirs, nest->id, known->id);
	if (ret->fd < 0 && (known->flags & TN_NODE_IN_ORPHANS)) {
		char name[TN_ORPHAN_NAME_MAX];
		int fd;

		tn_orphan_name(name, known->id);
		fd = open_known(nest->store.orphans, name, known, O_RDONLY | O_DIRECTORY);
		if (fd >= 0)
			*ret = tn_fdcache_add(nest->dirs, nest->id, known->id, fd);
	}
	return ret->fd >= 0;
}

/*
 * Climbs from index to the next ancestor whose descriptor is at hand; fills path[] with
 * what must be opened, deepest first. Number of those or -errno.
 */
static int climb(TnNest *nest, uint32_t index, uint32_t **path, TnFd *ret_start)
{
	size_t n = 0, allocated = 0;
	Known known;

	for (;;) {
		look_up(nest, index, &known);
		if (known.type != S_IFDIR)
			return -ENOTDIR;
		if (directory_at_hand(nest, &known, ret_start))
			return (int)n;
		if (known.parent == 0)
			return -ENOENT; /* removed, and not held */
		if (n == allocated) {
			uint32_t *grown;

			allocated = allocated ? 2 * allocated : 16;
			grown = reallocarray(*path, allocated, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			*path = grown;
		}
		(*path)[n++] = index;
		index = known.parent;
	}
}

int tn_resolve_dir(TnNest *nest, uint32_t index, TnFd *ret)
{
	TN_AUTOFREE uint32_t *path = NULL;
	TN_FD at = TN_FD_NONE;
	int n = climb(nest, index, &path, &at);

	if (n < 0)
		return n;
	while (n > 0) {
		Known known;
		TnFd below;
		int fd;

		look_up(nest, path[--n], &known);
		fd = open_known(at.fd, known.name, &known, O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			return fd;
		below = tn_fdcache_add(nest->dirs, nest->id, known.id, fd);
		tn_fd_put(&at);
		at = below;
	}
	*ret = at;
	at = TN_FD_NONE;
	return 0;
}

void tn_place_clear(TnPlace *place)
{
	tn_fd_put(&place->dir);
}

int tn_resolve_place(TnNest *nest, uint32_t index, TnPlace *ret)
{
	Known known;
	int r;

	look_up(nest, index, &known);
	ret->name[0] = '\0';
	ret->at_flags = AT_EMPTY_PATH;
	if (index == TN_ROOT_INDEX) {
		ret->dir = (TnFd){.fd = nest->store.data};
		return 0;
	}
	if (known.held_fd >= 0) {
		ret->dir = (TnFd){.fd = known.held_fd};
		return 0;
	}
	ret->at_flags = AT_SYMLINK_NOFOLLOW;
	if (known.flags & TN_NODE_IN_ORPHANS) {
		ret->dir = (TnFd){.fd = nest->store.orphans};
		tn_orphan_name(ret->name, known.id);
		return 0;
	}
	if (known.parent == 0)
		return -ENOENT;
	r = tn_resolve_dir(nest, known.parent, &ret->dir);
	memcpy(ret->name, known.name, sizeof(ret->name));
	return r;
}

static int open_file(TnNest *nest, uint32_t index, const Known *known)
{
	TN_PLACE place = {.dir = TN_FD_NONE};
	int r;

	if (known->held_fd >= 0)
		return tn_reopen(known->held_fd, O_RDWR);
	r = tn_resolve_place(nest, index, &place);
	if (r < 0)
		return r;
	return open_known(place.dir.fd, place.name, known, O_RDWR);
}

int tn_resolve_file(TnNest *nest, uint32_t index, TnFd *ret)
{
	Known known;
	int fd;

	look_up(nest, index, &known);
	*ret = tn_fdcache_get(nest->files, nest->id, known.id);
	if (ret->fd >= 0)
		return 0;
	if (known.type != S_IFREG)
		return known.type == S_IFDIR ? -EISDIR : -EINVAL;
	pthread_rwlock_rdlock(&nest->tree);
	look_up(nest, index, &known); /* it may have been renamed before the lock was ours */
	fd = open_file(nest, index, &known);
	pthread_rwlock_unlock(&nest->tree);
	if (fd < 0)
		return fd;
	*ret = tn_fdcache_add(nest->files, nest->id, known.id, fd);
	return 0;
}

int tn_resolve_stat(TnNest *nest, uint32_t index, struct stat *ret)
{
	TN_PLACE place = {.dir = TN_FD_NONE};
	uint64_t ino;
	int r;

	pthread_rwlock_rdlock(&nest->tree);
	r = tn_resolve_place(nest, index, &place);
	if (r == 0 && fstatat(place.dir.fd, place.name, ret, place.at_flags) < 0)
		r = -errno;
	pthread_rwlock_unlock(&nest->tree);
	if (r < 0)
		return r;
	pthread_mutex_lock(&nest->table_lock);
	ino = tn_node_at(nest->table, index)->ino;
	if (tn_node_at(nest->table, index)->flags & TN_NODE_IN_ORPHANS)
		ret->st_nlink = 0; /* its last name is ours */
	pthread_mutex_unlock(&nest->table_lock);
	return ret->st_ino == ino ? 0 : -ESTALE;
}
