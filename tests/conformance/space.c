/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fallocate, holes, copies inside the kernel. */
#include "conformance.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#define KEEP FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static long long pages(int fd)
{
	return tc_fstat(fd).st_blocks / 8;
}

static void allocate(void)
{
	int fd = tc_make("f", 0644);

	ok(fallocate(fd, 0, 0, 100000));
	equal(tc_fstat(fd).st_size, 100000);
	equal(pages(fd), 25);
	check(tc_is_filled(fd, 0, 100000, 0));
	ok(fallocate(fd, KEEP, 0, 200000));
	equal(tc_fstat(fd).st_size, 100000);
	equal(pages(fd), 49);
	tc_fill(fd, 5000, 100, 'x');
	ok(fallocate(fd, 0, 0, 10000)); /* what is there stays */
	check(tc_is_filled(fd, 5000, 100, 'x'));
	equal(tc_fstat(fd).st_size, 100000);
	equal(posix_fallocate(fd, 300000, 10), 0);
	equal(tc_fstat(fd).st_size, 300010);
	ok(ftruncate(fd, 0));
	equal(pages(fd), 0);
}

static void allocate_errors(void)
{
	int fd = tc_make("f", 0644), reader = (int)ok(open("f", O_RDONLY));

	error(fallocate(fd, 0, 0, 0), EINVAL);
	error(fallocate(fd, 0, -1, 10), EINVAL);
	error(fallocate(fd, 0, 0, -1), EINVAL);
	error(fallocate(reader, 0, 0, 10), EBADF);
	error(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP); /* without KEEP_SIZE */
	error(fallocate(fd, 0, 1LL << 62, 1LL << 62), EFBIG);
	ok(mkfifo("p", 0644));
	error(fallocate((int)ok(open("p", O_RDWR)), 0, 0, 10), ESPIPE);
}

static void punch(void)
{
	int fd = tc_make("f", 0644);

	tc_fill(fd, 0, 40960, 'x');
	ok(fallocate(fd, PUNCH, 4096, 8192));
	equal(pages(fd), 8);
	check(tc_is_filled(fd, 0, 4096, 'x') && tc_is_filled(fd, 4096, 8192, 0) &&
	      tc_is_filled(fd, 12288, 28672, 'x'));
	ok(fallocate(fd, PUNCH, 20000, 100)); /* inside a page: zeros, no space */
	equal(pages(fd), 8);
	check(tc_is_filled(fd, 20000, 100, 0) && tc_is_filled(fd, 19999, 1, 'x') &&
	      tc_is_filled(fd, 20100, 1, 'x'));
	ok(fallocate(fd, PUNCH, 30000, 1 << 30)); /* beyond the end */
	equal(tc_fstat(fd).st_size, 40960);
	equal(pages(fd), 6);
	tc_fill(fd, 4096, 100, 'y'); /* filled again */
	equal(pages(fd), 7);
	ok(fallocate(fd, PUNCH, 0, 1 << 30));
	equal(pages(fd), 0);
	check(tc_is_filled(fd, 0, 40960, 0));
}

static void zero_range(void)
{
	int fd = tc_make("f", 0644);

	tc_fill(fd, 0, 20000, 'x');
	if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 5000, 5000) < 0) {
		equal(errno, EOPNOTSUPP); /* as on a tmpfs */
		check(tc_is_filled(fd, 0, 20000, 'x'));
		return;
	}
	check(tc_is_filled(fd, 0, 5000, 'x') && tc_is_filled(fd, 5000, 5000, 0) &&
	      tc_is_filled(fd, 10000, 10000, 'x'));
	ok(fallocate(fd, FALLOC_FL_ZERO_RANGE, 15000, 15000));
	equal(tc_fstat(fd).st_size, 30000);
	ok(fallocate(fd, FALLOC_FL_ZERO_RANGE | KEEP, 30000, 10000));
	equal(tc_fstat(fd).st_size, 30000);
	check(tc_is_filled(fd, 15000, 15000, 0));
}

static void collapse_and_insert(void)
{
	int fd = tc_make("f", 0644);
	off_t block = 4096;

	for (int i = 0; i < 8; i++)
		tc_fill(fd, i * block, (size_t)block, (char)('a' + i));
	if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, block, 2 * block) < 0) {
		equal(errno, EOPNOTSUPP); /* as on a tmpfs */
		equal(tc_fstat(fd).st_size, 8 * block);
	} else {
		equal(tc_fstat(fd).st_size, 6 * block);
		check(tc_is_filled(fd, 0, 4096, 'a') && tc_is_filled(fd, block, 4096, 'd'));
		equal(pages(fd), 6);
		ok(fallocate(fd, FALLOC_FL_INSERT_RANGE, block, 2 * block));
		equal(tc_fstat(fd).st_size, 8 * block);
		check(tc_is_filled(fd, block, 8192, 0) && tc_is_filled(fd, 3 * block, 4096, 'd'));
		equal(pages(fd), 6);
	}
}

