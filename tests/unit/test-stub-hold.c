/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-fixture.h"

#include "macros.h"
#include "stub-files.h"
#include "stubs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int hold_as(Fixture *fixture, const char *owner, const TnStubHolder *holder, bool filled)
{
	const TnStubWant wants[] = {
		{in(fixture, ".claude/settings.json"), TN_STUB_FILE, filled},
		{in(fixture, ".bashrc"), TN_STUB_FILE, filled},
		{in(fixture, ".mcp.json"), TN_STUB_FILE, filled},
		{in(fixture, ".claude"), TN_STUB_DIR, filled},
	};

	return tn_stubs_hold(&fixture->stubs, owner, holder, false, wants, TN_ARRAY_LEN(wants));
}

static void hold(Fixture *fixture, const char *owner)
{
	assert_int_equal(hold_as(fixture, owner, &fixture->self, false), 0);
}

static void hold_one(Fixture *fixture, const char *owner, const char *name)
{
	const TnStubWant want = {in(fixture, name), TN_STUB_FILE, false};

	assert_int_equal(tn_stubs_hold(&fixture->stubs, owner, &fixture->self, false, &want, 1), 0);
}

static void release(Fixture *fixture, const char *owner)
{
	assert_int_equal(tn_stubs_release(&fixture->stubs, owner, NULL, NULL), 0);
}

