/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that few programs make, and calls together that few make together. */
#include "conformance.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGE 4096

static char *map_shared(int fd, size_t size)
{
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(map != MAP_FAILED);
	return map;
}

static void flags_of_one_write(void)
{
	int fd = tc_make("f", 0644);
	struct iovec parts[2] = {{(char[]){"one"}, 3}, {(char[]){"two"}, 3}};

	equal(pwritev2(fd, parts, 2, 0, 0), 6);
	equal(pwritev2(fd, parts, 1, 0, RWF_APPEND), 3); /* at the end, whatever the offset */
	equal(pwritev2(fd, parts + 1, 1, 0, RWF_DSYNC), 3);
	equal(pwritev2(fd, parts, 1, -1, RWF_SYNC), 3); /* at the position, which is 0 */
	tc_has("f", "onetwoone");
	error(pwritev2(fd, parts, 1, 0, 1 << 20), EOPNOTSUPP);
}

static void pages_removed_by_madvise(void)
{
	int fd = tc_make("f", 0644);
	char *map;

	tc_fill(fd, 0, 8 * PAGE, 'x');
	map = map_shared(fd, 8 * PAGE);
	check(map[2 * PAGE] == 'x');
	ok(madvise(map + 2 * PAGE, 3 * PAGE, MADV_REMOVE));
	equal(tc_fstat(fd).st_blocks, 5 * 8);
	check(map[5 * PAGE] == 'x' && map[2 * PAGE - 1] == 'x');
	check(tc_is_filled(fd, 2 * PAGE, 3 * PAGE, 0));
	equal(tc_fstat(fd).st_size, 8 * PAGE);
	map[3 * PAGE] = 'y';
	ok(msync(map, 8 * PAGE, MS_SYNC));
	equal(tc_fstat(fd).st_blocks, 6 * 8);
}

