/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a node to its place in the store: descriptors of directories and files, and the
 * (directory, name) pair that *at() calls take. Every descriptor is checked against the
 * node's inode number before it is used.
 *
 * Any thread. 0 or -errno; -ESTALE when the store is not what the node table says.
 */
#pragma once

#include "nest-private.h"

/* Where a node is addressed by *at() calls: dir.fd + name; name "" with AT_EMPTY_PATH: dir.fd
 * itself. */
typedef struct TnPlace {
	TnFd dir;
	char name[NAME_MAX + 1];
	int at_flags; /* AT_SYMLINK_NOFOLLOW or AT_EMPTY_PATH */
} TnPlace;

void tn_place_clear(TnPlace *place);
#define TN_PLACE __attribute__((cleanup(tn_place_clear))) TnPlace

/* The name that an unlinked file of this node has in orphans/. */
#define TN_ORPHAN_NAME_MAX 24
void tn_orphan_name(char name[TN_ORPHAN_NAME_MAX], uint64_t id);

/* Caller holds the nest's tree lock (read or write) until it has used the result. */
int tn_resolve_dir(TnNest *nest, uint32_t index, TnFd *ret);
int tn_resolve_place(TnNest *nest, uint32_t index, TnPlace *ret);

/*
 * The regular file behind the node, open for reading and writing; takes the tree lock for
 * reading when the descriptor is not cached, so the caller must not hold it. The
 * descriptor stays right after renames and unlinks.
 */
int tn_resolve_file(TnNest *nest, uint32_t index, TnFd *ret);

/* stat of the node by its place; unlinked nodes show no links. Takes the tree lock for reading. */
int tn_resolve_stat(TnNest *nest, uint32_t index, struct stat *ret);
