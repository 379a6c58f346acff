/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-fixture.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static TnLedgerEntry sample(const char *path)
{
	return (TnLedgerEntry){.path = path,
			       .ino = 5,
			       .dev = 6,
			       .holder = {.pid = getpid()},
			       .run_id = "r",
			       .created_ms = 1};
}

static size_t entries_of(const char *path)
{
	TnLedgerFile file;
	size_t n;

	assert_int_equal(tn_ledger_file_open(&file, path), 0);
	n = file.ledger->n_entries;
	tn_ledger_file_close(&file);
	return n;
}

static void test_path(void **state)
{
	char path[PATH_MAX];

	setenv("XDG_STATE_HOME", "/x/state", 1);
	unsetenv("TMPNEST_STUBS_LEDGER");
	assert_int_equal(tn_ledger_file_path(NULL, path), 0);
	assert_string_equal(path, "/x/state/tmpnest/stubs/ledger.json");
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "/x/home", 1);
	assert_int_equal(tn_ledger_file_path(NULL, path), 0);
	assert_string_equal(path, "/x/home/.local/state/tmpnest/stubs/ledger.json");
	setenv("TMPNEST_STUBS_LEDGER", "/y/l.json", 1);
	assert_int_equal(tn_ledger_file_path(NULL, path), 0);
	assert_string_equal(path, "/y/l.json");
	assert_int_equal(tn_ledger_file_path("/z/l.json", path), 0);
	assert_string_equal(path, "/z/l.json");
	assert_int_equal(tn_ledger_file_path("l.json", path), -EINVAL);
	setenv("TMPNEST_STUBS_LEDGER", "l.json", 1);
	assert_int_equal(tn_ledger_file_path(NULL, path), -EINVAL);
	unsetenv("TMPNEST_STUBS_LEDGER");
}

