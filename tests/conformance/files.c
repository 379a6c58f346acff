/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* open, read, write, truncate, and what keeps a running program's file. */
#include "conformance.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void open_flags(void)
{
	close(tc_make("f", 0644));
	ok(symlink("f", "l"));
	error(open("f", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	error(open("l", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
	error(open("missing", O_RDWR), ENOENT);
	error(open("missing/f", O_RDWR | O_CREAT, 0644), ENOENT);
	error(open("f/x", O_RDWR | O_CREAT, 0644), ENOTDIR);
	error(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
	ok(close((int)ok(open("f", O_RDWR | O_CREAT, 0600))));
	equal(tc_stat("f").st_mode, S_IFREG | 0644);
	int fd = (int)ok(open("f", O_RDONLY));

	error(write(fd, "x", 1), EBADF);
	error(ftruncate(fd, 0), EINVAL);
	close(fd);
	fd = (int)ok(open("f", O_WRONLY));
	char byte;

	error(read(fd, &byte, 1), EBADF);
	close(fd);
	fd = (int)ok(open("f", O_PATH));
	error(read(fd, &byte, 1), EBADF);
	error(fchmod(fd, 0600), EBADF);
	equal(tc_fstat(fd).st_ino, tc_stat("f").st_ino);
}

static void created_read_only(void)
{
	/* the mode given at creation does not bind the descriptor that creates */
	int fd = (int)ok(open("f", O_WRONLY | O_CREAT | O_EXCL, 0400));

	ok(write(fd, "x", 1));
	close(fd);
	error(open("f", O_WRONLY), EACCES);
}

static void o_trunc(void)
{
	int fd = tc_make("f", 0644);

	tc_fill(fd, 0, 20000, 'x');
	int other = (int)ok(open("f", O_RDWR | O_TRUNC));

	equal(tc_fstat(fd).st_size, 0);
	equal(tc_fstat(fd).st_blocks, 0);
	char byte;

	equal(pread(fd, &byte, 1, 0), 0);
	tc_fill(other, 0, 3, 'y');
	check(tc_is_filled(fd, 0, 3, 'y'));
	close((int)ok(open("f", O_RDONLY | O_CREAT | O_TRUNC, 0644)));
	equal(tc_fstat(fd).st_size, 0);
}

static void read_and_write(void)
{
	int fd = tc_make("f", 0644);
	char buffer[64];

	equal(read(fd, buffer, 10), 0);
	equal(write(fd, "hello", 5), 5);
	equal(lseek(fd, 0, SEEK_CUR), 5);
	equal(read(fd, buffer, 10), 0);
	equal(pread(fd, buffer, 10, 1), 4);
	equal(pread(fd, buffer, 10, 5), 0);
	equal(pread(fd, buffer, 10, 1000), 0);
	equal(pwrite(fd, "J", 1, 0), 1);
	equal(pwrite(fd, "!", 1, 9), 1);
	equal(tc_fstat(fd).st_size, 10);
	equal(pread(fd, buffer, 64, 0), 10);
	check(memcmp(buffer, "Jello\0\0\0\0!", 10) == 0);
	equal(lseek(fd, -1, SEEK_END), 9);
	error(lseek(fd, -100, SEEK_END), EINVAL);
	error(lseek(fd, 0, 77), EINVAL);
	equal(lseek(fd, 100, SEEK_SET), 100);
	char text[] = "abcd";
	struct iovec parts[] = {{text, 2}, {text, 0}, {text + 2, 2}};

	equal(writev(fd, parts, 3), 4);
	equal(tc_fstat(fd).st_size, 104);
	equal(pwritev2(fd, parts, 3, 0, RWF_APPEND), 4);
	equal(tc_fstat(fd).st_size, 108);
	error(pread(fd, buffer, 1, -1), EINVAL);
	equal(write(fd, "", 0), 0);
}

/* Writes of every alignment around page borders, read back by another descriptor. */
static void sizes(void)
{
	static const size_t sizes[] = {1,     100,    4095,    4096,    4097,
				       65536, 131073, 1048575, 1048577, 3000000};
	static const off_t offsets[] = {0, 1, 4095, 4096, 1000000};
	int fd = tc_make("f", 0644), other = (int)ok(open("f", O_RDONLY));
	char *data = malloc(3000000), *back = malloc(3000000);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t k = 0; k < 5; k++) {
			for (size_t n = 0; n < sizes[i]; n++)
				data[n] = (char)(n * 7 + i + k * 31);
			ok(ftruncate(fd, 0));
			equal(pwrite(fd, data, sizes[i], offsets[k]), sizes[i]);
			equal(tc_stat("f").st_size, (off_t)sizes[i] + offsets[k]);
			equal(pread(other, back, sizes[i], offsets[k]), sizes[i]);
			check(memcmp(data, back, sizes[i]) == 0);
			check(tc_is_filled(other, 0, (size_t)offsets[k], 0));
		}
	}
}

static void truncate_both_ways(void)
{
	int fd = tc_make("f", 0644);

	tc_fill(fd, 0, 10000, 'x');
	ok(ftruncate(fd, 5000));
	ok(ftruncate(fd, 10000));
	check(tc_is_filled(fd, 0, 5000, 'x'));
	check(tc_is_filled(fd, 5000, 5000, 0)); /* what was cut off does not come back */
	ok(truncate("f", 0));
	ok(truncate("f", 4097));
	check(tc_is_filled(fd, 0, 4097, 0));
	error(truncate("f", -1), EINVAL);
	error(ftruncate(fd, -1), EINVAL);
	error(truncate("missing", 0), ENOENT);
	ok(mkfifo("p", 0644));
	error(truncate("p", 0), EINVAL);
	equal(tc_fstat(fd).st_size, 4097);
}

static void large_offsets(void)
{
	int fd = tc_make("f", 0644);
	off_t twenty = 20LL << 30;

	ok(ftruncate(fd, twenty));
	equal(tc_stat("f").st_size, twenty);
	equal(tc_stat("f").st_blocks, 0);
	tc_fill(fd, twenty - 10, 20, 'e');
	check(tc_is_filled(fd, twenty - 10, 20, 'e'));
	check(tc_is_filled(fd, twenty / 2, 5000, 0));
	equal(tc_stat("f").st_size, twenty + 10);
	error(pwrite(fd, "x", 1, INT64_MAX), EINVAL);
}

static void size_limit(void)
{
	struct rlimit limit = {.rlim_cur = 10000, .rlim_max = 10000};
	int fd = tc_make("f", 0644);
	static char data[20000];

	signal(SIGXFSZ, SIG_IGN);
	ok(setrlimit(RLIMIT_FSIZE, &limit));
	equal(write(fd, data, sizeof(data)), 10000);
	error(write(fd, "x", 1), EFBIG);
	error(ftruncate(fd, 10001), EFBIG);
	error(fallocate(fd, 0, 0, 20000), EFBIG);
	equal(tc_fstat(fd).st_size, 10000);
}

static void append(void)
{
	int fd = (int)ok(open("f", O_RDWR | O_CREAT | O_APPEND, 0644));
	int other = (int)ok(open("f", O_RDWR | O_APPEND));

	ok(write(fd, "one", 3));
	ok(write(other, "two", 3));
	ok(lseek(fd, 0, SEEK_SET));
	ok(write(fd, "three", 5));
	tc_has("f", "onetwothree");
	ok(pwrite(fd, "four", 4, 0)); /* Linux appends these as well */
	tc_has("f", "onetwothreefour");
	ok(ftruncate(other, 2));
	ok(write(fd, "X", 1));
	tc_has("f", "onX");
}

static void direct(void)
{
	void *data;
	int fd = (int)ok(open("f", O_RDWR | O_CREAT | O_DIRECT, 0644));

	check(posix_memalign(&data, 4096, 65536) == 0);
	memset(data, 'd', 65536);
	equal(write(fd, data, 65536), 65536);
	memset(data, 0, 65536);
	equal(pread(fd, data, 65536, 0), 65536);
	check(((char *)data)[65535] == 'd');
	int plain = (int)ok(open("f", O_RDWR));

	check(tc_is_filled(plain, 0, 65536, 'd'));
	tc_fill(plain, 4096, 4096, 'p'); /* direct and buffered see each other */
	equal(pread(fd, data, 4096, 4096), 4096);
	check(((char *)data)[0] == 'p');
	memset(data, 'q', 4096);
	equal(pwrite(fd, data, 4096, 8192), 4096);
	check(tc_is_filled(plain, 8192, 4096, 'q'));
	ok(fcntl(plain, F_SETFL, O_DIRECT));
}

static void sync_family(void)
{
	int fd = (int)ok(open("f", O_RDWR | O_CREAT | O_SYNC, 0644));
	int dir = (int)ok(open(".", O_RDONLY | O_DIRECTORY));

	ok(write(fd, "x", 1));
	ok(fsync(fd));
	ok(fdatasync(fd));
	ok(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	ok(syncfs(fd));
	ok(fsync(dir));
	ok(fdatasync(dir));
	ok(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 ? 0 : -1);
	tc_has("f", "x");
	close((int)ok(open("f", O_WRONLY | O_DSYNC)));
}

static void exclusive(void *data)
{
	int *winners = data;

	for (int i = 0; i < 200; i++) {
		char name[32];

		snprintf(name, sizeof(name), "lock%d", i);
		if (open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) < 0)
			equal(errno, EEXIST);
		else if (write(*winners, "w", 1) != 1)
			tc_fail(__FILE__, __LINE__, "count");
	}
}

static void one_winner(void)
{
	int count = (int)ok(open("winners", O_WRONLY | O_CREAT | O_APPEND, 0644));
	pid_t children[4];

	for (int i = 0; i < 4; i++)
		children[i] = tc_fork(exclusive, &count);
	for (int i = 0; i < 4; i++)
		tc_wait(children[i]);
	equal(tc_fstat(count).st_size, 200);
}

static void copy_program(const char *name)
{
	int from = (int)ok(open("/bin/sleep", O_RDONLY));
	int to = (int)ok(open(name, O_WRONLY | O_CREAT | O_EXCL, 0755));
	struct stat st = tc_fstat(from);

	while (tc_fstat(to).st_size < st.st_size)
		check(ok(sendfile(to, from, NULL, 1 << 20)) > 0);
	close(to);
	close(from);
}

static void text_busy(void)
{
	int ends[2];
	char byte;
	pid_t child;

	copy_program("prog");
	ok(pipe2(ends, O_CLOEXEC));
	child = fork();
	if (child == 0) {
		execl("./prog", "prog", "20", NULL);
		_exit(127);
	}
	close(ends[1]);
	equal(read(ends[0], &byte, 1), 0); /* it runs when the pipe has no writer any more */
	error(open("prog", O_WRONLY), ETXTBSY);
	error(truncate("prog", 0), ETXTBSY);
	ok(unlink("prog")); /* but it may go */
	kill(child, SIGKILL);
	ok(waitpid(child, NULL, 0));
	/* the other way round: open for writing, so not to be run */
	copy_program("prog2");
	int fd = (int)ok(open("prog2", O_WRONLY));

	error(execl("./prog2", "prog2", "0", NULL), ETXTBSY);
	close(fd);
}

static int run_program(const char *name)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		execl(name, name, "0", NULL);
		_exit(errno == EACCES ? 126 : 127);
	}
	ok(waitpid(child, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void execute(void)
{
	copy_program("prog");
	equal(run_program("./prog"), 0);
	ok(chmod("prog", 0644));
	equal(run_program("./prog"), 126);
	tc_put("script", "#!/bin/sh\nexit 42\n");
	ok(chmod("script", 0755));
	equal(run_program("./script"), 42);
	tc_put("script", "#!/bin/sh\nexit 43\n"); /* rewritten in place */
	equal(run_program("./script"), 43);
	int fd = (int)ok(open("prog", O_RDONLY | O_CLOEXEC));

	ok(chmod("prog", 0755));
	pid_t child = fork();
	int status;

	if (child == 0) {
		char name[] = "prog", zero[] = "0", *argv[] = {name, zero, NULL},
		     *environ[] = {NULL};

		fexecve(fd, argv, environ);
		_exit(127);
	}
	ok(waitpid(child, &status, 0));
	equal(status, 0);
}

static void load_library(void)
{
	static const char *const places[] = {"/lib/x86_64-linux-gnu/libm.so.6",
					     "/lib/aarch64-linux-gnu/libm.so.6", "/lib64/libm.so.6",
					     "/usr/lib/libm.so.6"};
	int from = -1, to;

	for (size_t i = 0; i < 4 && from < 0; i++)
		from = open(places[i], O_RDONLY);
	if (from < 0)
		tc_skip("no libm.so.6 where it usually is");
	to = tc_make("library.so", 0644);
	while (tc_fstat(to).st_size < tc_fstat(from).st_size)
		check(ok(sendfile(to, from, NULL, 1 << 20)) > 0);
	close(to);
	void *library = dlopen("./library.so", RTLD_NOW);
	double (*cosine)(double);

	if (!library)
		tc_fail(__FILE__, __LINE__, "dlopen: %s", dlerror());
	*(void **)&cosine = dlsym(library, "cos");
	check(cosine && cosine(0.0) == 1.0);
	ok(unlink("library.so"));
	check(cosine(0.0) == 1.0);
}

const TcCase tc_files[] = {
	{"errors and effects of open", open_flags},
	{"a new file's mode does not bind its maker's descriptor", created_read_only, TC_PLAIN},
	{"O_TRUNC", o_trunc},
	{"read, write, seek", read_and_write},
	{"writes of many sizes at many offsets", sizes},
	{"truncate down and up", truncate_both_ways},
	{"20 GB offsets, holes that cost nothing", large_offsets},
	{"RLIMIT_FSIZE", size_limit},
	{"O_APPEND", append},
	{"O_DIRECT", direct},
	{"fsync and its kin", sync_family},
	{"O_EXCL has one winner", one_winner},
	{"ETXTBSY", text_busy},
	{"programs and scripts run", execute},
	{"a library is loaded", load_library},
	{0},
};
