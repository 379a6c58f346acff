/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "conformance.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static char *map_shared(int fd, size_t size)
{
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(map != MAP_FAILED);
	return map;
}

static void coherent(void)
{
	int fd = tc_make("f", 0644), other = (int)ok(open("f", O_RDWR));
	char *map, byte;

	tc_fill(fd, 0, 20000, 'a');
	map = map_shared(fd, 20000);
	check(map[100] == 'a');
	ok(pwrite(other, "b", 1, 100)); /* a write is seen in the mapping at once */
	check(map[100] == 'b');
	map[200] = 'c'; /* and a store by a read */
	equal(pread(other, &byte, 1, 200), 1);
	check(byte == 'c');
	ok(msync(map, 20000, MS_SYNC));
	check(map[100] == 'b' && map[200] == 'c');
	ok(ftruncate(fd, 4096 * 3));
	check(map[200] == 'c');
	ok(munmap(map, 20000));
	equal(pread(other, &byte, 1, 200), 1);
	check(byte == 'c');
}

static void store_in_child(void *data)
{
	volatile int *numbers = data;

	for (int i = 0; i < 1000; i++)
		__atomic_fetch_add(&numbers[i], 1, __ATOMIC_SEQ_CST);
}

static void between_processes(void)
{
	int fd = tc_make("f", 0644);
	pid_t children[3];
	int *numbers;

	ok(ftruncate(fd, 8192));
	numbers = (int *)map_shared(fd, 8192);
	for (int i = 0; i < 3; i++)
		children[i] = tc_fork(store_in_child, numbers);
	for (int i = 0; i < 3; i++)
		tc_wait(children[i]);
	for (int i = 0; i < 1000; i++)
		equal(numbers[i], 3);
}

static void after_close_and_unlink(void)
{
	int fd = tc_make("f", 0644), other;
	char *map;

	tc_fill(fd, 0, 8192, 'a');
	other = (int)ok(open("f", O_RDONLY));
	map = map_shared(fd, 8192);
	close(fd);
	ok(unlink("f"));
	map[5000] = 'z';
	ok(msync(map, 8192, MS_SYNC));
	char byte;

	equal(pread(other, &byte, 1, 5000), 1);
	check(byte == 'z');
	close(other);
	check(map[5000] == 'z' && map[0] == 'a');
	ok(munmap(map, 8192));
}

static void private_mapping(void)
{
	int fd = tc_make("f", 0644);
	char *map, byte;

	tc_fill(fd, 0, 8192, 'a');
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	check(map != MAP_FAILED);
	map[0] = 'p';
	equal(pread(fd, &byte, 1, 0), 1);
	check(byte == 'a');
	ok(pwrite(fd, "n", 1, 4096));
	check(map[4096] == 'n');
	check(map[0] == 'p');
}

static sigjmp_buf on_bus;

static void bus(int number)
{
	siglongjmp(on_bus, number);
}

static void past_the_end(void)
{
	int fd = tc_make("f", 0644);
	char *map;

	tc_fill(fd, 0, 5000, 'a');
	map = map_shared(fd, 16384);
	check(map[5000] == 0 && map[8191] == 0); /* the rest of the last page reads as zero */
	signal(SIGBUS, bus);
	if (sigsetjmp(on_bus, 1) == 0) {
		volatile char byte = map[8192];

		(void)byte;
		tc_fail(__FILE__, __LINE__, "no SIGBUS beyond the last page");
	}
	if (sigsetjmp(on_bus, 1) == 0) {
		map[12288] = 'x';
		tc_fail(__FILE__, __LINE__, "no SIGBUS for a store");
	}
	ok(ftruncate(fd, 16384)); /* now it is there */
	check(map[12288] == 0);
	map[12288] = 'x';
	ok(ftruncate(fd, 0));
	if (sigsetjmp(on_bus, 1) == 0) {
		volatile char byte = map[0];

		(void)byte;
		tc_fail(__FILE__, __LINE__, "no SIGBUS after truncation");
	}
}

static void beyond_the_end(void)
{
	int fd = tc_make("f", 0644);
	char *map;

	tc_fill(fd, 0, 100, 'a');
	map = map_shared(fd, 4096);
	map[2000] = 'x';
	ok(msync(map, 4096, MS_SYNC));
	equal(tc_fstat(fd).st_size, 100);
	char buffer[200];

	equal(pread(fd, buffer, sizeof(buffer), 0), 100);
}

static void over_holes(void)
{
	int fd = tc_make("f", 0644);
	char *map;

	ok(ftruncate(fd, 1 << 20));
	map = map_shared(fd, 1 << 20);
	equal(tc_fstat(fd).st_blocks, 0);
	for (int i = 0; i < (1 << 20); i += 65536)
		map[i] = 'x';
	ok(msync(map, 1 << 20, MS_SYNC));
	ok(munmap(map, 1 << 20));
	ok(fsync(fd));
	equal(tc_stat("f").st_blocks, 16 * 8);
	check(tc_is_filled(fd, 65536, 1, 'x') && tc_is_filled(fd, 65537, 60000, 0));
}

static void rights(void)
{
	int fd = tc_make("f", 0644), reader;

	tc_fill(fd, 0, 4096, 'a');
	reader = (int)ok(open("f", O_RDONLY));
	error(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0) == MAP_FAILED ? -1
											    : 0,
	      EACCES);
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, reader, 0) != MAP_FAILED);
	check(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0) != MAP_FAILED);
	check(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, reader, 0) != MAP_FAILED);
	int writer = (int)ok(open("f", O_WRONLY));

	error(mmap(NULL, 4096, PROT_READ, MAP_SHARED, writer, 0) == MAP_FAILED ? -1 : 0, EACCES);
	int dir = (int)ok(open(".", O_RDONLY));

	error(mmap(NULL, 4096, PROT_READ, MAP_SHARED, dir, 0) == MAP_FAILED ? -1 : 0, ENODEV);
}

static void with_punch(void)
{
	int fd = tc_make("f", 0644);
	char *map;

	tc_fill(fd, 0, 16384, 'a');
	map = map_shared(fd, 16384);
	check(map[4096] == 'a');
	ok(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192));
	check(map[4095] == 'a' && map[4096] == 0 && map[12287] == 0 && map[12288] == 'a');
}

const TcCase tc_mmap[] = {
	{"shared mappings, reads and writes agree", coherent},
	{"between processes", between_processes},
	{"a mapping outlives descriptor and name", after_close_and_unlink},
	{"private mappings", private_mapping},
	{"SIGBUS beyond the end", past_the_end},
	{"what is stored beyond the end is no part of the file", beyond_the_end},
	{"stores into holes are charged", over_holes},
	{"rights of the descriptor", rights},
	{"a punched hole shows in the mapping", with_punch},
	{0},
};
