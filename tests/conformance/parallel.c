/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several processes at once. */
#include "conformance.h"

#include <stdlib.h>
#include <sys/wait.h>

static void make_tree(const char *root, int directories, int files)
{
	char name[100];

	ok(mkdir(root, 0755));
	for (int i = 0; i < directories; i++) {
		snprintf(name, sizeof(name), "%s/d%d", root, i);
		ok(mkdir(name, 0755));
		for (int k = 0; k < files; k++) {
			snprintf(name, sizeof(name), "%s/d%d/f%d", root, i, k);
			close(tc_make(name, 0644));
		}
	}
}

static pid_t start(const char *program, const char *argument)
{
	pid_t child = fork();

	if (child == 0) {
		/* two that remove the same may each complain of what the other took */
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 2);
		execlp(program, program, "-rf", argument, NULL);
		_exit(127);
	}
	return child;
}

static void three_removals(void)
{
	for (int round = 0; round < 3; round++) {
		pid_t children[3];

		make_tree("tree", 12, 12);
		for (int i = 0; i < 3; i++)
			children[i] = start("rm", "tree");
		for (int i = 0; i < 3; i++)
			ok(waitpid(children[i], NULL, 0));
		check(!tc_exists("tree"));
	}
}

enum { LINES = 500, LINE = 100, WRITERS = 4 };

static void append_lines(void *data)
{
	int fd = (int)ok(open("log", O_WRONLY | O_APPEND)), who = *(int *)data;
	char line[LINE + 1];

	for (int i = 0; i < LINES; i++) {
		memset(line, 'a' + who, LINE);
		snprintf(line, 10, "%d:%06d:", who, i);
		line[9] = ' ';
		line[LINE - 1] = '\n';
		equal(write(fd, line, LINE), LINE);
	}
}

static void appends(void)
{
	int next[WRITERS] = {0}, numbers[WRITERS];
	pid_t children[WRITERS];
	char line[LINE];

	close(tc_make("log", 0644));
	for (int i = 0; i < WRITERS; i++) {
		numbers[i] = i;
		children[i] = tc_fork(append_lines, &numbers[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		tc_wait(children[i]);
	FILE *file = fopen("log", "r");

	equal(tc_stat("log").st_size, WRITERS * LINES * LINE);
	for (int i = 0; i < WRITERS * LINES; i++) {
		equal(fread(line, 1, LINE, file), LINE);
		int who = line[0] - '0';

		check(who >= 0 && who < WRITERS && line[LINE - 1] == '\n');
		equal(atoi(line + 2), next[who]);
		next[who]++;
		for (int k = 10; k < LINE - 1; k++)
			equal(line[k], 'a' + who);
	}
}

static void churn_one_directory(void *data)
{
	int who = *(int *)data;

	for (int i = 0; i < 200; i++) {
		char a[32], b[32];

		snprintf(a, sizeof(a), "d/%d-%d", who, i);
		snprintf(b, sizeof(b), "d/%d-%d-renamed", who, i);
		tc_put(a, a);
		ok(rename(a, b));
		tc_has(b, a);
		ok(link(b, a));
		ok(unlink(b));
		if (i % 2)
			ok(unlink(a));
	}
}

static void one_directory(void)
{
	pid_t children[4];
	int numbers[4];

	ok(mkdir("d", 0755));
	for (int i = 0; i < 4; i++) {
		numbers[i] = i;
		children[i] = tc_fork(churn_one_directory, &numbers[i]);
	}
	for (int i = 0; i < 4; i++)
		tc_wait(children[i]);
	equal(tc_count("d"), 4 * 100);
}

static void make_and_remove_same(void *data)
{
	for (int i = 0; i < 400; i++) {
		int r = mkdir("same", 0755);

		if (r < 0)
			equal(errno, EEXIST);
		r = rmdir("same");
		if (r < 0)
			check(errno == ENOENT);
	}
	(void)data;
}

static void same_name(void)
{
	pid_t children[3];

	for (int i = 0; i < 3; i++)
		children[i] = tc_fork(make_and_remove_same, NULL);
	for (int i = 0; i < 3; i++)
		tc_wait(children[i]);
	check(!tc_exists("same"));
}

/* Directories that move between two parents while others walk through them. */
static void move_directories(void *data)
{
	(void)data;
	for (int i = 0; i < 500; i++) {
		ok(rename("a/moving", "b/moving"));
		ok(rename("b/moving", "a/moving"));
	}
}

static void walk(void *data)
{
	(void)data;
	for (int i = 0; i < 2000; i++) {
		struct stat st;

		if (stat(i % 2 ? "a/moving/deep/file" : "b/moving/deep/file", &st) < 0)
			equal(errno, ENOENT);
		else
			equal(st.st_size, 4);
	}
}

static void moving_directories(void)
{
	pid_t children[3];

	ok(mkdir("a", 0755));
	ok(mkdir("b", 0755));
	ok(mkdir("a/moving", 0755));
	ok(mkdir("a/moving/deep", 0755));
	tc_put("a/moving/deep/file", "four");
	children[0] = tc_fork(move_directories, NULL);
	children[1] = tc_fork(walk, NULL);
	children[2] = tc_fork(walk, NULL);
	for (int i = 0; i < 3; i++)
		tc_wait(children[i]);
	tc_has("a/moving/deep/file", "four");
}

static void write_region(void *data)
{
	int fd = (int)ok(open("f", O_RDWR)), who = *(int *)data;

	/* neighbours share pages */
	for (int i = 0; i < 200; i++) {
		tc_fill(fd, i * 4000 + who * 1000, 1000, (char)('a' + who));
		check(tc_is_filled(fd, i * 4000 + who * 1000, 1000, (char)('a' + who)));
	}
}

static void writers_of_one_file(void)
{
	pid_t children[4];
	int numbers[4], fd = tc_make("f", 0644);

	for (int i = 0; i < 4; i++) {
		numbers[i] = i;
		children[i] = tc_fork(write_region, &numbers[i]);
	}
	for (int i = 0; i < 4; i++)
		tc_wait(children[i]);
	for (int i = 0; i < 200; i++)
		for (int who = 0; who < 4; who++)
			check(tc_is_filled(fd, i * 4000 + who * 1000, 1000, (char)('a' + who)));
	equal(tc_fstat(fd).st_blocks, (800000 + 4095) / 4096 * 8);
}

const TcCase tc_parallel[] = {
	{"rm -rf by three ends empty", three_removals},
	{"appends of four writers: no line lost or torn", appends},
	{"four writers in one directory", one_directory},
	{"three make and remove one name", same_name},
	{"directories move while others walk through", moving_directories},
	{"four writers of one file", writers_of_one_file},
	{0},
};