static void read_only_descriptors(void)
{
	int fd, reader;

	tc_put("f", "content");
	reader = (int)ok(open("f", O_RDONLY));
	error(write(reader, "x", 1), EBADF);
	error(ftruncate(reader, 0), EINVAL);
	error(fallocate(reader, 0, 0, 10), EBADF);
	fd = (int)ok(open("f", O_PATH));
	error(write(fd, "x", 1), EBADF);
	error(read(fd, &(char){0}, 1), EBADF);
	error(fchmod(fd, 0600), EBADF);
	equal(tc_fstat(fd).st_size, 7);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	close((int)ok(open(path, O_RDWR))); /* a path descriptor, opened in earnest */
	ok(linkat(AT_FDCWD, path, AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
	equal(tc_stat("f").st_nlink, 2);
	ok(unlink("f"));
	ok(unlink("g"));
	equal(tc_fstat(fd).st_nlink, 0);
	close((int)ok(open(path, O_RDWR)));
}

static void program_without_a_name(void)
{
	int from = (int)ok(open("/bin/true", O_RDONLY)), fd, status;
	pid_t child;

	fd = (int)ok(open("prog", O_WRONLY | O_CREAT | O_EXCL, 0755));
	check(ok(sendfile(fd, from, NULL, 1 << 24)) > 0);
	close(fd);
	fd = (int)ok(open("prog", O_RDONLY | O_CLOEXEC));
	ok(unlink("prog"));
	child = fork();
	if (child == 0) {
		char name[] = "prog", *argv[] = {name, NULL}, *none[] = {NULL};

		fexecve(fd, argv, none);
		_exit(127);
	}
	ok(waitpid(child, &status, 0));
	equal(status, 0);
}

static sigjmp_buf on_bus;

static void bus(int number)
{
	siglongjmp(on_bus, number);
}

#define RACE_SIZE (64 * PAGE)

/* Stores into every page, again and again; a page that has just been cut off is no error. */
static void store_in_a_race(void *data)
{
	int fd = (int)ok(open("f", O_RDWR));
	char *map = map_shared(fd, RACE_SIZE);
	volatile int round;

	(void)data;
	signal(SIGBUS, bus);
	for (round = 0; round < 300; round++) {
		if (sigsetjmp(on_bus, 1))
			continue;
		for (size_t at = 0; at < RACE_SIZE; at += PAGE)
			map[at + 10] = 's';
	}
	ok(munmap(map, RACE_SIZE));
}

static void write_in_a_race(void *data)
{
	int fd = (int)ok(open("f", O_RDWR));

	(void)data;
	for (int round = 0; round < 300; round++) {
		ok(pwrite(fd, "w", 1, (round % 64) * PAGE + 20));
		ok(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			     (round * 7 % 64) * PAGE, 3 * PAGE));
	}
}

/* Afterwards the file holds only what somebody stored, and costs what it holds. */
static void mapped_while_cut(void)
{
	int fd = tc_make("f", 0644);
	pid_t children[3];
	char *content = malloc(RACE_SIZE);

	ok(ftruncate(fd, RACE_SIZE));
	children[0] = tc_fork(store_in_a_race, NULL);
	children[1] = tc_fork(store_in_a_race, NULL);
	children[2] = tc_fork(write_in_a_race, NULL);
	for (int i = 0; i < 300; i++) {
		ok(ftruncate(fd, (i * 13 % 64) * PAGE + 5));
		ok(ftruncate(fd, RACE_SIZE));
	}
	for (int i = 0; i < 3; i++)
		tc_wait(children[i]);
	ok(fsync(fd));
	equal(pread(fd, content, RACE_SIZE, 0), RACE_SIZE);
	for (int i = 0; i < RACE_SIZE; i++) {
		char wanted = i % PAGE == 10 ? 's' : i % PAGE == 20 ? 'w' : 0;

		check(content[i] == 0 || content[i] == wanted);
	}
	ok(ftruncate(fd, 0));
	equal(tc_fstat(fd).st_blocks, 0);
}

static void made_and_removed_in_a_watched_place(void)
{
	int dir = (int)(mkdir("d", 0755), ok(open("d", O_RDONLY | O_DIRECTORY)));
	int fd = (int)ok(openat(dir, "f", O_RDWR | O_CREAT, 0644));

	ok(unlinkat(dir, "f", 0));
	ok(rmdir("d"));
	error(openat(dir, "f", O_RDWR | O_CREAT, 0644), ENOENT);
	error(mkdirat(dir, "x", 0755), ENOENT);
	error(symlinkat("x", dir, "s"), ENOENT);
	error(renameat(AT_FDCWD, "d", dir, "e"), ENOENT);
	ok(write(fd, "still", 5));
	tc_put("other", "x");
	error(linkat(AT_FDCWD, "other", dir, "l", 0), ENOENT);
	error(renameat(AT_FDCWD, "other", dir, "o"), ENOENT);
	ok(mkdir("d", 0755)); /* another one of that name */
	error(openat(dir, "f", O_RDWR | O_CREAT, 0644), ENOENT);
	equal(tc_count("d"), 0);
}

/* Over itself by every pair of names, with the file open, mapped and locked. */
static void renamed_among_its_own_names(void)
{
	int fd = tc_make("a", 0644);
	char *map;

	tc_fill(fd, 0, PAGE, 'x');
	map = map_shared(fd, PAGE);
	ok(link("a", "b"));
	ok(mkdir("d", 0755));
	ok(link("a", "d/c"));
	ok(rename("a", "b"));
	ok(rename("d/c", "a"));
	check(tc_exists("a") && tc_exists("b") && tc_exists("d/c"));
	equal(renameat2(AT_FDCWD, "a", AT_FDCWD, "d/c", RENAME_EXCHANGE), 0);
	error(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE), EEXIST);
	map[0] = 'y';
	equal(tc_stat("b").st_nlink, 3);
	for (const char *const *name = (const char *const[]){"a", "b", "d/c", NULL}; *name;
	     name++) {
		int other = (int)ok(open(*name, O_RDONLY));

		check(tc_is_filled(other, 0, 1, 'y'));
		close(other);
		ok(unlink(*name));
	}
	equal(tc_fstat(fd).st_nlink, 0);
	map[1] = 'z';
	check(tc_is_filled(fd, 1, 1, 'z'));
}

