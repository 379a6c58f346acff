/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a hold and a release take with a ledger that others have filled.
 *
 *   stubs-hold PROFILES-DIR DIRECTORY [ROUNDS [ENTRIES]]
 *
 * DIRECTORY must be empty, absolute, and on the disk that is to be measured. Prints the least and
 * the median time of a hold of the built-in profile's paths and of their release, in milliseconds.
 */
#include "stub-files.h"
#include "stub-hold.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* Entries of one live holder, as other sandboxes of the user would have. */
static int fill_ledger(const char *path, const TnStubHolder *holder, int n)
{
	TnLedgerFile file;
	int result = tn_ledger_file_open(&file, path);

	for (int i = 0; i < n && result == 0; i++) {
		char stub[128];
		TnLedgerEntry entry = {.path = stub,
				       .dev = 1,
				       .ino = 1000 + (uint64_t)i,
				       .has_ctime_ms = true,
				       .ctime_ms = 1798412341234.5679,
				       .ctime_ns = 1798412341234567812,
				       .btime_ns = 1798412341234567812,
				       .holder = *holder,
				       .run_id = "another-session",
				       .created_ms = 1798412341234};

		snprintf(stub, sizeof(stub), "/home/user/projects/number-%d/.claude/settings.json",
			 i);
		result = tn_ledger_add(file.ledger, &entry, NULL);
	}
	if (result == 0)
		result = tn_ledger_file_save(&file);
	tn_ledger_file_close(&file);
	return result;
}

static size_t make_wants(const char *dir, const char *profiles, TnStubPaths *paths,
			 TnStubWant **ret)
{
	char cwd[PATH_MAX], home[PATH_MAX], config[PATH_MAX], why[256] = "";
	const char *const writable[] = {dir}; /* so that the project set counts there too */
	TnStubPlaces places = {.cwd = cwd,
			       .home = home,
			       .config_dir = config,
			       .writable = writable,
			       .n_writable = 1};
	TnStubProfile profile = {0};

	snprintf(cwd, sizeof(cwd), "%s/project", dir);
	snprintf(home, sizeof(home), "%s/home", dir);
	snprintf(config, sizeof(config), "%s/home/config", dir);
	mkdir(cwd, 0755);
	mkdir(home, 0755);
	mkdir(config, 0755);
	if (tn_stub_profile_load(profiles, "builtin", &profile, why, sizeof(why)) < 0 ||
	    tn_stub_paths_expand(&profile, &places, paths) < 0) {
		fprintf(stderr, "profile: %s\n", why);
		exit(1);
	}
	*ret = calloc(paths->n_paths, sizeof(**ret));
	for (size_t i = 0; *ret && i < paths->n_paths; i++)
		(*ret)[i] = (TnStubWant){paths->paths[i],
					 tn_stub_kind_of(&profile, paths->paths[i]), false};
	tn_stub_profile_clear(&profile);
	return paths->n_paths;
}

static void report(const char *what, size_t n_paths, double *times, int rounds)
{
	qsort(times, (size_t)rounds, sizeof(*times), compare);
	printf("%s of %zu paths: least %.2f ms, median %.2f ms\n", what, n_paths, times[0],
	       times[rounds / 2]);
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? atoi(argv[3]) : 30, entries = argc > 4 ? atoi(argv[4]) : 1000;
	double *hold = calloc((size_t)rounds + 1, sizeof(double));
	double *release = calloc((size_t)rounds + 1, sizeof(double));
	TnStubPaths paths = {0};
	TnStubWant *wants = NULL;
	TnStubHolder holder;
	char ledger[PATH_MAX];
	TnStubs stubs;
	size_t n;

	if (argc < 3 || rounds < 1 || !hold || !release) {
		fprintf(stderr, "usage: stubs-hold PROFILES-DIR DIRECTORY [ROUNDS [ENTRIES]]\n");
		return 2;
	}
	snprintf(ledger, sizeof(ledger), "%s/ledger/ledger.json", argv[2]);
	tn_stubs_init(&stubs, &(TnStubsOptions){.ledger_path = ledger, .profiles_dir = argv[1]});
	tn_holder_init(&stubs.self, getpid(), &holder);
	n = make_wants(argv[2], argv[1], &paths, &wants);
	if (fill_ledger(ledger, &holder, entries) < 0)
		return 1;
	for (int i = 0; i < rounds; i++) {
		double start = now_ms(), held;

		if (tn_stubs_hold(&stubs, "bench", &holder, false, wants, n) < 0)
			return 1;
		held = now_ms();
		if (tn_stubs_release(&stubs, "bench", NULL, NULL) < 0)
			return 1;
		hold[i] = held - start;
		release[i] = now_ms() - held;
	}
	report("hold", n, hold, rounds);
	report("release", n, release, rounds);
	tn_stubs_clear(&stubs);
	tn_stub_paths_clear(&paths);
	free(wants);
	free(hold);
	free(release);
	return 0;
}
