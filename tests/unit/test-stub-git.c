/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stub-fixture.h"

#include "macros.h"
#include "stub-git.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *splice(const char *text, const char *block)
{
	char *ret;
	size_t size;

	assert_int_equal(tn_stub_git_splice(text, text ? strlen(text) : 0, block, &ret, &size), 0);
	assert_true(!ret || strlen(ret) == size);
	return ret;
}

/* Whatever was there before comes back to the byte, through any number of changes. */
static void test_splice_comes_back(void **state)
{
	static const char *const texts[] = {NULL,   "",     "\n",        "a",          "a\n",
					    "a\nb", "\n\n", "# x\n/y\n", "no end\r\n", "/.bashrc"};

	for (size_t i = 0; i < TN_ARRAY_LEN(texts); i++) {
		TN_AUTOFREE char *one = splice(texts[i], "/x\n");
		TN_AUTOFREE char *two = splice(one, "/x\n/y\n");
		TN_AUTOFREE char *same = splice(two, "/x\n/y\n");
		TN_AUTOFREE char *none = splice(same, "");

		assert_non_null(strstr(two, "\n/x\n/y\n"));
		assert_string_equal(same, two);
		if (texts[i])
			assert_string_equal(none, texts[i]);
		else
			assert_null(none);
	}
}

static void test_splice_keeps_what_others_wrote(void **state)
{
	TN_AUTOFREE char *one = splice("a", "/x\n"), *more = NULL, *none = NULL;

	assert_true(asprintf(&more, "%s%s", one, "below\n") > 0);
	none = splice(more, "");
	assert_string_equal(none, "a\nbelow\n");
}

static void test_splice_of_a_cut_block(void **state)
{
	TN_AUTOFREE char *one = splice("a\n", "/x\n"), *none = NULL;
	char *end = strstr(one, "# tmpnest stubs: end");

	assert_non_null(end);
	strcpy(end, "mine\n");
	none = splice(one, "");
	/* without its end nobody knows what was ours: only the first line goes */
	assert_string_equal(none, "a\n/x\nmine\n");
}

static void test_patterns(void **state)
{
	static const struct {
		const char *relative, *pattern;
	} cases[] = {
		{".bashrc", "/.bashrc\n"},
		{"a b/.x", "/a b/.x\n"},
		{"end ", "/end\\ \n"},
		{"[a]*?", "/\\[a]\\*\\?\n"},
		{"back\\slash", "/back\\\\slash\n"},
		{"#x", "/#x\n"},
		{"!x", "/!x\n"},
		{"new\nline", NULL},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		char pattern[128];
		bool fits = tn_stub_git_pattern(cases[i].relative, pattern, sizeof(pattern));

		assert_int_equal(fits, cases[i].pattern != NULL);
		if (fits)
			assert_string_equal(pattern, cases[i].pattern);
	}
}

/* What a command prints that is run in the fixture's directory. */
static char *run(Fixture *fixture, const char *command)
{
	char line[4096];
	char *text = NULL;
	size_t size = 0;
	FILE *pipe;

	snprintf(line, sizeof(line), "cd '%s' && { %s; } 2>&1", fixture->dir, command);
	pipe = popen(line, "r");
	assert_non_null(pipe);
	if (getdelim(&text, &size, '\0', pipe) < 0) {
		free(text);
		text = strdup("");
	}
	if (pclose(pipe) != 0)
		fail_msg("%s: %s", command, text);
	return text;
}

static void make_repository(Fixture *fixture)
{
	free(run(fixture, "git init -q w"));
}

static void add_linked_worktree(Fixture *fixture)
{
	free(run(fixture,
		 "git -C w -c user.name=n -c user.email=e@x commit -q --allow-empty -m m"));
	free(run(fixture, "git -C w worktree add -q ../linked"));
}

static void hold(Fixture *fixture, const char *name, TnStubKind kind, bool filled)
{
	const TnStubWant want = {in(fixture, name), kind, filled};

	assert_int_equal(tn_stubs_hold(&fixture->stubs, "one", &fixture->self, false, &want, 1), 0);
	assert_int_equal(outcome_of(fixture, want.path), TN_STUB_CREATED);
}

static void assert_clean(Fixture *fixture, const char *command)
{
	TN_AUTOFREE char *status = run(fixture, command);

	assert_string_equal(status, "");
}

static void release(Fixture *fixture)
{
	assert_int_equal(tn_stubs_release(&fixture->stubs, "one", NULL, NULL), 0);
}

