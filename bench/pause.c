/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a client waits when the worker is killed while it has the client's request.
 * pause KILL-FILE DIRECTORY N: N times; milliseconds on standard output. See pause.sh.
 */
#include "kill-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MOST 10000

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void show(const char *what, double times[], int n)
{
	qsort(times, (size_t)n, sizeof(times[0]), compare);
	printf("%-28s %8.2f %8.2f %8.2f\n", what, times[n / 2], times[n * 9 / 10], times[n - 1]);
}

/* Times n STATFS requests, with the worker killed in the middle of each or in none. */
static int measure(KillFile *kill_file, const char *directory, int n, int kills, double times[])
{
	struct statvfs st;

	for (int i = 0; i < n; i++) {
		double start;

		nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
		atomic_store(&kill_file->first, kills);
		start = now_ms();
		if (statvfs(directory, &st) < 0)
			return -errno;
		times[i] = now_ms() - start;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static double quiet[RUNS_MOST], killed[RUNS_MOST];
	int fd = argc == 4 ? open(argv[1], O_RDWR) : -1, n = argc == 4 ? atoi(argv[3]) : 0;
	KillFile *kill_file = fd < 0 ? MAP_FAILED
				     : mmap(NULL, sizeof(*kill_file), PROT_READ | PROT_WRITE,
					    MAP_SHARED, fd, 0);

	if (kill_file == MAP_FAILED || n < 1 || n > RUNS_MOST ||
	    measure(kill_file, argv[2], n, 0, quiet) < 0 ||
	    measure(kill_file, argv[2], n, 1, killed) < 0) {
		fprintf(stderr, "pause: KILL-FILE DIRECTORY N: %s\n", strerror(errno));
		return 1;
	}
	printf("%-28s %8s %8s %8s\n", "ms", "median", "p90", "most");
	show("a request", quiet, n);
	show("... whose worker is killed", killed, n);
	return 0;
}
