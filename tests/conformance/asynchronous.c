/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files by io_submit(2) and by io_uring: the same effects and errors as by plain calls. */
#include "conformance.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define BLOCK 4096U
#define N_BLOCKS 16U

/* --- io_submit ---------------------------------------------------------------------------- */

static void submit_all(aio_context_t context, int fd, char *data, unsigned opcode)
{
	struct iocb blocks[N_BLOCKS] = {0}, *list[N_BLOCKS];
	struct io_event events[N_BLOCKS];

	for (unsigned i = 0; i < N_BLOCKS; i++) {
		blocks[i] = (struct iocb){
			.aio_fildes = (uint32_t)fd,
			.aio_lio_opcode = (uint16_t)opcode,
			.aio_buf = (uint64_t)(uintptr_t)(data + i * BLOCK),
			.aio_nbytes = BLOCK,
			.aio_offset = i * BLOCK,
		};
		list[i] = &blocks[i];
	}
	equal(syscall(SYS_io_submit, context, (long)N_BLOCKS, list), N_BLOCKS);
	equal(syscall(SYS_io_getevents, context, (long)N_BLOCKS, (long)N_BLOCKS, events, NULL),
	      N_BLOCKS);
	for (unsigned i = 0; i < N_BLOCKS; i++)
		equal(events[i].res, BLOCK);
}

static void aio_on(int fd)
{
	aio_context_t context = 0;
	char *data = aligned_alloc(BLOCK, N_BLOCKS * (size_t)BLOCK);

	check(data);
	ok(syscall(SYS_io_setup, N_BLOCKS, &context));
	for (unsigned i = 0; i < N_BLOCKS; i++)
		memset(data + i * BLOCK, 'a' + (int)i, BLOCK);
	submit_all(context, fd, data, IOCB_CMD_PWRITE);
	equal(tc_fstat(fd).st_size, N_BLOCKS * BLOCK);
	memset(data, 0, N_BLOCKS * (size_t)BLOCK);
	submit_all(context, fd, data, IOCB_CMD_PREAD);
	for (unsigned i = 0; i < N_BLOCKS; i++)
		check(data[i * BLOCK] == 'a' + (int)i && data[(i + 1) * BLOCK - 1] == 'a' + (int)i);
	ok(syscall(SYS_io_destroy, context));
	free(data);
}

static void aio(void)
{
	aio_on(tc_make("f", 0644));
}

static void aio_direct(void)
{
	aio_on((int)ok(open("f", O_RDWR | O_CREAT | O_DIRECT, 0644)));
}

/* --- io_uring ----------------------------------------------------------------------------- */

typedef struct Ring {
	int fd;
	struct io_uring_sqe *sqes;
	char *memory; /* both rings */
	struct io_uring_params params;
} Ring;

static void open_ring(Ring *ring)
{
	size_t size;

	*ring = (Ring){0};
	ring->fd = (int)syscall(SYS_io_uring_setup, 8, &ring->params);
	if (ring->fd < 0 && (errno == ENOSYS || errno == EPERM))
		tc_skip("no io_uring here: %s", strerror(errno));
	ok(ring->fd);
	check(ring->params.features & IORING_FEAT_SINGLE_MMAP);
	size = ring->params.cq_off.cqes + ring->params.cq_entries * sizeof(struct io_uring_cqe);
	if (size < ring->params.sq_off.array + ring->params.sq_entries * sizeof(uint32_t))
		size = ring->params.sq_off.array + ring->params.sq_entries * sizeof(uint32_t);
	ring->memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	check(ring->memory != MAP_FAILED);
	ring->sqes = mmap(NULL, ring->params.sq_entries * sizeof(struct io_uring_sqe),
			  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQES);
	check(ring->sqes != MAP_FAILED);
}

static uint32_t *ring_word(Ring *ring, uint32_t offset)
{
	return (uint32_t *)(void *)(ring->memory + offset);
}

