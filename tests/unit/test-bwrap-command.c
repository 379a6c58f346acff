/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* bwrap-command: what is on the line, in which order, and what is not. */
#include "bwrap-command.h"

#include "macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Fixture {
	TnRunOptions options;
	TnRunPlan plan;
	TnPlace place;
	TnBwrapInput input;
	char *command[3];
	TnWords words;
} Fixture;

static int setup(void **state)
{
	static Fixture fixture;
	static char cwd[] = "/home/eve/ws";
	static char tmp[] = "/tmp";
	static char var_tmp[] = "/var/tmp";
	static char command[] = "make";
	static char argument[] = "--version";

	fixture = (Fixture){
		.plan = {.cwd = cwd, .tmp = tmp, .var_tmp = var_tmp},
		.place = {.view = "/run/tn/view",
			  .empty = "/run/tn/empty",
			  .runtime = "/run/tn",
			  .store = "/var/lib/tn"},
		.command = {command, argument, NULL},
		.input = {.bwrap = "/usr/bin/bwrap",
			  .lease = 11,
			  .seccomp = 12,
			  .shim = 13,
			  .status = -1,
			  .started = -1},
	};
	fixture.options.command = fixture.command;
	fixture.input.options = &fixture.options;
	fixture.input.plan = &fixture.plan;
	fixture.input.place = &fixture.place;
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	Fixture *fixture = *state;

	tn_words_clear(&fixture->words);
	tn_words_clear(&fixture->options.bwrap_args);
	tn_words_clear(&fixture->options.setenvs);
	return 0;
}

static void build(Fixture *fixture)
{
	tn_words_clear(&fixture->words);
	tn_bwrap_command(&fixture->input, &fixture->words);
}

/* Index of these words one after another, or -1; the last place where they are. */
static long find(const Fixture *fixture, const char *first, const char *second, const char *third)
{
	const TnWords *words = &fixture->words;
	long found = -1;

	for (size_t i = 0; i < words->n; i++) {
		if (strcmp(words->items[i], first) != 0)
			continue;
		if (second && (i + 1 >= words->n || strcmp(words->items[i + 1], second) != 0))
			continue;
		if (third && (i + 2 >= words->n || strcmp(words->items[i + 2], third) != 0))
			continue;
		found = (long)i;
	}
	return found;
}

static size_t count(const Fixture *fixture, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < fixture->words.n; i++)
		n += strcmp(fixture->words.items[i], word) == 0;
	return n;
}

static void order(void **state)
{
	TnRunMount mounts[] = {
		{.source = (char[]){"/home/eve/ws"}, .target = (char[]){"/home/eve/ws"}},
		{.source = (char[]){"/opt/x"}, .target = (char[]){"/tmp/x"}, .read_only = true},
		{.source = (char[]){"/opt/y"}, .target = (char[]){"/tmp/y"}, .dropped = true},
	};
	Fixture *f = *state;
	long root, view, var_view, workspace, bind, passed, cover, end;

	f->plan.mounts = mounts;
	f->plan.n_mounts = TN_ARRAY_LEN(mounts);
	tn_words_add_all(&f->options.bwrap_args, "--hostname", "nest", NULL);
	build(f);
	root = find(f, "--ro-bind", "/", "/");
	view = find(f, "--bind", "/run/tn/view/tmp", "/tmp");
	var_view = find(f, "--bind", "/run/tn/view/var-tmp", "/var/tmp");
	workspace = find(f, "--bind", "/home/eve/ws", "/home/eve/ws");
	bind = find(f, "--ro-bind", "/opt/x", "/tmp/x");
	passed = find(f, "--hostname", "nest", NULL);
	cover = find(f, "--ro-bind", "/run/tn/empty", "/run/tn");
	end = find(f, "--", "/proc/self/fd/13", "-");

	assert_string_equal(f->words.items[0], "/usr/bin/bwrap");
	assert_true(root == 1);
	assert_true(root < find(f, "--dev", "/dev", NULL));
	assert_true(root < find(f, "--proc", "/proc", NULL));
	assert_true(root < view && view < workspace && view < bind);
	assert_true(root < var_view && var_view < workspace);
	assert_true(workspace < bind && bind < passed);
	/* nothing that mounts comes after the cover */
	assert_true(passed < cover && cover < end);
	assert_int_equal(find(f, "--ro-bind", NULL, NULL), cover);
	assert_true(find(f, "--bind", NULL, NULL) < cover);
	/* what the nest denies is not mounted */
	assert_int_equal(count(f, "/tmp/y"), 0);
	/* the command's words are the last ones, untouched */
	assert_int_equal(find(f, "make", "--version", NULL), end + 3);
	assert_int_equal(f->words.n, (size_t)end + 5);
	assert_null(f->words.items[f->words.n]);
	assert_int_equal(count(f, "--"), 1);
}