/* A process that has ended and was waited for. */
static TnStubHolder dead_holder(Fixture *fixture)
{
	TnStubHolder holder;
	int gate[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(gate), 0);
	pid = fork();
	if (pid == 0) {
		close(gate[1]);
		_exit(read(gate[0], &byte, 1) == 0);
	}
	assert_int_equal(tn_holder_init(&fixture->stubs.self, pid, &holder), 0);
	close(gate[0]);
	close(gate[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return holder;
}

static void test_hold_and_release(void **state)
{
	Fixture *fixture = *state;
	struct stat status;

	hold(fixture, "one");
	assert_int_equal(count(fixture, TN_STUB_CREATED), 4);
	assert_int_equal(lstat(in(fixture, ".bashrc"), &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0444);
	assert_int_equal(status.st_size, 0);
	assert_int_equal(lstat(in(fixture, ".claude"), &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_true(exists(in(fixture, ".claude/settings.json")));
	assert_int_equal(n_entries(fixture), 4);
	release(fixture, "one");
	assert_int_equal(count(fixture, TN_STUB_REMOVED), 4);
	assert_false(exists(in(fixture, ".bashrc")));
	assert_false(exists(in(fixture, ".claude")));
	assert_int_equal(n_entries(fixture), 0);
}

static void test_umask_does_not_matter(void **state)
{
	Fixture *fixture = *state;
	mode_t before = umask(0077);
	struct stat status;

	hold(fixture, "one");
	umask(before);
	assert_int_equal(lstat(in(fixture, ".bashrc"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0444);
	release(fixture, "one");
	assert_false(exists(in(fixture, ".bashrc")));
}

static void test_the_last_of_two_removes(void **state)
{
	Fixture *fixture = *state;

	hold(fixture, "one");
	forget_said(fixture);
	hold(fixture, "two");
	assert_int_equal(count(fixture, TN_STUB_CREATED), 0);
	assert_int_equal(count(fixture, TN_STUB_SHARED), 4);
	/* holding twice is holding once */
	hold(fixture, "two");
	assert_int_equal(n_entries(fixture), 8);
	release(fixture, "one");
	assert_true(exists(in(fixture, ".claude/settings.json")));
	release(fixture, "two");
	assert_false(exists(in(fixture, ".claude")));
}

static void test_what_exists_is_not_ours(void **state)
{
	Fixture *fixture = *state;

	write_file(in(fixture, ".bashrc"), "");
	assert_int_equal(symlink("nowhere", in(fixture, ".mcp.json")), 0);
	assert_int_equal(mkdir(in(fixture, ".claude"), 0755), 0);
	hold(fixture, "one");
	assert_int_equal(count(fixture, TN_STUB_EXISTS), 3);
	assert_int_equal(count(fixture, TN_STUB_CREATED), 1);
	release(fixture, "one");
	assert_true(exists(in(fixture, ".bashrc")));
	assert_true(exists(in(fixture, ".mcp.json")));
	assert_true(exists(in(fixture, ".claude")));
	assert_false(exists(in(fixture, ".claude/settings.json")));
}

static void test_what_cannot_be_made_is_skipped(void **state)
{
	Fixture *fixture = *state;

	assert_int_equal(mkdir(in(fixture, "real"), 0755), 0);
	assert_int_equal(symlink("real", in(fixture, "link")), 0);
	write_file(in(fixture, "file"), "x");
	hold_one(fixture, "one", "absent/.bashrc");
	hold_one(fixture, "one", "link/.bashrc");
	hold_one(fixture, "one", "file/.bashrc");
	assert_int_equal(count(fixture, TN_STUB_SKIPPED), 3);
	assert_int_equal(n_entries(fixture), 0);
	assert_false(exists(in(fixture, "real/.bashrc")));
}

typedef struct Change {
	const char *what;
	void (*make)(const char *path);
	bool stays;
} Change;

static void fill(const char *path)
{
	chmod(path, 0644);
	write_file(path, "alias x=y\n");
}

static void fill_and_empty(const char *path)
{
	fill(path);
	assert_int_equal(truncate(path, 0), 0);
}

static void change_mode(const char *path)
{
	chmod(path, 0600);
}

static void replace_by_empty(const char *path)
{
	unlink(path);
	write_file(path, "");
}

static void replace_by_directory(const char *path)
{
	unlink(path);
	mkdir(path, 0755);
}

static void replace_by_link(const char *path)
{
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
}

static void link_again(const char *path)
{
	char other[PATH_MAX];

	snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(link(path, other), 0);
}

static void take_away(const char *path)
{
	unlink(path);
}

static void leave_alone(const char *path)
{
}

static const Change changes[] = {
	{"filled", fill, true},
	{"filled and emptied", fill_and_empty, true},
	{"mode changed", change_mode, true},
	{"replaced by another empty file", replace_by_empty, true},
	{"replaced by a directory", replace_by_directory, true},
	{"replaced by a link", replace_by_link, true},
	{"linked", link_again, true},
	{"removed", take_away, false},
	{"left alone", leave_alone, false},
};

static void check_changes(Fixture *fixture, bool filled)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(changes); i++) {
		const char *path = in(fixture, ".bashrc");
		const TnStubWant want = {path, TN_STUB_FILE, filled};

		assert_int_equal(
			tn_stubs_hold(&fixture->stubs, "one", &fixture->self, false, &want, 1), 0);
		usleep(12000); /* one tick, by which change times are told apart */
		changes[i].make(path);
		release(fixture, "one");
		if (exists(path) != changes[i].stays)
			fail_msg("%s, filled %d", changes[i].what, filled);
		assert_int_equal(n_entries(fixture), 0);
		remove(path);
		remove(in(fixture, ".bashrc.other"));
	}
}

static void test_changed_stubs_stay(void **state)
{
	check_changes(*state, false);
	check_changes(*state, true);
}

static void test_directory_with_something_in_it_stays(void **state)
{
	Fixture *fixture = *state;

	assert_int_equal(hold_as(fixture, "one", &fixture->self, true), 0);
	assert_true(exists(in(fixture, ".claude/.tmpnest-stub")));
	write_file(in(fixture, ".claude/notes.md"), "mine");
	release(fixture, "one");
	assert_true(exists(in(fixture, ".claude/notes.md")));
	assert_false(exists(in(fixture, ".claude/settings.json")));
	assert_int_equal(n_entries(fixture), 0);
}

/* One holds the directory, another only what is inside: it stays until both have gone. */
static void test_directory_outlives_its_holder_while_used(void **state)
{
	Fixture *fixture = *state;
	const TnStubWant outer = {in(fixture, ".claude"), TN_STUB_DIR, true};
	const TnStubWant inner = {in(fixture, ".claude/commands"), TN_STUB_FILE, true};
	TnStubs *stubs = &fixture->stubs;

	assert_int_equal(tn_stubs_hold(stubs, "a", &fixture->self, false, &outer, 1), 0);
	assert_int_equal(tn_stubs_hold(stubs, "b", &fixture->self, false, &inner, 1), 0);
	release(fixture, "a");
	assert_true(exists(in(fixture, ".claude/commands")));
	release(fixture, "b");
	assert_false(exists(in(fixture, ".claude")));
	assert_int_equal(n_entries(fixture), 0);
}

/* A runtime planned with a stub directory there; it has gone with all that was in it. */
static void test_launch_makes_a_vanished_directory_again(void **state)
{
	Fixture *fixture = *state;
	const TnStubMask masks[] = {
		{.path = in(fixture, ".claude/commands"), .vanished = true},
		{.path = in(fixture, "unknown/commands"), .vanished = true},
	};
	TnStubLaunch launch = {.ledger_path = fixture->ledger, .runtime_dir = fixture->runtime};

	assert_int_equal(tn_stubs_hold_for_launch(&launch, masks, TN_ARRAY_LEN(masks)), 0);
	assert_true(exists(in(fixture, ".claude/commands")));
	assert_true(exists(in(fixture, ".claude/.tmpnest-stub")));
	/* a directory that is no stub is nobody's to make */
	assert_false(exists(in(fixture, "unknown")));
	assert_int_equal(tn_stubs_release(&fixture->stubs, NULL, NULL, NULL), 0);
	assert_false(exists(in(fixture, ".claude")));
}

static void test_filled_stubs(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *json = NULL, *text = NULL;

	assert_int_equal(hold_as(fixture, "one", &fixture->self, true), 0);
	json = read_file(in(fixture, ".mcp.json"));
	text = read_file(in(fixture, ".bashrc"));
	assert_string_equal(json, "{}");
	assert_int_equal(text[0], '#');
	release(fixture, "one");
	assert_false(exists(in(fixture, ".claude")));
	assert_false(exists(in(fixture, ".mcp.json")));
}

static void test_missing(void **state)
{
	Fixture *fixture = *state;
	const char *paths[] = {in(fixture, ".bashrc"),      in(fixture, ".zshrc"),
			       in(fixture, ".profile"),     in(fixture, ".idea"),
			       in(fixture, ".vscode"),      in(fixture, ".gitconfig"),
			       in(fixture, "none/.bashrc"), in(fixture, ".ripgreprc")};

	hold_one(fixture, "one", ".bashrc");
	write_file(paths[1], "");
	write_file(paths[2], "text");
	mkdir(paths[3], 0755);
	mkdir(paths[4], 0755);
	write_file(in(fixture, ".vscode/x"), "");
	assert_int_equal(symlink("nowhere", paths[5]), 0);
	forget_said(fixture);
	assert_int_equal(tn_stubs_missing(&fixture->stubs, paths, TN_ARRAY_LEN(paths)), 0);
	assert_int_equal(outcome_of(fixture, paths[0]), TN_STUB_SHARED);
	assert_int_equal(outcome_of(fixture, paths[1]), TN_STUB_MISSING);
	assert_int_equal(outcome_of(fixture, paths[2]), TN_STUB_LASTING);
	assert_int_equal(outcome_of(fixture, paths[3]), TN_STUB_MISSING);
	assert_int_equal(outcome_of(fixture, paths[4]), TN_STUB_LASTING);
	assert_int_equal(outcome_of(fixture, paths[5]), TN_STUB_LASTING);
	assert_int_equal(outcome_of(fixture, paths[6]), -1);
	assert_int_equal(outcome_of(fixture, paths[7]), TN_STUB_MISSING);
}

static void test_dead_holders_are_reclaimed(void **state)
{
	Fixture *fixture = *state;
	TnStubHolder dead = dead_holder(fixture);

	assert_int_equal(hold_as(fixture, "gone", &dead, false), 0);
	reopen(fixture);
	assert_int_equal(tn_stubs_reclaim(&fixture->stubs, NULL, NULL), 0);
	assert_false(exists(in(fixture, ".claude")));
	assert_int_equal(n_entries(fixture), 0);
}

static void test_adoption(void **state)
{
	Fixture *fixture = *state;
	TnStubHolder dead = dead_holder(fixture);

	/* a live one has a stub: its sandboxes may have bound the dead one's */
	hold_one(fixture, "live", ".zshrc");
	assert_int_equal(hold_as(fixture, "gone", &dead, false), 0);
	forget_said(fixture);
	hold_one(fixture, "live", ".profile");
	assert_true(count(fixture, TN_STUB_ADOPTED) > 0);
	assert_true(exists(in(fixture, ".claude/settings.json")));
	release(fixture, "live");
	assert_false(exists(in(fixture, ".claude")));
	assert_false(exists(in(fixture, ".zshrc")));
	assert_int_equal(n_entries(fixture), 0);
}

static void test_reclaim_by_nobody_leaves_what_others_may_use(void **state)
{
	Fixture *fixture = *state;
	TnStubHolder dead = dead_holder(fixture);

	hold_one(fixture, "live", ".zshrc");
	assert_int_equal(hold_as(fixture, "gone", &dead, false), 0);
	forget_said(fixture);
	assert_int_equal(tn_stubs_reclaim(&fixture->stubs, NULL, NULL), 0);
	assert_int_equal(count(fixture, TN_STUB_LEFT), 4);
	assert_true(exists(in(fixture, ".bashrc")));
	release(fixture, "live");
	assert_false(exists(in(fixture, ".bashrc")));
	assert_int_equal(n_entries(fixture), 0);
}

static void test_leases(void **state)
{
	Fixture *fixture = *state;
	TnStubHolder holder = fixture->self;
	TN_AUTOFREE char *lease = strdup(in(fixture, "lease"));
	int keep, end;

	assert_int_equal(mkfifo(lease, 0600), 0);
	keep = open(lease, O_RDONLY | O_NONBLOCK);
	end = open(lease, O_WRONLY);
	close(keep);
	holder.lease = lease;
	assert_int_equal(hold_as(fixture, "sandbox:1", &holder, true), 0);
	assert_int_equal(tn_stubs_reclaim(&fixture->stubs, NULL, NULL), 0);
	assert_true(exists(in(fixture, ".bashrc")));
	/* our own pid lives on: the lease alone decides, and its end is a release */
	hold_one(fixture, "live", ".zshrc");
	close(end);
	assert_int_equal(tn_stubs_reclaim(&fixture->stubs, NULL, NULL), 0);
	assert_false(exists(in(fixture, ".bashrc")));
	assert_true(exists(in(fixture, ".zshrc")));
	release(fixture, "live");
}

/* Names that no profile knows: only what the runtime directory witnesses is removed. */
static void test_unknown_names_need_a_witness(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *path = strdup(in(fixture, "precious.txt"));
	TN_AUTOFREE char *witness = strdup(in(fixture, "run/stubs/witness.json"));

	hold_one(fixture, "one", "precious.txt");
	assert_true(exists(path));
	release(fixture, "one");
	assert_false(exists(path));

	hold_one(fixture, "one", "precious.txt");
	assert_int_equal(unlink(witness), 0);
	release(fixture, "one");
	assert_true(exists(path));
	unlink(path);

	fixture->stubs.options.runtime_dir = NULL;
	forget_said(fixture);
	hold_one(fixture, "one", "precious.txt");
	assert_int_equal(count(fixture, TN_STUB_SKIPPED), 1);
	assert_false(exists(path));
}

/* A ledger that names files of the user: nothing may go, whatever it says. */
static void test_forged_ledgers(void **state)
{
	static const char *const names[] = {
		"precious.txt", "dir/precious.txt", "link/.bashrc", ".bashrc/../precious.txt",
		".ssh",         ".zshrc",           ".profile"};
	Fixture *fixture = *state;
	TN_AUTOFREE char *text = NULL;
	size_t size = 0;
	struct stat status;
	FILE *out = open_memstream(&text, &size);
	const char *separator = "";

	mkdir(in(fixture, "dir"), 0755);
	mkdir(in(fixture, "state"), 0700);
	assert_int_equal(symlink("dir", in(fixture, "link")), 0);
	write_file(in(fixture, "precious.txt"), "");
	write_file(in(fixture, "dir/precious.txt"), "");
	write_file(in(fixture, "dir/.bashrc"), "");
	write_file(in(fixture, ".ssh"), "");
	write_file(in(fixture, ".zshrc"), "");
	write_file(in(fixture, ".profile"), "");
	write_file(in(fixture, ".bashrc"), "# tmpnest stub\n# and more");
	fputs("{\"entries\":[", out);
	for (size_t i = 0; i < TN_ARRAY_LEN(names) + 1; i++) {
		const char *name = i < TN_ARRAY_LEN(names) ? names[i] : ".bashrc";

		memset(&status, 0, sizeof(status));
		stat(in(fixture, strcmp(name, names[3]) ? name : "precious.txt"), &status);
		fprintf(out,
			"%s{\"path\":\"%s/"
			"%s\",\"ino\":%lu,\"dev\":%lu,\"kind\":\"file\",\"filled\":%s,"
			"\"pid\":999999999,\"runId\":\"x\",\"createdAt\":0}",
			separator, fixture->dir, name, (unsigned long)status.st_ino,
			(unsigned long)status.st_dev, i % 2 ? "true" : "false");
		separator = ",";
	}
	fputs("]}", out);
	fclose(out);
	write_file(fixture->ledger, text);
	assert_int_equal(tn_stubs_reclaim(&fixture->stubs, NULL, NULL), 0);
	assert_int_equal(count(fixture, TN_STUB_REMOVED), 0);
	assert_true(exists(in(fixture, "precious.txt")));
	assert_true(exists(in(fixture, "dir/precious.txt")));
	assert_true(exists(in(fixture, "dir/.bashrc")));
	assert_true(exists(in(fixture, ".ssh")));
	assert_true(exists(in(fixture, ".zshrc")));
	assert_true(exists(in(fixture, ".profile")));
	assert_true(exists(in(fixture, ".bashrc")));
	assert_int_equal(n_entries(fixture), 0);
}

static void test_parent_becomes_a_link(void **state)
{
	Fixture *fixture = *state;

	mkdir(in(fixture, "project"), 0755);
	hold_one(fixture, "one", "project/.bashrc");
	assert_int_equal(rename(in(fixture, "project"), in(fixture, "moved")), 0);
	assert_int_equal(symlink("moved", in(fixture, "project")), 0);
	release(fixture, "one");
	/* through the link it would be the very stub; it is not followed */
	assert_true(exists(in(fixture, "moved/.bashrc")));
}

static void test_ledger_that_cannot_be_written(void **state)
{
	Fixture *fixture = *state;

	/* a directory in the place of the new ledger: nothing may stay that is not recorded */
	hold(fixture, "one");
	release(fixture, "one");
	mkdir(in(fixture, "state/ledger.json.new"), 0755);
	assert_true(hold_as(fixture, "one", &fixture->self, true) < 0);
	assert_false(exists(in(fixture, ".bashrc")));
	assert_false(exists(in(fixture, ".claude")));
}

static void test_in_memory(void **state)
{
	Fixture *fixture = *state;

	fixture->stubs.options.ledger_path = NULL;
	hold(fixture, "one");
	assert_true(exists(in(fixture, ".claude/settings.json")));
	release(fixture, "one");
	assert_false(exists(in(fixture, ".claude")));
	assert_false(exists(in(fixture, "state")));
}

/* One path that JSON cannot hold must not cost the others their stubs. */
static void test_a_path_that_cannot_be_recorded(void **state)
{
	Fixture *fixture = *state;
	const TnStubWant wants[] = {
		{in(fixture, "\xff/.bashrc"), TN_STUB_FILE, true},
		{in(fixture, "\xff/precious.txt"), TN_STUB_FILE, true},
		{in(fixture, "new\nline/.bashrc"), TN_STUB_FILE, true},
		{in(fixture, ".bashrc"), TN_STUB_FILE, true},
	};

	mkdir(in(fixture, "\xff"), 0755);
	mkdir(in(fixture, "new\nline"), 0755);
	assert_int_equal(tn_stubs_hold(&fixture->stubs, "one", &fixture->self, false, wants, 4), 0);
	assert_int_equal(count(fixture, TN_STUB_CREATED), 2);
	assert_int_equal(count(fixture, TN_STUB_SKIPPED), 2);
	assert_true(exists(in(fixture, ".bashrc")));
	reopen(fixture);
	release(fixture, "one");
	assert_int_equal(rmdir(in(fixture, "\xff")), 0);
	assert_int_equal(rmdir(in(fixture, "new\nline")), 0);
	assert_false(exists(in(fixture, ".bashrc")));
}

/* No room for another entry: what cannot be recorded must not be left either. */
static void test_a_full_ledger(void **state)
{
	Fixture *fixture = *state;
	TnLedgerFile file;

	assert_int_equal(tn_ledger_file_open(&file, fixture->ledger), 0);
	for (int i = 0; i < TN_LEDGER_ENTRIES_MAX - 1; i++) {
		char path[64];
		TnLedgerEntry entry = {
			.path = path, .ino = 1, .dev = 1, .holder = fixture->self, .run_id = "x"};

		snprintf(path, sizeof(path), "/nowhere/%d/.bashrc", i);
		assert_int_equal(tn_ledger_add(file.ledger, &entry, NULL), 0);
	}
	assert_int_equal(tn_ledger_file_save(&file), 0);
	tn_ledger_file_close(&file);
	hold(fixture, "one");
	assert_int_equal(count(fixture, TN_STUB_CREATED), 1);
	assert_int_equal(exists(in(fixture, ".bashrc")) + exists(in(fixture, ".mcp.json")) +
				 exists(in(fixture, ".claude")),
			 1);
}

/* A ledger may name any FIFO of the user: nothing may be taken out of it. */
static void test_a_lease_that_is_none(void **state)
{
	Fixture *fixture = *state;
	TnStubHolder holder = fixture->self;
	TN_AUTOFREE char *lease = strdup(in(fixture, "fifo"));
	char bytes[8];
	int both;

	assert_int_equal(mkfifo(lease, 0600), 0);
	both = open(lease, O_RDWR);
	assert_int_equal(write(both, "data", 4), 4);
	holder.lease = lease;
	assert_int_equal(hold_as(fixture, "sandbox:1", &holder, true), 0);
	assert_int_equal(tn_stubs_reclaim(&fixture->stubs, NULL, NULL), 0);
	assert_int_equal(read(both, bytes, sizeof(bytes)), 4);
	close(both);
	/* others may write to this one, or wait for a reader of it */
	assert_int_equal(chmod(lease, 0622), 0);
	assert_int_equal(tn_lease_open(lease), -ENOTSUP);
	release(fixture, "sandbox:1");
}

/* A directory that its maker may not look into is not left behind. */
static void test_umask_that_takes_everything(void **state)
{
	Fixture *fixture = *state;
	const TnStubWant want = {in(fixture, ".claude"), TN_STUB_DIR, true};
	int status;
	pid_t pid;

	assert_int_equal(chmod(fixture->dir, 0777), 0);
	fixture->stubs.options.ledger_path = NULL;
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		umask(0777);
		_exit(tn_stubs_hold(&fixture->stubs, "one", &fixture->self, false, &want, 1) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(exists(want.path));
}

#define HOLD_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOLD_TEST(test_hold_and_release),
		HOLD_TEST(test_umask_does_not_matter),
		HOLD_TEST(test_the_last_of_two_removes),
		HOLD_TEST(test_what_exists_is_not_ours),
		HOLD_TEST(test_what_cannot_be_made_is_skipped),
		HOLD_TEST(test_changed_stubs_stay),
		HOLD_TEST(test_directory_with_something_in_it_stays),
		HOLD_TEST(test_directory_outlives_its_holder_while_used),
		HOLD_TEST(test_launch_makes_a_vanished_directory_again),
		HOLD_TEST(test_filled_stubs),
		HOLD_TEST(test_missing),
		HOLD_TEST(test_dead_holders_are_reclaimed),
		HOLD_TEST(test_adoption),
		HOLD_TEST(test_reclaim_by_nobody_leaves_what_others_may_use),
		HOLD_TEST(test_leases),
		HOLD_TEST(test_unknown_names_need_a_witness),
		HOLD_TEST(test_forged_ledgers),
		HOLD_TEST(test_parent_becomes_a_link),
		HOLD_TEST(test_ledger_that_cannot_be_written),
		HOLD_TEST(test_in_memory),
		HOLD_TEST(test_a_path_that_cannot_be_recorded),
		HOLD_TEST(test_a_full_ledger),
		HOLD_TEST(test_a_lease_that_is_none),
		HOLD_TEST(test_umask_that_takes_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
