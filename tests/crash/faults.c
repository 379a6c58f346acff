/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Has each call to the store fail once, in every operation; with "poison", has each request
 * abort every worker that comes to one of its points. faults KILL-FILE DIRECTORY [poison [NAME]]:
 * the operation may fail then, but nothing may hang, get lost from the account, or stay behind that
 * cannot be removed, and the next operation works. TAP on standard output.
 */
#include "operations.h"
#include "trouble.h"

#include "macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define CALLS_MOST 300 /* of one operation: a test that runs away ends */

static KillFile *file;
static struct statvfs at_start;

/* Everything below the open directory goes; takes fd. */
static int empty(int fd)
{
	DIR *stream = fdopendir(fd);
	struct dirent *item;
	int status = stream ? 0 : -1;

	while (stream && (item = readdir(stream))) {
		if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(stream), item->d_name, 0) == 0)
			continue;
		if (errno != EISDIR ||
		    empty(openat(dirfd(stream), item->d_name, O_RDONLY | O_DIRECTORY)) < 0 ||
		    unlinkat(dirfd(stream), item->d_name, AT_REMOVEDIR) < 0)
			status = fprintf(stderr, "# %s: %s\n", item->d_name, strerror(errno));
	}
	if (stream)
		closedir(stream);
	return status ? -1 : 0;
}

/* error 0: no call fails, but workers abort at point n. */
static void arm(int64_t n, int error)
{
	atomic_store(&file->failed, 0);
	atomic_store(&file->killed, 0);
	atomic_store(&file->error, error);
	atomic_store(error ? &file->fail_in : &file->poison, n);
}

/* Did it come to that? */
static bool disarm(void)
{
	atomic_store(&file->fail_in, 0);
	atomic_store(&file->poison, 0);
	return atomic_load(&file->failed) > 0 || atomic_load(&file->killed) > 0;
}

/* The next one begins with what is used once the kernel has forgotten what was removed. */
static const char *begin_anew(void)
{
	struct statvfs before;

	do {
		if (statvfs(".", &before) < 0)
			return "statvfs";
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		if (statvfs(".", &at_start) < 0)
			return "statvfs";
	} while (at_start.f_bfree != before.f_bfree || at_start.f_ffree != before.f_ffree);
	return NULL;
}

/* One run whose call number n fails. NULL, or what is wrong; *ret_failed: it had so many. */
static const char *run(const Operation *operation, int64_t n, int error, bool *ret_failed)
{
	const char *wrong = operation->prepare();

	if (wrong)
		return wrong;
	arm(n, error);
	wrong = operation->act();
	*ret_failed = disarm();
	if (wrong && !*ret_failed)
		return wrong;
	if (!wrong && !*ret_failed) {
		errno = 0;
		wrong = operation->tidy();
		return wrong ? wrong : trouble_check_account(&at_start);
	}
	operations_close();
	if (empty(open(".", O_RDONLY | O_DIRECTORY)) < 0)
		return "what is left cannot be removed";
	/* What a request was given up at is counted when the view ends. */
	return error ? trouble_check_account(&at_start) : begin_anew();
}

static const char *sweep(const Operation *operation, const int errors[], size_t n_errors,
			 unsigned *ret_faults)
{
	static char text[768];

	for (size_t i = 0; i < n_errors; i++) {
		for (int64_t n = 1; n < CALLS_MOST; n++) {
			bool failed = false;
			const char *wrong = run(operation, n, errors[i], &failed);

			*ret_faults += failed;
			if (wrong) {
				snprintf(text, sizeof(text), "%lld with %s: %s", (long long)n,
					 errors[i] ? strerrorname_np(errors[i]) : "poison", wrong);
				return text;
			}
			if (!failed)
				break; /* it has fewer calls */
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const int errors[] = {EIO, ENOSPC, EMFILE, EINTR}, poison[] = {0};
	bool poisons = argc >= 4 && strcmp(argv[3], "poison") == 0;
	int status = 0;

	if ((argc != 3 && !poisons) || !(file = trouble_map(argv[1])) || chdir(argv[2]) < 0 ||
	    statvfs(".", &at_start) < 0) {
		fprintf(stderr, "faults: KILL-FILE DIRECTORY [poison [NAME]]: %s\n",
			strerror(errno));
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < n_operations; i++) {
		unsigned faults = 0;
		const char *wrong;

		if (argc > 4 && strcmp(argv[4], operations[i].name) != 0)
			continue;
		wrong = sweep(&operations[i], poisons ? poison : errors,
			      poisons ? 1 : TN_ARRAY_LEN(errors), &faults);

		printf("%sok %zu - %s (%u faults)\n", wrong ? "not " : "", i + 1,
		       operations[i].name, faults);
		if (wrong) {
			printf("# %s\n", wrong);
			status = 1;
			operations_close();
			empty(open(".", O_RDONLY | O_DIRECTORY));
			if (begin_anew())
				return 2;
		}
	}
	printf("1..%zu\n", n_operations);
	return status;
}