static void seek_holes(void)
{
	int fd = tc_make("f", 0644);

	error(lseek(fd, 0, SEEK_DATA), ENXIO);
	tc_fill(fd, 0, 4096, 'x');
	ok(ftruncate(fd, 1 << 20));
	tc_fill(fd, 65536, 4096, 'y');
	equal(lseek(fd, 0, SEEK_DATA), 0);
	equal(lseek(fd, 0, SEEK_HOLE), 4096);
	equal(lseek(fd, 4096, SEEK_DATA), 65536);
	equal(lseek(fd, 65536, SEEK_HOLE), 65536 + 4096);
	error(lseek(fd, 70000, SEEK_DATA), ENXIO);
	equal(lseek(fd, 70000, SEEK_HOLE), 70000);
	error(lseek(fd, 1 << 20, SEEK_HOLE), ENXIO);
	error(lseek(fd, -1, SEEK_DATA), ENXIO);
	ok(lseek(fd, 0, SEEK_SET));
	equal(lseek(fd, 5, SEEK_DATA), 5);
	equal(lseek(fd, 0, SEEK_CUR), 5); /* the position moves with it */
	ok(ftruncate(fd, 65536 + 100));   /* the end is a hole */
	equal(lseek(fd, 65536, SEEK_HOLE), 65536 + 100);
}

static void copy_range(void)
{
	int from = tc_make("a", 0644), to = tc_make("b", 0644);
	off_t at = 1000, into = 5;

	tc_fill(from, 0, 50000, 'x');
	tc_fill(from, 50000, 50000, 'y');
	equal(copy_file_range(from, &at, to, &into, 60000, 0), 60000);
	equal(at, 61000);
	equal(tc_fstat(to).st_size, 60005);
	check(tc_is_filled(to, 0, 5, 0) && tc_is_filled(to, 5, 49000, 'x') &&
	      tc_is_filled(to, 49005, 11000, 'y'));
	at = 99999;
	equal(copy_file_range(from, &at, to, &into, 100, 0), 1); /* to the end */
	at = 100000;
	equal(copy_file_range(from, &at, to, &into, 100, 0), 0);
	at = 0, into = 50000;
	equal(copy_file_range(from, &at, from, &into, 20000, 0), 20000); /* within a file */
	check(tc_is_filled(from, 50000, 20000, 'x'));
	at = 0, into = 100;
	error(copy_file_range(from, &at, from, &into, 20000, 0), EINVAL); /* overlapping */
	error(copy_file_range(from, NULL, (int)ok(open("b", O_RDONLY)), NULL, 10, 0), EBADF);
	int append = (int)ok(open("b", O_WRONLY | O_APPEND));

	error(copy_file_range(from, NULL, append, NULL, 10, 0), EBADF);
	ok(mkdir("d", 0755));
	error(copy_file_range((int)ok(open("d", O_RDONLY)), NULL, to, NULL, 10, 0), EISDIR);
}

static void other_copies(void)
{
	int from = tc_make("a", 0644), to = tc_make("b", 0644), ends[2];
	off_t at = 100;

	tc_fill(from, 0, 200000, 'x');
	equal(sendfile(to, from, &at, 150000), 150000);
	check(tc_is_filled(to, 0, 150000, 'x'));
	ok(pipe(ends));
	at = 0;
	ssize_t n = ok(splice(from, &at, ends[1], NULL, 30000, 0));

	off_t into = 300000;

	equal(splice(ends[0], NULL, to, &into, (size_t)n, 0), n);
	check(tc_is_filled(to, 300000, (size_t)n, 'x'));
}

const TcCase tc_space[] = {
	{"fallocate, with and without KEEP_SIZE", allocate},
	{"errors of fallocate", allocate_errors},
	{"PUNCH_HOLE gives the space back", punch},
	{"ZERO_RANGE, or EOPNOTSUPP", zero_range},
	{"COLLAPSE and INSERT, or EOPNOTSUPP", collapse_and_insert},
	{"SEEK_DATA and SEEK_HOLE", seek_holes},
	{"copy_file_range", copy_range},
	{"sendfile and splice", other_copies},
	{0},
};