/* Exchanged for what it lies in, for what lies in it, for nothing. */
static void exchanges_that_cannot_be(void)
{
	ok(mkdir("d", 0755));
	ok(mkdir("d/e", 0755));
	tc_put("f", "file");
	error(renameat2(AT_FDCWD, "d", AT_FDCWD, "d/e", RENAME_EXCHANGE), EINVAL);
	error(renameat2(AT_FDCWD, "d/e", AT_FDCWD, "d", RENAME_EXCHANGE), EINVAL);
	error(renameat2(AT_FDCWD, "f", AT_FDCWD, "missing", RENAME_EXCHANGE), ENOENT);
	error(renameat2(AT_FDCWD, "f", AT_FDCWD, "d", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
	error(renameat2(AT_FDCWD, "f", AT_FDCWD, "d", 1 << 10), EINVAL);
	ok(renameat2(AT_FDCWD, "f", AT_FDCWD, "d/e", RENAME_EXCHANGE)); /* a file and a directory */
	check(S_ISDIR(tc_stat("f").st_mode));
	tc_has("d/e", "file");
	equal(tc_stat("d").st_nlink, 2);
	ok(rmdir("f"));
}

static void sizes_at_the_edges(void)
{
	int fd = tc_make("f", 0644);

	error(ftruncate(fd, -1), EINVAL);
	error(fallocate(fd, 0, 0, 0), EINVAL);
	error(fallocate(fd, 0, -1, 10), EINVAL);
	error(fallocate(fd, 0, INT64_MAX - 5, 10), EFBIG);
	error(pwrite(fd, "x", 1, -1), EINVAL);
	error(pread(fd, &(char){0}, 1, -1), EINVAL);
	error(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP); /* not without KEEP_SIZE */
	ok(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, PAGE));
	equal(tc_fstat(fd).st_size, 0);
	ok(fallocate(fd, 0, 1, 1)); /* one page, two bytes */
	equal(tc_fstat(fd).st_size, 2);
	equal(tc_fstat(fd).st_blocks, 8);
	ok(fallocate(fd, 0, PAGE - 1, 2)); /* across the edge of a page */
	equal(tc_fstat(fd).st_size, PAGE + 1);
	equal(tc_fstat(fd).st_blocks, 16);
	ok(ftruncate(fd, PAGE));
	equal(tc_fstat(fd).st_blocks, 8);
	ok(fallocate(fd, FALLOC_FL_KEEP_SIZE, PAGE, 4 * PAGE)); /* behind the end */
	equal(tc_fstat(fd).st_size, PAGE);
	equal(tc_fstat(fd).st_blocks, 5 * 8);
	ok(ftruncate(fd, PAGE)); /* to the size that it has */
	tc_fill(fd, PAGE, PAGE, 'x');
	check(tc_is_filled(fd, 0, PAGE, 0) && tc_is_filled(fd, PAGE, PAGE, 'x'));
}

/* Bytes that a truncated page held do not come back. */
static void no_stale_bytes(void)
{
	int fd = tc_make("f", 0644);
	char *map;

	tc_fill(fd, 0, 3 * PAGE, 's');
	ok(ftruncate(fd, 100));
	ok(ftruncate(fd, 3 * PAGE));
	check(tc_is_filled(fd, 0, 100, 's') && tc_is_filled(fd, 100, 3 * PAGE - 100, 0));
	tc_fill(fd, 0, 3 * PAGE, 't');
	map = map_shared(fd, 3 * PAGE);
	ok(ftruncate(fd, PAGE + 100));
	ok(pwrite(fd, "e", 1, 3 * PAGE)); /* a write beyond the end */
	check(tc_is_filled(fd, PAGE + 100, 2 * PAGE - 100, 0));
	check(map[PAGE + 100] == 0 && map[2 * PAGE] == 0 && map[PAGE + 99] == 't');
	ok(ftruncate(fd, 10));
	ok(fallocate(fd, 0, 0, PAGE));
	check(tc_is_filled(fd, 10, PAGE - 10, 0));
}

static void ioctls(void)
{
	int fd, n = 0;

	tc_put("f", "hello");
	fd = (int)ok(open("f", O_RDWR));
	ok(ioctl(fd, FIONREAD, &n));
	equal(n, 5);
	ok(lseek(fd, 2, SEEK_SET));
	ok(ioctl(fd, FIONREAD, &n));
	equal(n, 3);
	ok(ioctl(fd, FIONBIO, &(int){1}));
	ok(ioctl(fd, FIOCLEX, NULL));
	error(ioctl(fd, 0x5401 /* TCGETS: is it a terminal? */, (char[128]){0}), ENOTTY);
	equal(isatty(fd), 0);
	error(ioctl(fd, 0x1234abcd, NULL), ENOTTY);
}

const TcCase tc_odd[] = {
	{"flags of one write", flags_of_one_write},
	{"pages removed by madvise", pages_removed_by_madvise},
	{"descriptors for reading, and path descriptors", read_only_descriptors},
	{"a program without a name", program_without_a_name},
	{"mapped and written while it is cut and punched", mapped_while_cut},
	{"nothing is made in a removed directory", made_and_removed_in_a_watched_place},
	{"renamed among its own names", renamed_among_its_own_names},
	{"exchanges that cannot be", exchanges_that_cannot_be},
	{"sizes at the edges", sizes_at_the_edges},
	{"what was cut off does not come back", no_stale_bytes},
	{"ioctls", ioctls},
	{0},
};
