/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arena.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define HEADER_SIZE (64UL * 1024)
#define NODES_SIZE ((size_t)TN_NODES_MAX * sizeof(TnNode))
#define LINKS_SIZE ((size_t)TN_LINKS_MAX * sizeof(TnLink))
#define NAMES_SIZE ((size_t)TN_NAME_UNITS_MAX * TN_NAME_UNIT)
#define NODES_OFFSET HEADER_SIZE
#define LINKS_OFFSET (NODES_OFFSET + NODES_SIZE)
#define NAMES_OFFSET (LINKS_OFFSET + LINKS_SIZE)
#define ARENA_SIZE (NAMES_OFFSET + NAMES_SIZE)

_Static_assert(sizeof(TnArenaHeader) <= HEADER_SIZE, "the header has its own pages");
_Static_assert(sizeof(TnNode) == 64 && sizeof(TnLink) == 20, "records are laid out by hand");

static void lay_out(TnArena *arena)
{
	arena->header = (TnArenaHeader *)arena->base;
	arena->nodes = (TnNode *)(arena->base + NODES_OFFSET);
	arena->links = (TnLink *)(arena->base + LINKS_OFFSET);
	arena->names = (char *)(arena->base + NAMES_OFFSET);
}

static void start_empty(TnArenaHeader *header)
{
	header->nodes_end = 1;
	header->links_end = 1;
	header->names_end = 1;
}

int tn_arena_init(TnArena *ret, uint64_t nest_id)
{
	TN_AUTOFD fd = memfd_create("tmpnest-arena", MFD_CLOEXEC);
	void *base;

	*ret = (TnArena){.fd = -1};
	if (fd < 0 || ftruncate(fd, (off_t)ARENA_SIZE) < 0)
		return -errno;
	base = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	ret->base = base;
	ret->fd = tn_steal_fd(&fd);
	lay_out(ret);
	ret->header->version = TN_ARENA_VERSION;
	ret->header->nest_id = nest_id;
	ret->header->next_node_id = 1;
	start_empty(ret->header);
	ret->header->magic = TN_ARENA_MAGIC;
	return 0;
}

void tn_arena_clear(TnArena *arena)
{
	if (arena->base)
		munmap(arena->base, ARENA_SIZE);
	tn_close(&arena->fd);
	*arena = (TnArena){.fd = -1};
}

void tn_arena_trim(TnArena *arena)
{
	start_empty(arena->header);
	/* Failure costs memory, nothing else: the records are overwritten when used again. */
	(void)fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)NODES_OFFSET,
			(off_t)(ARENA_SIZE - NODES_OFFSET));
}
