/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One file-system operation, N times, for bench/requests.sh.
 *
 *   ops OPERATION N [DIRECTORY]   prints the microseconds per operation
 *   ops list                      prints the operations, NAME: WORDS
 *
 * What an operation needs is prepared before, also when N is 0; so the requests of two
 * runs with different N differ by those of the operation alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define FILE_PAGES 256 /* of the file for random writes: 1 MiB */

static char page[4 * PAGE];
static int kept_file = -1; /* opened by a preparation */

static void die(const char *what)
{
	fprintf(stderr, "ops: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void check(int result, const char *what)
{
	if (result < 0)
		die(what);
}

static int open_or_die(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC, 0644);
	check(fd, name);
	return fd;
}

static void write_all(int fd, size_t size)
{
	if (write(fd, page, size) != (ssize_t)size)
		die("write");
}

/* A name per round, so that no round meets what an earlier one left. */
static const char *name_of(unsigned round)
{
	static char name[32];
	snprintf(name, sizeof(name), "file%u", round);
	return name;
}

static void prepare_nothing(void)
{
}

static void create_close_unlink(unsigned round)
{
	close(open_or_die(name_of(round), O_WRONLY | O_CREAT | O_EXCL));
	check(unlink(name_of(round)), "unlink");
}

static void create_write_close(unsigned round)
{
	int fd = open_or_die(name_of(round), O_WRONLY | O_CREAT | O_TRUNC);
	write_all(fd, PAGE);
	close(fd);
}

static void prepare_hot(void)
{
	int fd = open_or_die("hot", O_RDWR | O_CREAT);
	write_all(fd, PAGE);
	if (pread(fd, page, PAGE, 0) != PAGE)
		die("read");
	close(fd);
}

static void open_read_close(unsigned round)
{
	int fd = open_or_die("hot", O_RDONLY);
	if (read(fd, page, PAGE) != PAGE)
		die("read");
	close(fd);
}

static void mkdir_rmdir(unsigned round)
{
	check(mkdir(name_of(round), 0755), "mkdir");
	check(rmdir(name_of(round)), "rmdir");
}

static void prepare_rename(void)
{
	close(open_or_die("name0", O_WRONLY | O_CREAT));
}

static void rename_back_and_forth(unsigned round)
{
	if (round % 2)
		check(rename("name1", "name0"), "rename");
	else
		check(rename("name0", "name1"), "rename");
}

static void prepare_append(void)
{
	kept_file = open_or_die("log", O_WRONLY | O_CREAT | O_APPEND);
	write_all(kept_file, 100);
}

static void append_100(unsigned round)
{
	write_all(kept_file, 100);
}

static void prepare_random(void)
{
	kept_file = open_or_die("data", O_RDWR | O_CREAT);
	for (unsigned i = 0; i < FILE_PAGES; i++)
		write_all(kept_file, PAGE);
}

static void write_random_page(unsigned round)
{
	off_t at = (off_t)(round * 97 % FILE_PAGES) * PAGE;
	if (pwrite(kept_file, page, PAGE, at) != PAGE)
		die("pwrite");
}

static void bind_connect_unlink(unsigned round)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, name_of(round));
	check(bind(server, (struct sockaddr *)&address, sizeof(address)), "bind");
	check(listen(server, 1), "listen");
	check(connect(client, (struct sockaddr *)&address, sizeof(address)), "connect");
	close(client);
	close(server);
	check(unlink(name_of(round)), "unlink");
}

/* What a compiler driver does with its temporary: made exclusively, written by one pass, read by
 * the next. */
static void compiler_temp_file(unsigned round)
{
	struct stat st;
	int fd = open_or_die(name_of(round), O_RDWR | O_CREAT | O_EXCL);
	close(fd);
	fd = open_or_die(name_of(round), O_WRONLY | O_CREAT | O_TRUNC);
	for (int i = 0; i < 4; i++)
		write_all(fd, PAGE);
	close(fd);
	fd = open_or_die(name_of(round), O_RDONLY);
	check(fstat(fd, &st), "fstat");
	if (read(fd, page, sizeof(page)) != (ssize_t)sizeof(page))
		die("read");
	close(fd);
	check(unlink(name_of(round)), "unlink");
}

typedef struct Operation {
	const char *name, *words;
	void (*prepare)(void);
	void (*round)(unsigned round);
} Operation;

static const Operation operations[] = {
	{"create", "create, close, unlink", prepare_nothing, create_close_unlink},
	{"write4k", "create, write 4K, close", prepare_nothing, create_write_close},
	{"hot", "open, read 4K, close, hot", prepare_hot, open_read_close},
	{"mkdir", "mkdir, rmdir", prepare_nothing, mkdir_rmdir},
	{"rename", "rename", prepare_rename, rename_back_and_forth},
	{"append", "100-byte append", prepare_append, append_100},
	{"random", "random 4K write", prepare_random, write_random_page},
	{"socket", "socket bind, connect, unlink", prepare_nothing, bind_connect_unlink},
	{"compiler", "compiler temp file (16K)", prepare_nothing, compiler_temp_file},
};

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int run(const Operation *operation, unsigned rounds)
{
	operation->prepare();
	double start = now_us();
	for (unsigned i = 0; i < rounds; i++)
		operation->round(i);
	printf("%.1f\n", rounds ? (now_us() - start) / rounds : 0.0);
	return 0;
}

int main(int argc, char **argv)
{
	size_t n = sizeof(operations) / sizeof(operations[0]);

	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (size_t i = 0; i < n; i++)
			printf("%s: %s\n", operations[i].name, operations[i].words);
		return 0;
	}
	for (size_t i = 0; argc >= 3 && i < n; i++) {
		if (strcmp(argv[1], operations[i].name) == 0) {
			check(argc > 3 ? chdir(argv[3]) : 0, "chdir");
			return run(&operations[i], (unsigned)strtoul(argv[2], NULL, 10));
		}
	}
	fputs("usage: ops OPERATION N [DIRECTORY] | ops list\n", stderr);
	return 2;
}
