/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

bool tn_scratch_new(TnScratch *ret, const char *base)
{
	char cwd[200];

	if (!base)
		base = getcwd(cwd, sizeof(cwd));
	if (!base)
		return false;
	snprintf(ret->path, sizeof(ret->path), "%s/tn-test-XXXXXX", base);
	if (!mkdtemp(ret->path)) {
		fprintf(stderr, "%s: %s\n", ret->path, strerror(errno));
		return false;
	}
	ret->dir = open(ret->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->dir >= 0;
}

/* Everything in dir, which it takes, as far as descriptors reach. */
static void delete_below(int dir)
{
	DIR *stream = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *entry;

	if (!stream) {
		if (dir >= 0)
			close(dir);
		return;
	}
	while ((entry = readdir(stream))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    unlinkat(dir, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
			continue;
		if (fchmodat(dir, name, 0700, 0) == 0)
			delete_below(
				openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
		unlinkat(dir, name, AT_REMOVEDIR);
	}
	closedir(stream);
}

/* What is deeper than one may have descriptors. */
static void remove_deep(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void tn_scratch_remove(TnScratch *scratch)
{
	fchmod(scratch->dir, 0700);
	delete_below(openat(scratch->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (rmdir(scratch->path) != 0)
		remove_deep(scratch->path);
	close(scratch->dir);
}

const char *tn_scratch_tmpfs(void)
{
	static const char *const places[] = {"/dev/shm", "/run"};
	struct statfs fs;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (statfs(places[i], &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
		    access(places[i], W_OK) == 0)
			return places[i];
	}
	return NULL;
}

size_t tn_count_fds(void)
{
	DIR *stream = opendir("/proc/self/fd");
	size_t n = 0;

	if (!stream)
		return 0;
	while (readdir(stream))
		n++;
	closedir(stream);
	return n;
}

uint64_t tn_dice(TnDice *dice, uint64_t sides)
{
	uint64_t z = dice->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % sides;
}

uint64_t tn_test_seed(void)
{
	const char *text = getenv("TN_TEST_SEED");
	uint64_t seed = 0;

	if (text)
		seed = strtoull(text, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		abort();
	printf("TN_TEST_SEED=%" PRIu64 "\n", seed);
	fflush(stdout);
	return seed;
}
