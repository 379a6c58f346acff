/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Has the worker killed at every point that it passes in every operation, then once more at
 * every point of its successor's repetition. steps KILL-FILE DIRECTORY [once|twice
 * [FIRST]]: without or with (the default) second kills, beginning with operation FIRST. TAP on
 * standard output; exit status 1 after a failure.
 */
#include "operations.h"
#include "trouble.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define POINTS_MOST 400 /* of one operation: a test that runs away ends */

static KillFile *kill_file;
static struct statvfs at_start;

static void arm(int64_t first, int64_t second)
{
	atomic_store(&kill_file->killed, 0);
	atomic_store(&kill_file->second, second);
	atomic_store(&kill_file->first, first);
}

/* How many workers have died of it. */
static uint64_t disarm(void)
{
	atomic_store(&kill_file->first, 0);
	atomic_store(&kill_file->second, 0);
	return atomic_load(&kill_file->killed);
}

/* One run with kills at these points. NULL, or what went wrong; *ret_killed: workers killed. */
static const char *run(const Operation *operation, int64_t first, int64_t second,
		       uint64_t *ret_killed)
{
	const char *error;

	errno = 0;
	error = operation->prepare();
	if (error)
		return error;
	arm(first, second);
	errno = 0;
	error = operation->act();
	*ret_killed = disarm();
	errno = 0;
	if (!error)
		error = operation->tidy();
	return error ? error : trouble_check_account(&at_start);
}

static const char *sweep(const Operation *operation, bool twice, unsigned *ret_kills)
{
	static char text[768];

	for (int64_t first = 1; first < POINTS_MOST; first++) {
		for (int64_t second = 0; second < POINTS_MOST; second++) {
			uint64_t killed = 0;
			const char *error = run(operation, first, second, &killed);

			*ret_kills += (unsigned)killed;
			if (error) {
				snprintf(text, sizeof(text), "killed at %lld, then %lld: %s",
					 (long long)first, (long long)second, error);
				return text;
			}
			if (killed == 0)
				return NULL; /* it has fewer points */
			if (!twice || (second > 0 && killed < 2))
				break;
		}
	}
	return "no end of points";
}

int main(int argc, char **argv)
{
	bool twice = argc <= 3 || strcmp(argv[3], "once") != 0;
	size_t first = argc > 4 ? strtoul(argv[4], NULL, 10) - 1 : 0;
	int status = 0;
	unsigned kills = 0;

	if (argc < 3 || !(kill_file = trouble_map(argv[1])) || chdir(argv[2]) < 0 ||
	    statvfs(".", &at_start) < 0) {
		fprintf(stderr, "steps KILL-FILE DIRECTORY [once|twice [FIRST]]: %s\n",
			strerror(errno));
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = first; i < n_operations; i++) {
		unsigned of_this = 0;
		const char *error = sweep(&operations[i], twice, &of_this);

		/* On the passthrough path some need no daemon: those of open files. */
		if (!error && of_this == 0 && !getenv("STEPS_MAY_BE_QUIET"))
			error = "no worker was killed";
		printf("%sok %zu - %s (%u workers killed)\n", error ? "not " : "", i + 1,
		       operations[i].name, of_this);
		if (error) {
			printf("# %s\n", error);
			status = 1;
			break; /* what it has left would disturb the others */
		}
		kills += of_this;
	}
	if (status == 0)
		printf("1..%zu\n", n_operations);
	printf("# %u workers killed\n", kills);
	return status;
}
