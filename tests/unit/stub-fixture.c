/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-fixture.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void hear(void *data, TnStubOutcome outcome, const char *path, const char *why)
{
	Fixture *fixture = data;

	fixture->said = reallocarray(fixture->said, fixture->n_said + 1, sizeof(*fixture->said));
	assert_non_null(fixture->said);
	fixture->said[fixture->n_said].outcome = outcome;
	snprintf(fixture->said[fixture->n_said].path, PATH_MAX, "%s", path);
	snprintf(fixture->said[fixture->n_said].why, 256, "%s", why ? why : "");
	fixture->n_said++;
}

static void open_keeper(Fixture *fixture)
{
	TnStubsOptions options = {.ledger_path = fixture->ledger,
				  .profiles_dir = getenv("TMPNEST_STUBS_PROFILES"),
				  .runtime_dir = fixture->runtime,
				  .note = hear,
				  .note_data = fixture};

	assert_non_null(options.profiles_dir);
	tn_stubs_init(&fixture->stubs, &options);
	assert_int_equal(tn_holder_init(&fixture->stubs.self, getpid(), &fixture->self), 0);
}

int fixture_setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));
	char template[] = "/var/tmp/tmpnest-stubs-XXXXXX", resolved[PATH_MAX];

	assert_non_null(fixture);
	fixture->n_fds = open_descriptors();
	assert_non_null(mkdtemp(template));
	assert_non_null(realpath(template, resolved));
	assert_true(strlen(resolved) < sizeof(fixture->dir));
	strcpy(fixture->dir, resolved);
	snprintf(fixture->ledger, PATH_MAX, "%s/state/ledger.json", fixture->dir);
	snprintf(fixture->runtime, PATH_MAX, "%s/run", fixture->dir);
	open_keeper(fixture);
	*state = fixture;
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	return remove(path);
}

int fixture_teardown(void **state)
{
	Fixture *fixture = *state;

	tn_stubs_clear(&fixture->stubs);
	free(fixture->said);
	nftw(fixture->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(open_descriptors(), fixture->n_fds);
	free(fixture);
	return 0;
}

const char *in(Fixture *fixture, const char *name)
{
	static char buffers[16][PATH_MAX];
	static size_t next;
	char *buffer = buffers[next++ % 16];

	snprintf(buffer, PATH_MAX, "%s/%s", fixture->dir, name);
	return buffer;
}

void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fputs(text, file) < 0, 0);
	assert_int_equal(fclose(file), 0);
}

char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &size, '\0', file) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(file);
	return text;
}

bool exists(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0;
}

size_t count(const Fixture *fixture, TnStubOutcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < fixture->n_said; i++)
		n += fixture->said[i].outcome == outcome;
	return n;
}

int outcome_of(const Fixture *fixture, const char *path)
{
	for (size_t i = fixture->n_said; i-- > 0;) {
		if (strcmp(fixture->said[i].path, path) == 0)
			return (int)fixture->said[i].outcome;
	}
	return -1;
}

void forget_said(Fixture *fixture)
{
	fixture->n_said = 0;
}

size_t n_entries(Fixture *fixture)
{
	size_t n;

	assert_int_equal(tn_stubs_lock(&fixture->stubs), 0);
	n = fixture->stubs.file.ledger->n_entries;
	tn_stubs_unlock(&fixture->stubs);
	return n;
}

void reopen(Fixture *fixture)
{
	tn_stubs_clear(&fixture->stubs);
	open_keeper(fixture);
}