/* One request and its result; errno and -1 as of a plain call. */
static long long by_ring(Ring *ring, struct io_uring_sqe request)
{
	uint32_t *tail = ring_word(ring, ring->params.sq_off.tail);
	uint32_t mask = *ring_word(ring, ring->params.sq_off.ring_mask);
	uint32_t *head = ring_word(ring, ring->params.cq_off.head);
	struct io_uring_cqe *done;
	int result;

	ring->sqes[*tail & mask] = request;
	ring_word(ring, ring->params.sq_off.array)[*tail & mask] = *tail & mask;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	equal(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
	check(*head !=
	      __atomic_load_n(ring_word(ring, ring->params.cq_off.tail), __ATOMIC_ACQUIRE));
	done = (struct io_uring_cqe *)(void *)(ring->memory + ring->params.cq_off.cqes);
	result = done[*head & *ring_word(ring, ring->params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	if (result < 0) {
		errno = -result;
		return -1;
	}
	return result;
}

#define BY_RING(...) by_ring(&ring, (struct io_uring_sqe){__VA_ARGS__})
#define ADDRESS(pointer) (uint64_t)(uintptr_t)(pointer)

static void ring_files(void)
{
	char data[10000], back[10000];
	Ring ring;
	int fd;

	open_ring(&ring);
	memset(data, 'r', sizeof(data));
	fd = (int)ok(BY_RING(.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = ADDRESS("f"),
			     .open_flags = O_RDWR | O_CREAT | O_EXCL, .len = 0644));
	error(BY_RING(.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = ADDRESS("f"),
		      .open_flags = O_RDWR | O_CREAT | O_EXCL, .len = 0644),
	      EEXIST);
	equal(BY_RING(.opcode = IORING_OP_WRITE, .fd = fd, .addr = ADDRESS(data),
		      .len = sizeof(data), .off = 100),
	      (int)sizeof(data));
	equal(BY_RING(.opcode = IORING_OP_READ, .fd = fd, .addr = ADDRESS(back),
		      .len = sizeof(back), .off = 100),
	      (int)sizeof(back));
	check(memcmp(data, back, sizeof(data)) == 0);
	ok(BY_RING(.opcode = IORING_OP_FSYNC, .fd = fd));
	equal(BY_RING(.opcode = IORING_OP_FALLOCATE, .fd = fd, .off = 0, .addr = 65536), 0);
	equal(tc_fstat(fd).st_size, 65536);
	equal(tc_fstat(fd).st_blocks, 128);
	ok(BY_RING(.opcode = IORING_OP_CLOSE, .fd = fd));
	error(BY_RING(.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = ADDRESS("missing"),
		      .open_flags = O_RDONLY),
	      ENOENT);
}

static void ring_names(void)
{
	Ring ring;

	open_ring(&ring);
	close(tc_make("f", 0644));
	ok(BY_RING(.opcode = IORING_OP_MKDIRAT, .fd = AT_FDCWD, .addr = ADDRESS("d"), .len = 0755));
	error(BY_RING(.opcode = IORING_OP_MKDIRAT, .fd = AT_FDCWD, .addr = ADDRESS("d"),
		      .len = 0755),
	      EEXIST);
	ok(BY_RING(.opcode = IORING_OP_RENAMEAT, .fd = AT_FDCWD, .addr = ADDRESS("f"),
		   .len = (uint32_t)AT_FDCWD, .off = ADDRESS("d/g")));
	ok(BY_RING(.opcode = IORING_OP_LINKAT, .fd = AT_FDCWD, .addr = ADDRESS("d/g"),
		   .len = (uint32_t)AT_FDCWD, .off = ADDRESS("h")));
	ok(BY_RING(.opcode = IORING_OP_SYMLINKAT, .fd = AT_FDCWD, .addr = ADDRESS("h"),
		   .off = ADDRESS("s")));
	equal(tc_stat("h").st_nlink, 2);
	error(BY_RING(.opcode = IORING_OP_UNLINKAT, .fd = AT_FDCWD, .addr = ADDRESS("d"),
		      .unlink_flags = AT_REMOVEDIR),
	      ENOTEMPTY);
	ok(BY_RING(.opcode = IORING_OP_UNLINKAT, .fd = AT_FDCWD, .addr = ADDRESS("d/g")));
	ok(BY_RING(.opcode = IORING_OP_UNLINKAT, .fd = AT_FDCWD, .addr = ADDRESS("d"),
		   .unlink_flags = AT_REMOVEDIR));
	equal(tc_stat("h").st_nlink, 1);
	check(tc_exists("s") && !tc_exists("d"));
}

const TcCase tc_asynchronous[] = {
	{"io_submit", aio},
	{"io_submit with O_DIRECT", aio_direct},
	{"io_uring: open, write, read, fallocate, close", ring_files},
	{"io_uring: names", ring_names},
	{0},
};