static void isolation(void **state)
{
	Fixture *f = *state;

	build(f);
	assert_true(find(f, "--unshare-pid", NULL, NULL) > 0);
	assert_true(find(f, "--unshare-ipc", NULL, NULL) > 0);
	assert_int_equal(count(f, "--unshare-net"), 0);
	assert_int_equal(count(f, "--unshare-user"), 0);
	assert_int_equal(count(f, "--cap-drop"), 0);
	assert_int_equal(count(f, "--die-with-parent"), 0);
	assert_int_equal(count(f, "--new-session"), 0);
	assert_true(find(f, "--sync-fd", "11", NULL) > 0);
	assert_true(find(f, "--seccomp", "12", NULL) > 0);
	assert_int_equal(count(f, "--json-status-fd"), 0);
	assert_true(find(f, "--chdir", "/home/eve/ws", NULL) > 0);
	assert_true(find(f, "--setenv", "TMPDIR", "/tmp") > 0);

	f->options.unshare_net = true;
	f->input.is_root = true;
	f->input.die_with_parent = true;
	f->input.lease = -1;
	f->input.seccomp = -1;
	f->input.status = 14;
	f->input.started = 15;
	build(f);
	assert_int_equal(count(f, "--unshare-net"), 1);
	assert_int_equal(count(f, "--unshare-user"), 1);
	assert_true(find(f, "--cap-drop", "ALL", NULL) > 0);
	assert_int_equal(count(f, "--die-with-parent"), 1);
	assert_int_equal(count(f, "--sync-fd"), 0);
	assert_int_equal(count(f, "--seccomp"), 0);
	assert_int_equal(count(f, "--new-session"), 1);
	assert_true(find(f, "--json-status-fd", "14", NULL) > 0);
	assert_true(find(f, "/proc/self/fd/13", "15", "make") > 0);

	/* without the shim the command comes directly */
	f->input.shim = -1;
	build(f);
	assert_true(find(f, "--", "make", "--version") > 0);

	f->options.keep_caps = true;
	build(f);
	assert_int_equal(count(f, "--unshare-user"), 0);
	assert_int_equal(count(f, "--cap-drop"), 0);
}

/* A variable that the caller sets wins over ours. */
static void variables(void **state)
{
	Fixture *f = *state;

	tn_words_add_all(&f->options.setenvs, "TMPDIR", "/tmp/mine", "A", "", NULL);
	build(f);
	assert_true(find(f, "--setenv", "TMPDIR", "/tmp") <
		    find(f, "--setenv", "TMPDIR", "/tmp/mine"));
	assert_true(find(f, "--setenv", "A", "") > 0);
}

static void without_var_tmp(void **state)
{
	Fixture *f = *state;

	f->plan.var_tmp = NULL;
	build(f);
	assert_int_equal(count(f, "/var/tmp"), 0);
	assert_int_equal(count(f, "/run/tn/view/var-tmp"), 0);
	assert_true(find(f, "--bind", "/run/tn/view/tmp", "/tmp") > 0);
}

/* Binds that show the runtime directory elsewhere are covered there as well. */
static void covers(void **state)
{
	TnRunMount mounts[] = {
		{.source = (char[]){"/run"}, .target = (char[]){"/tmp/run"}},
		{.source = (char[]){"/"}, .target = (char[]){"/media"}},
		{.source = (char[]){"/runner"}, .target = (char[]){"/opt"}},
	};
	TnShown passed[] = {
		{.source = (char[]){"/run/tn"}, .target = (char[]){"/srv"}},
		{.source = NULL, .target = (char[]){"/media/run"}},
	};
	Fixture *f = *state;

	f->plan.mounts = mounts;
	f->plan.n_mounts = TN_ARRAY_LEN(mounts);
	f->plan.passed = passed;
	f->plan.n_passed = TN_ARRAY_LEN(passed);
	build(f);
	assert_true(find(f, "--ro-bind", "/run/tn/empty", "/run/tn") > 0);
	assert_true(find(f, "--ro-bind", "/run/tn/empty", "/tmp/run/tn") > 0);
	assert_true(find(f, "--ro-bind", "/run/tn/empty", "/srv") > 0);
	/* something else lies on top of that one */
	assert_int_equal(find(f, "--ro-bind", "/run/tn/empty", "/media/run/tn"), -1);
	assert_int_equal(count(f, "/run/tn/empty"), 3);
}

static void shown_at(void **state)
{
	static char root[] = "/", a[] = "/a", ab[] = "/a/b", abc[] = "/a/b/c", m[] = "/m";
	static const struct {
		TnShown mounts[4];
		size_t n;
		const char *found[3];
	} cases[] = {
		{{{root, root}}, 1, {"/a/b"}},
		{{{a, m}}, 1, {"/m/b"}},
		{{{ab, m}}, 1, {"/m"}},
		{{{abc, m}}, 1, {NULL}},
		{{{NULL, m}}, 1, {NULL}},
		{{{root, m}}, 1, {"/m/a/b"}},
		{{{root, root}, {NULL, a}}, 2, {NULL}},
		{{{root, root}, {NULL, ab}}, 2, {NULL}},
		{{{root, root}, {NULL, abc}}, 2, {"/a/b"}},
		{{{NULL, a}, {root, root}}, 2, {"/a/b"}},
		{{{root, root}, {a, a}}, 2, {"/a/b"}},
		{{{root, root}, {a, m}}, 2, {"/a/b", "/m/b"}},
		{{{root, root}, {a, m}, {NULL, root}}, 3, {NULL}},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		TnWords found = {0};
		size_t n = 0;

		tn_shown_at(cases[i].mounts, cases[i].n, "/a/b", &found);
		while (n < 3 && cases[i].found[n])
			n++;
		if (found.n != n)
			fail_msg("case %zu: %zu instead of %zu", i, found.n, n);
		for (size_t j = 0; j < n; j++)
			assert_string_equal(found.items[j], cases[i].found[j]);
		tn_words_clear(&found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(order, setup, teardown),
		cmocka_unit_test_setup_teardown(isolation, setup, teardown),
		cmocka_unit_test_setup_teardown(variables, setup, teardown),
		cmocka_unit_test_setup_teardown(without_var_tmp, setup, teardown),
		cmocka_unit_test_setup_teardown(covers, setup, teardown),
		cmocka_unit_test(shown_at),
	};

	return cmocka_run_group_tests_name("bwrap-command", tests, NULL, NULL);
}
