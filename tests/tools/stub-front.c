/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A front for bwrap that does nothing but hold stubs: the library call as a program that an
 * unmodified runtime can be pointed at.
 *
 *   stub-front BWRAP-ARGUMENTS...
 *
 * Masks are the plain --ro-bind operations of the command line whose source is /dev/null, an
 * empty directory, or the destination itself. STUB_FRONT_RUNTIME is a directory for leases;
 * STUB_FRONT_REAPER the program tmpnest-stubs; STUB_FRONT_BWRAP the real bwrap. With
 * STUB_FRONT_NO_LEASE bwrap gets no --sync-fd.
 */
#include "stubs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_empty_dir(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && n < 3 && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return dir && n == 2;
}

static size_t find_masks(char **words, TnStubMask *ret)
{
	size_t n = 0;

	for (; words[0] && words[1] && words[2] && strcmp(words[0], "--") != 0; words++) {
		const char *from = words[1], *to = words[2];

		if (strcmp(words[0], "--ro-bind") != 0)
			continue;
		if (strcmp(from, "/dev/null") == 0)
			ret[n++] = (TnStubMask){.path = to};
		else if (strcmp(from, to) == 0)
			ret[n++] = (TnStubMask){.path = to, .vanished = true};
		else if (is_empty_dir(from))
			ret[n++] = (TnStubMask){.path = to, .as_dir = true};
	}
	return n;
}

static int make_lease(const char *runtime, char path[PATH_MAX])
{
	int reader, writer;

	snprintf(path, PATH_MAX, "%s/lease-%d", runtime, getpid());
	if (mkfifo(path, 0600) < 0)
		return -1;
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer = open(path, O_WRONLY);
	close(reader);
	return writer;
}

static void say(void *data, TnStubOutcome outcome, const char *path, const char *why)
{
	if (outcome == TN_STUB_WARNING)
		fprintf(stderr, "stub-front: %s: %s\n", path, why);
}

int main(int argc, char **argv)
{
	const char *runtime = getenv("STUB_FRONT_RUNTIME"), *bwrap = getenv("STUB_FRONT_BWRAP");
	TnStubMask *masks = calloc((size_t)argc + 1, sizeof(*masks));
	char **words = calloc((size_t)argc + 3, sizeof(*words));
	char lease[PATH_MAX], number[16];
	TnStubLaunch launch = {
		.runtime_dir = runtime, .reaper = getenv("STUB_FRONT_REAPER"), .note = say};
	size_t n;
	int lease_fd = -1, at = 0, result;

	if (!masks || !words || !runtime || !bwrap)
		return 125;
	n = find_masks(argv + 1, masks);
	words[at++] = (char *)bwrap;
	if (n > 0 && !getenv("STUB_FRONT_NO_LEASE")) {
		lease_fd = make_lease(runtime, lease);
		if (lease_fd < 0)
			return 125;
		launch.lease = lease;
		snprintf(number, sizeof(number), "%d", lease_fd);
		words[at++] = (char *)"--sync-fd";
		words[at++] = number;
	}
	result = n > 0 ? tn_stubs_hold_for_launch(&launch, masks, n) : 0;
	if (result < 0)
		fprintf(stderr, "stub-front: %s\n", strerror(-result));
	memcpy(words + at, argv + 1, (size_t)argc * sizeof(*words));
	/* as the daemon does at the end of use: our own link keeps telling the end */
	if (launch.lease)
		unlink(lease);
	execv(bwrap, words);
	return 126;
}
