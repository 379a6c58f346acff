/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arena.h"

#include "macros.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

TN_SYSCALLS = {
	{SYS_memfd_create},
	{SYS_ftruncate},
	{SYS_fallocate},
	{SYS_fstat},
};

#define HEADER_SIZE (64UL * 1024)
#define NODES_SIZE ((size_t)TN_NODES_MAX * sizeof(TnNode))
#define LINKS_SIZE ((size_t)TN_LINKS_MAX * sizeof(TnLink))
#define NAMES_SIZE ((size_t)TN_NAME_UNITS_MAX * TN_NAME_UNIT)
#define HANDLES_SIZE ((size_t)TN_HANDLES_MAX * sizeof(TnHandle))
#define OPENED_SIZE ((size_t)TN_NODES_MAX * sizeof(TnOpened))
#define NODES_OFFSET HEADER_SIZE
#define LINKS_OFFSET (NODES_OFFSET + NODES_SIZE)
#define NAMES_OFFSET (LINKS_OFFSET + LINKS_SIZE)
#define HANDLES_OFFSET (NAMES_OFFSET + NAMES_SIZE)
#define OPENED_OFFSET (HANDLES_OFFSET + HANDLES_SIZE)
#define LIFE_OFFSET (OPENED_OFFSET + OPENED_SIZE)
#define ARENA_SIZE (LIFE_OFFSET + 2 * TN_LIFE_SIZE)

_Static_assert(sizeof(TnArenaHeader) <= HEADER_SIZE, "the header has its own pages");
_Static_assert(sizeof(TnNode) == 64 && sizeof(TnLink) == 20, "records are laid out by hand");

static void lay_out(TnArena *arena)
{
	arena->header = (TnArenaHeader *)arena->base;
	arena->nodes = (TnNode *)(arena->base + NODES_OFFSET);
	arena->links = (TnLink *)(arena->base + LINKS_OFFSET);
	arena->names = (char *)(arena->base + NAMES_OFFSET);
	arena->handles = (TnHandle *)(arena->base + HANDLES_OFFSET);
	arena->opened = (TnOpened *)(arena->base + OPENED_OFFSET);
	arena->life = (char *)(arena->base + LIFE_OFFSET);
}

static void start_empty(TnArenaHeader *header)
{
	header->nodes_end = 1;
	header->links_end = 1;
	header->names_end = 1;
	header->handles_end = 1;
}

/* 0 or -errno; does not take fd yet. */
static int map(TnArena *ret, int fd)
{
	void *base =
		mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	*ret = (TnArena){.fd = -1};
	if (base == MAP_FAILED)
		return -errno;
	(void)madvise(base, ARENA_SIZE, MADV_DONTDUMP);
	ret->base = base;
	lay_out(ret);
	return 0;
}

void tn_arena_populate(const TnArena *arena)
{
	const TnArenaHeader *header = arena->header;
	const struct {
		const void *start;
		size_t size;
	} used[] = {
		{arena->nodes, header->nodes_end * sizeof(TnNode)},
		{arena->links, header->links_end * sizeof(TnLink)},
		{arena->names, (size_t)header->names_end * TN_NAME_UNIT},
		{arena->handles, header->handles_end * sizeof(TnHandle)},
		{arena->opened, header->nodes_end * sizeof(TnOpened)},
	};
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	for (size_t i = 0; i < TN_ARRAY_LEN(used); i++) {
		uintptr_t start = (uintptr_t)used[i].start & ~page;

		(void)madvise((void *)start, (uintptr_t)used[i].start + used[i].size - start,
			      MADV_POPULATE_WRITE);
	}
}

int tn_arena_init(TnArena *ret, uint64_t nest_id)
{
	TN_AUTOFD fd = memfd_create("tmpnest-arena", MFD_CLOEXEC);
	int r;

	*ret = (TnArena){.fd = -1};
	if (fd < 0 || ftruncate(fd, (off_t)ARENA_SIZE) < 0)
		return -errno;
	r = map(ret, fd);
	if (r < 0)
		return r;
	ret->fd = tn_steal_fd(&fd);
	ret->header->descriptors = (TnArenaDescriptors){-1, -1, -1, -1, -1, -1, -1};
	ret->header->version = TN_ARENA_VERSION;
	ret->header->nest_id = nest_id;
	ret->header->next_node_id = 1;
	start_empty(ret->header);
	ret->header->magic = TN_ARENA_MAGIC;
	return 0;
}

static bool has_whole_size(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == (off_t)ARENA_SIZE;
}

bool tn_arena_is_sound(const TnArena *arena, uint64_t nest_id)
{
	const TnArenaHeader *header = arena->header;

	return has_whole_size(arena->fd) && header->magic == TN_ARENA_MAGIC &&
	       header->version == TN_ARENA_VERSION && header->nest_id == nest_id &&
	       header->nodes_end >= 1 && header->nodes_end <= TN_NODES_MAX &&
	       header->links_end >= 1 && header->links_end <= TN_LINKS_MAX &&
	       header->names_end >= 1 && header->names_end <= TN_NAME_UNITS_MAX &&
	       header->handles_end >= 1 && header->handles_end <= TN_HANDLES_MAX;
}

int tn_arena_open(TnArena *ret, int fd, uint64_t nest_id)
{
	int r;

	*ret = (TnArena){.fd = -1};
	if (!has_whole_size(fd)) /* past its end is no memory to look at */
		return -EBADMSG;
	r = map(ret, fd);
	if (r < 0)
		return r;
	ret->fd = fd;
	if (!tn_arena_is_sound(ret, nest_id)) {
		ret->fd = -1;
		tn_arena_clear(ret);
		return -EBADMSG;
	}
	tn_arena_populate(ret);
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
			(off_t)(LIFE_OFFSET - NODES_OFFSET));
}
