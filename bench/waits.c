/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long single operations take, for bench/fairness.sh.
 *
 *   waits DIRECTORY SECONDS OPERATION...   prints OPERATION and the 99th percentile, in us
 *   waits --load DIRECTORY N SECONDS       floods it: with names when N is even, with data when it
 *                                          is odd
 *
 * Operations come at random times, a millisecond apart on average, as of a program that
 * computes in between. stat is of a name that the kernel does not know yet, so that it is a
 * request.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_MOST 200000
#define LOAD_FILES 256
#define LOAD_CHUNK (256 * 1024)
#define LOAD_BYTES (64LL * 1024 * 1024)

static double samples[SAMPLES_MOST];
static char chunk[LOAD_CHUNK];
static unsigned seed = 1;

static void die(const char *what)
{
	fprintf(stderr, "waits: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void pause_a_little(void)
{
	unsigned us = 500 + (unsigned)(rand_r(&seed) % 1000);

	nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

static void do_stat(unsigned round)
{
	struct stat st;
	char name[32];

	/* A new name: absent ones are asked for once. */
	snprintf(name, sizeof(name), "no%u", round);
	if (stat(name, &st) == 0 || errno != ENOENT)
		die(name);
}

static void do_create(unsigned round)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "new%u", round);
	fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		die(name);
	close(fd);
}

static void do_write(unsigned round)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("data", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || pwrite(fd, chunk, 4096, (off_t)(round % 256) * 4096) != 4096)
		die("data");
}

static const struct {
	const char *name;
	void (*run)(unsigned round);
} operations[] = {{"stat", do_stat}, {"create", do_create}, {"write", do_write}};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void unlink_created(size_t which, unsigned round)
{
	char name[32];

	snprintf(name, sizeof(name), "new%u", round);
	if (operations[which].run == do_create)
		unlink(name);
}

static void measure(const char *name, double seconds)
{
	static unsigned round;
	size_t which = 0, n = 0;
	double end;

	while (strcmp(operations[which].name, name) != 0)
		if (++which == sizeof(operations) / sizeof(operations[0]))
			die(name);
	operations[which].run(++round);
	unlink_created(which, round);
	for (end = now() + seconds * 1e6; now() < end && n < SAMPLES_MOST; n++) {
		double begin;

		pause_a_little();
		begin = now();
		operations[which].run(++round);
		samples[n] = now() - begin;
		unlink_created(which, round);
	}
	qsort(samples, n, sizeof(samples[0]), compare);
	printf("%s %.1f\n", name, samples[n * 99 / 100]);
}

static void load_names(int number, double end)
{
	char name[64], other[64];

	for (unsigned i = 0; now() < end; i++) {
		int fd;

		snprintf(name, sizeof(name), "load%d-%u", number, i % LOAD_FILES);
		snprintf(other, sizeof(other), "%s-moved", name);
		fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0)
			die(name);
		close(fd);
		if (rename(name, other) < 0 || unlink(other) < 0)
			die(other);
	}
}

static void load_data(int number, double end)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "load%d", number);
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	for (off_t at = 0; now() < end; at = (at + LOAD_CHUNK) % LOAD_BYTES)
		if (pwrite(fd, chunk, sizeof(chunk), at) < 0)
			die(name);
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "--load") == 0) {
		if (chdir(argv[2]) < 0)
			die(argv[2]);
		if (atoi(argv[3]) % 2)
			load_data(atoi(argv[3]), now() + atof(argv[4]) * 1e6);
		else
			load_names(atoi(argv[3]), now() + atof(argv[4]) * 1e6);
		return 0;
	}
	if (argc < 4 || chdir(argv[1]) < 0)
		die("waits DIRECTORY SECONDS OPERATION...");
	for (int i = 3; i < argc; i++)
		measure(argv[i], atof(argv[2]) / (argc - 3));
	return 0;
}
