/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Has each call to the store fail once, in every operation. faults KILL-FILE DIRECTORY: the
 * operation may fail then, but nothing may hang, get lost from the account, or stay behind
 * that cannot be removed, and the next operation works. TAP on standard output.
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

/* One run whose call number n fails. NULL, or what is wrong; *ret_failed: it had so many. */
static const char *run(const Operation *operation, int64_t n, int error, bool *ret_failed)
{
	const char *wrong = operation->prepare();

	if (wrong)
		return wrong;
	atomic_store(&file->failed, 0);
	atomic_store(&file->error, error);
	atomic_store(&file->fail_in, n);
	wrong = operation->act();
	atomic_store(&file->fail_in, 0);
	*ret_failed = atomic_load(&file->failed) > 0;
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
	return trouble_check_account(&at_start);
}

static const char *sweep(const Operation *operation, unsigned *ret_faults)
{
	static const int errors[] = {EIO, ENOSPC, EMFILE, EINTR};
	static char text[768];

	for (size_t i = 0; i < TN_ARRAY_LEN(errors); i++) {
		for (int64_t n = 1; n < CALLS_MOST; n++) {
			bool failed = false;
			const char *wrong = run(operation, n, errors[i], &failed);

			*ret_faults += failed;
			if (wrong) {
				snprintf(text, sizeof(text), "call %lld with %s: %s", (long long)n,
					 strerrorname_np(errors[i]), wrong);
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
	int status = 0;

	if (argc != 3 || !(file = trouble_map(argv[1])) || chdir(argv[2]) < 0 ||
	    statvfs(".", &at_start) < 0) {
		fprintf(stderr, "faults: KILL-FILE DIRECTORY: %s\n", strerror(errno));
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < n_operations; i++) {
		unsigned faults = 0;
		const char *wrong = sweep(&operations[i], &faults);

		printf("%sok %zu - %s (%u calls failed)\n", wrong ? "not " : "", i + 1,
		       operations[i].name, faults);
		if (wrong) {
			printf("# %s\n", wrong);
			status = 1;
			operations_close();
			empty(open(".", O_RDONLY | O_DIRECTORY));
			if (statvfs(".", &at_start) < 0) /* for the next one it begins anew */
				return 2;
		}
	}
	printf("1..%zu\n", n_operations);
	return status;
}