static void test_status_stays_clean(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *before = NULL, *after = NULL, *status = NULL;

	make_repository(fixture);
	mkdir(in(fixture, "w/sub"), 0755);
	write_file(in(fixture, "w/.git/info/exclude"), "*.o");
	before = read_file(in(fixture, "w/.git/info/exclude"));
	hold(fixture, "w/.bashrc", TN_STUB_FILE, false);
	hold(fixture, "w/sub/.mcp.json", TN_STUB_FILE, true);
	hold(fixture, "w/.claude", TN_STUB_DIR, true);
	assert_clean(fixture, "git -C w status --porcelain -uall");
	/* a real file is never named: somebody has filled the stub */
	unlink(in(fixture, "w/.bashrc"));
	write_file(in(fixture, "w/.bashrc"), "real");
	hold(fixture, "w/.zshrc", TN_STUB_FILE, false);
	status = run(fixture, "git -C w status --porcelain -uall");
	assert_string_equal(status, "?? .bashrc\n");
	release(fixture);
	after = read_file(in(fixture, "w/.git/info/exclude"));
	assert_string_equal(before, after);
}

static void test_linked_worktrees(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *exclude = NULL;

	make_repository(fixture);
	add_linked_worktree(fixture);
	unlink(in(fixture, "w/.git/info/exclude"));
	rmdir(in(fixture, "w/.git/info"));
	hold(fixture, "linked/.bashrc", TN_STUB_FILE, false);
	assert_clean(fixture, "git -C linked status --porcelain -uall");
	exclude = read_file(in(fixture, "w/.git/info/exclude"));
	assert_non_null(exclude);
	assert_non_null(strstr(exclude, "\n/.bashrc\n"));
	release(fixture);
	/* what was not there before is not there after */
	assert_false(exists(in(fixture, "w/.git/info")));
}

/* One exclude file serves both: a pattern must not hide the other one's real file. */
static void test_shared_exclude_hides_no_real_file(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *status = NULL;

	make_repository(fixture);
	add_linked_worktree(fixture);
	write_file(in(fixture, "w/.bashrc"), "real");
	hold(fixture, "linked/.bashrc", TN_STUB_FILE, false);
	hold(fixture, "linked/.zshrc", TN_STUB_FILE, false);
	status = run(fixture, "git -C w status --porcelain -uall");
	assert_string_equal(status, "?? .bashrc\n");
	release(fixture);
}

static void test_forged_git_files(void **state)
{
	static const char *const names[] = {"elsewhere", "half"};
	Fixture *fixture = *state;

	/* a .git file that leads to a directory that is no repository */
	mkdir(in(fixture, "elsewhere"), 0755);
	mkdir(in(fixture, "half"), 0755);
	mkdir(in(fixture, "half/objects"), 0755);
	mkdir(in(fixture, "half/refs"), 0755);
	mkdir(in(fixture, "w"), 0755);
	for (size_t i = 0; i < TN_ARRAY_LEN(names); i++) {
		char text[64];

		snprintf(text, sizeof(text), "gitdir: ../%s\n", names[i]);
		write_file(in(fixture, "w/.git"), text);
		hold(fixture, "w/.bashrc", TN_STUB_FILE, false);
		assert_false(exists(in(fixture, "elsewhere/info")));
		assert_false(exists(in(fixture, "half/info")));
		release(fixture);
	}
}

static void test_a_link_is_left_alone(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *victim = NULL;

	make_repository(fixture);
	write_file(in(fixture, "victim"), "mine\n");
	unlink(in(fixture, "w/.git/info/exclude"));
	assert_int_equal(symlink("../../../victim", in(fixture, "w/.git/info/exclude")), 0);
	hold(fixture, "w/.bashrc", TN_STUB_FILE, false);
	assert_int_equal(count(fixture, TN_STUB_WARNING), 0);
	victim = read_file(in(fixture, "victim"));
	assert_string_equal(victim, "mine\n");
	release(fixture);
	assert_true(exists(in(fixture, "w/.git/info/exclude")));
}

/* Root works in a user's tree: the file stays the user's, and so does what it may do with it. */
static void test_the_file_stays_its_owners(void **state)
{
	Fixture *fixture = *state;
	TN_AUTOFREE char *exclude = strdup(in(fixture, "w/.git/info/exclude"));
	struct stat status;

	if (geteuid() != 0)
		skip();
	make_repository(fixture);
	assert_int_equal(chown(exclude, 65534, 65533), 0);
	assert_int_equal(chmod(exclude, 0640), 0);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			hold(fixture, "w/.bashrc", TN_STUB_FILE, false);
		else
			release(fixture);
		assert_int_equal(stat(exclude, &status), 0);
		assert_int_equal(status.st_uid, 65534);
		assert_int_equal(status.st_gid, 65533);
		assert_int_equal(status.st_mode & 07777, 0640);
	}
}

#define GIT_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_splice_comes_back),
		cmocka_unit_test(test_splice_keeps_what_others_wrote),
		cmocka_unit_test(test_splice_of_a_cut_block),
		cmocka_unit_test(test_patterns),
		GIT_TEST(test_status_stays_clean),
		GIT_TEST(test_linked_worktrees),
		GIT_TEST(test_shared_exclude_hides_no_real_file),
		GIT_TEST(test_forged_git_files),
		GIT_TEST(test_a_link_is_left_alone),
		GIT_TEST(test_the_file_stays_its_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