static void test_save_and_read(void **state)
{
	Fixture *fixture = *state;
	TnLedgerFile file;
	TnLedgerEntry entry = sample("/w/.bashrc");
	struct stat status;

	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	assert_int_equal(tn_ledger_add(file.ledger, &entry, NULL), 0);
	assert_int_equal(tn_ledger_file_save(&file), 0);
	tn_ledger_file_close(&file);
	assert_int_equal(entries_of(fixture->ledger), 1);
	assert_int_equal(stat(fixture->ledger, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(stat(in(fixture, "state"), &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
}

/* Each process adds one entry at a time; none may be lost. */
static void test_two_at_once_lose_nothing(void **state)
{
	enum { PROCESSES = 4, ROUNDS = 25 };
	Fixture *fixture = *state;
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		if (fork() > 0)
			continue;
		for (int j = 0; j < ROUNDS; j++) {
			TnLedgerFile file;
			char path[64];
			TnLedgerEntry entry;

			snprintf(path, sizeof(path), "/w/%d-%d", i, j);
			entry = sample(path);
			if (tn_ledger_file_open(&file, fixture->ledger) < 0 ||
			    tn_ledger_add(file.ledger, &entry, NULL) < 0 ||
			    tn_ledger_file_save(&file) < 0)
				_exit(1);
			tn_ledger_file_close(&file);
		}
		_exit(0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(entries_of(fixture->ledger), PROCESSES * ROUNDS);
}

static void test_intents_of_the_killed_are_found(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOLEDGER intents = tn_ledger_new();
	TnLedgerEntry entry = sample("/w/.bashrc");
	TnLedgerFile file;

	entry.planned = true;
	assert_int_equal(tn_ledger_add(intents, &entry, NULL), 0);
	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	assert_int_equal(tn_ledger_file_intend(&file, intents), 0);
	/* killed here */
	tn_ledger_file_close(&file);
	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	assert_true(file.recovered);
	assert_int_equal(file.ledger->n_entries, 1);
	assert_true(file.ledger->entries[0].planned);
	assert_int_equal(tn_ledger_file_save(&file), 0);
	tn_ledger_file_close(&file);
	/* once is enough */
	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	assert_false(file.recovered);
	assert_int_equal(file.ledger->n_entries, 1);
	tn_ledger_file_close(&file);
}

static void test_a_torn_intent_is_none(void **state)
{
	Fixture *fixture = *state;

	assert_int_equal(entries_of(fixture->ledger), 0);
	write_file(in(fixture, "state/ledger.json.intent"), "{\"entries\":[{\"path\":\"/w");
	assert_int_equal(entries_of(fixture->ledger), 0);
}

static void save_more(const char *ledger, const char *path)
{
	TnLedgerEntry entry = sample(path);
	TnLedgerFile file;

	assert_int_equal(tn_ledger_file_open(&file, ledger), 0);
	assert_int_equal(tn_ledger_add(file.ledger, &entry, NULL), 0);
	assert_int_equal(tn_ledger_file_save(&file), 0);
	tn_ledger_file_close(&file);
}

/* What a disk holds when the power goes after a save's sync and before the rename's. */
static void undo_rename(Fixture *fixture, const char *old_text)
{
	TN_AUTOFREE char *left = strdup(in(fixture, "state/ledger.json.new"));

	assert_int_equal(rename(fixture->ledger, left), 0);
	write_file(fixture->ledger, old_text);
}

static void test_a_power_cut_that_undoes_the_rename(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *old_text = NULL;
	TnLedgerFile file;

	save_more(fixture->ledger, "/w/a");
	old_text = read_file(fixture->ledger);
	save_more(fixture->ledger, "/w/b");
	undo_rename(fixture, old_text);
	/* looking alone changes nothing */
	assert_int_equal(entries_of(fixture->ledger), 2);
	assert_int_equal(entries_of(fixture->ledger), 2);
	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	assert_true(file.recovered);
	assert_string_equal(file.ledger->entries[1].path, "/w/b");
	assert_int_equal(tn_ledger_file_save(&file), 0);
	tn_ledger_file_close(&file);
	assert_int_equal(access(in(fixture, "state/ledger.json.new"), F_OK), -1);
	assert_int_equal(access(in(fixture, "state/ledger.json.next"), F_OK), -1);
	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	assert_false(file.recovered);
	assert_int_equal(file.ledger->n_entries, 2);
	tn_ledger_file_close(&file);
}

/* The save that takes a left text over is cut off as well. */
static void test_a_second_power_cut(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *old_text = NULL, *left = NULL, *before = NULL;
	TnLedgerFile file;

	save_more(fixture->ledger, "/w/a");
	old_text = read_file(fixture->ledger);
	save_more(fixture->ledger, "/w/b");
	undo_rename(fixture, old_text);
	before = read_file(in(fixture, "state/ledger.json.new"));
	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	assert_int_equal(mkdir(in(fixture, "state/ledger.json.next"), 0700), 0);
	assert_int_equal(tn_ledger_file_save(&file), -EEXIST);
	tn_ledger_file_close(&file);
	left = read_file(in(fixture, "state/ledger.json.new"));
	assert_string_equal(left, before);
	assert_int_equal(rmdir(in(fixture, "state/ledger.json.next")), 0);
	assert_int_equal(entries_of(fixture->ledger), 2);
}

static void test_a_left_text_beside_what_another_program_wrote(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *other = NULL;
	TN_AUTOFREE char *both = NULL;

	save_more(fixture->ledger, "/w/other");
	other = read_file(fixture->ledger);
	assert_int_equal(unlink(fixture->ledger), 0);
	save_more(fixture->ledger, "/w/ours");
	undo_rename(fixture, other);
	save_more(fixture->ledger, "/w/next");
	assert_int_equal(entries_of(fixture->ledger), 3);
	both = read_file(fixture->ledger);
	assert_non_null(strstr(both, "/w/other"));
	assert_non_null(strstr(both, "/w/ours"));
}

/* Its writer was killed, or the power went before its sync. */
static void test_a_left_text_that_is_cut_short_is_none(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *text = NULL;
	TnLedgerFile file;

	save_more(fixture->ledger, "/w/a");
	text = read_file(fixture->ledger);
	save_more(fixture->ledger, "/w/b");
	undo_rename(fixture, text);
	for (size_t size = strlen(text); size-- > 0;) {
		text[size] = '\0';
		write_file(in(fixture, "state/ledger.json.new"), text);
		assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
		assert_false(file.recovered);
		assert_int_equal(file.ledger->n_entries, 1);
		tn_ledger_file_close(&file);
	}
	save_more(fixture->ledger, "/w/c");
	assert_int_equal(entries_of(fixture->ledger), 2);
}

static void make_large(const char *path)
{
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(truncate(path, 100 * 1024 * 1024), 0);
}

static void make_binary(const char *path)
{
	write_file(path, "\x7f"
			 "ELF");
}

static void make_cut(const char *path)
{
	write_file(path, "{\"entries\":[{\"path\":\"/w/.bashrc\"");
}

static void make_link(const char *path)
{
	assert_int_equal(symlink("/etc/passwd", path), 0);
}

static void make_fifo(const char *path)
{
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void make_directory(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

static void test_what_is_no_ledger_is_set_aside(void **state)
{
	static void (*const makers[])(const char *path) = {make_large, make_binary, make_cut,
							   make_link,  make_fifo,   make_directory};
	Fixture *fixture = *state;

	mkdir(in(fixture, "state"), 0700);
	for (size_t i = 0; i < TN_ARRAY_LEN(makers); i++) {
		TnLedgerFile file;
		struct stat before, after;

		makers[i](fixture->ledger);
		assert_int_equal(lstat(fixture->ledger, &before), 0);
		assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
		assert_true(file.was_corrupt);
		assert_int_equal(file.ledger->n_entries, 0);
		assert_int_equal(tn_ledger_file_save(&file), 0);
		tn_ledger_file_close(&file);
		assert_int_equal(lstat(in(fixture, "state/ledger.json.corrupt"), &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(remove(fixture->ledger), 0);
		assert_int_equal(remove(in(fixture, "state/ledger.json.corrupt")), 0);
	}
}

/* A wrong --ledger must not cost anybody a file. */
static void test_other_names_are_left_alone(void **state)
{
	static void (*const makers[])(const char *path) = {make_binary, make_link, make_fifo,
							   make_directory};
	Fixture *fixture = *state;

	mkdir(in(fixture, "state"), 0700);
	for (size_t i = 0; i < TN_ARRAY_LEN(makers); i++) {
		TN_AUTOFREE char *path = strdup(in(fixture, "state/mine"));
		TnLedgerFile file;
		struct stat before, after;

		makers[i](path);
		assert_int_equal(lstat(path, &before), 0);
		assert_int_equal(tn_ledger_file_open(&file, path), -EBADMSG);
		assert_int_equal(lstat(path, &after), 0);
		assert_int_equal(before.st_ino, after.st_ino);
		assert_int_equal(remove(path), 0);
	}
}

static void test_links_in_the_place_of_our_files(void **state)
{
	static const char *const names[] = {"state/ledger.json.lock", "state/ledger.json.intent",
					    "state/ledger.json.new"};
	Fixture *fixture = *state;

	mkdir(in(fixture, "state"), 0700);
	write_file(in(fixture, "victim"), "untouched");
	for (size_t i = 0; i < TN_ARRAY_LEN(names); i++) {
		TN_AUTOFREE char *victim = NULL;
		TnLedgerFile file;

		assert_int_equal(symlink("../victim", in(fixture, names[i])), 0);
		if (tn_ledger_file_open(&file, fixture->ledger) == 0) {
			tn_ledger_file_save(&file);
			tn_ledger_file_close(&file);
		}
		victim = read_file(in(fixture, "victim"));
		assert_string_equal(victim, "untouched");
		unlink(in(fixture, names[i]));
	}
}

#define FILE_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		FILE_TEST(test_save_and_read),
		FILE_TEST(test_two_at_once_lose_nothing),
		FILE_TEST(test_intents_of_the_killed_are_found),
		FILE_TEST(test_a_torn_intent_is_none),
		FILE_TEST(test_a_power_cut_that_undoes_the_rename),
		FILE_TEST(test_a_second_power_cut),
		FILE_TEST(test_a_left_text_beside_what_another_program_wrote),
		FILE_TEST(test_a_left_text_that_is_cut_short_is_none),
		FILE_TEST(test_what_is_no_ledger_is_set_aside),
		FILE_TEST(test_links_in_the_place_of_our_files),
		FILE_TEST(test_other_names_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
