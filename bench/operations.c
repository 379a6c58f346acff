/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "operations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PAGE 4096
#define FILE_PAGES 256 /* of the file for random writes: 1 MiB */
#define LISTINGS 8     /* directories that are there to be listed */
#define COLD_FILES 4   /* files that are there to be read */

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

static void symlink_unlink(unsigned round)
{
	check(symlink("target", name_of(round)), "symlink");
	check(unlink(name_of(round)), "unlink");
}

static void stat_hot(unsigned round)
{
	struct stat st;

	(void)round;
	check(stat("hot", &st), "stat");
}

static void stat_missing(unsigned round)
{
	struct stat st;

	(void)round;
	if (stat("missing", &st) == 0 || errno != ENOENT)
		die("stat of a missing name");
}

static void prepare_link(void)
{
	check(symlink("target", "link"), "symlink");
	if (readlink("link", page, sizeof(page)) < 0)
		die("readlink");
}

static void readlink_hot(unsigned round)
{
	(void)round;
	check((int)readlink("link", page, sizeof(page)), "readlink");
}

#define LISTED 1000

/* Many directories: a round must not meet what an earlier one has made hot. */
static void prepare_listing(void)
{
	char name[64];

	for (unsigned d = 0; d < LISTINGS; d++) {
		snprintf(name, sizeof(name), "dir%u", d);
		check(mkdir(name, 0755), "mkdir");
		for (unsigned i = 0; i < LISTED; i++) {
			snprintf(name, sizeof(name), "dir%u/entry%u", d, i);
			close(open_or_die(name, O_WRONLY | O_CREAT));
		}
	}
}

static void list_directory(unsigned round)
{
	char name[32];
	unsigned n = 0;
	DIR *dir;

	snprintf(name, sizeof(name), "dir%u", round % LISTINGS);
	dir = opendir(name);
	if (!dir)
		die(name);
	while (readdir(dir))
		n++;
	closedir(dir);
	if (n != LISTED + 2) {
		errno = EIO;
		die("an entry is missing in a listing");
	}
}

#define WHOLE (16U * 1024 * 1024)
#define CHUNK (256U * 1024)

static char *chunk(void)
{
	static char data[CHUNK];
	return data;
}

static void write_whole(unsigned round)
{
	int fd = open_or_die(name_of(round), O_WRONLY | O_CREAT | O_TRUNC);

	for (unsigned at = 0; at < WHOLE; at += CHUNK) {
		if (write(fd, chunk(), CHUNK) != CHUNK)
			die("write");
	}
	close(fd);
}

static void read_whole(unsigned round)
{
	int fd = open_or_die(name_of(round), O_RDONLY);

	for (unsigned at = 0; at < WHOLE; at += CHUNK) {
		if (read(fd, chunk(), CHUNK) != CHUNK)
			die("read");
	}
	close(fd);
}

/* What most whole files go through: written, read once, gone. */
static void write_read_whole(unsigned round)
{
	write_whole(round);
	read_whole(round);
	check(unlink(name_of(round)), "unlink");
}

static void prepare_cold_file(void)
{
	for (unsigned i = 0; i < COLD_FILES; i++)
		write_whole(i);
}

static void read_cold(unsigned round)
{
	read_whole(round % COLD_FILES);
}

const TnBenchOperation tn_bench_operations[] = {
	{"create", "create, close, unlink", prepare_nothing, create_close_unlink},
	{"write4k", "create, write 4K, close", prepare_nothing, create_write_close},
	{"hot", "open, read 4K, close, hot", prepare_hot, open_read_close},
	{"mkdir", "mkdir, rmdir", prepare_nothing, mkdir_rmdir},
	{"rename", "rename", prepare_rename, rename_back_and_forth},
	{"append", "100-byte append", prepare_append, append_100},
	{"random", "random 4K write", prepare_random, write_random_page},
	{"socket", "socket bind, connect, unlink", prepare_nothing, bind_connect_unlink},
	{"compiler", "compiler temp file (16K)", prepare_nothing, compiler_temp_file},
	{"symlink", "symlink, unlink", prepare_nothing, symlink_unlink},
	{"stat", "stat, hot", prepare_hot, stat_hot},
	{"missing", "stat of a missing name, hot", prepare_nothing, stat_missing},
	{"readlink", "readlink, hot", prepare_link, readlink_hot},
	{"readdir", "readdir of 1,000 entries", prepare_listing, list_directory},
	{"whole", "write, read, unlink 16M", prepare_nothing, write_read_whole},
	{"read", "read of 16M", prepare_cold_file, read_cold},
};

const size_t tn_bench_n_operations = sizeof(tn_bench_operations) / sizeof(tn_bench_operations[0]);
