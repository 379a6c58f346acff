/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* run-options: every option of `tmpnest run`, and every way to get it wrong. */
#include "run-options.h"

#include "macros.h"
#include "units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORDS_MAX 32

typedef struct Parsed {
	char text[512];
	char *argv[WORDS_MAX];
	char why[512];
	TnRunOptions options;
	int result;
} Parsed;

/* Splits line at "|" (words may hold spaces) and parses it. */
static Parsed *parse(const char *line)
{
	static Parsed parsed;
	size_t n = 0;
	char *rest = parsed.text;
	char *word;

	memset(&parsed, 0, sizeof(parsed));
	snprintf(parsed.text, sizeof(parsed.text), "%s", line);
	while (*line && (word = strsep(&rest, "|"))) {
		assert_true(n < WORDS_MAX - 1);
		parsed.argv[n++] = word;
	}
	parsed.result =
		tn_run_options_parse(&parsed.options, parsed.argv, parsed.why, sizeof(parsed.why));
	return &parsed;
}

static void free_parsed(Parsed *parsed)
{
	tn_run_options_clear(&parsed->options);
}

static void words_are(const TnWords *words, const char *joined)
{
	char text[512] = "";

	for (size_t i = 0; i < words->n; i++) {
		strcat(text, i ? "|" : "");
		strcat(text, words->items[i]);
	}
	assert_string_equal(text, joined);
}

static void defaults(void **state)
{
	Parsed *p = parse("make|-j|--nest|x");
	const TnRunOptions *o = &p->options;

	assert_int_equal(p->result, 0);
	assert_null(o->nest);
	assert_true(o->bytes == 0 && o->inodes == 0 && o->ttl == 0 && o->idle_ttl == 0);
	assert_int_equal(o->store, TN_STORE_DEFAULT);
	assert_false(o->no_xattrs || o->durable || o->no_workspace || o->unshare_net ||
		     o->no_var_tmp || o->keep_caps || o->report || o->keep || o->help);
	assert_false(o->daemon.system || o->daemon.user);
	assert_false(tn_run_options_shape_nest(o));
	/* the command's own words are not ours */
	assert_ptr_equal(o->command, p->argv);
	free_parsed(p);
}

static void everything(void **state)
{
	Parsed *p = parse(
		"--nest|box|--quota|64M|--inodes=1000|--ttl|2h|--idle-ttl=max|--durable|"
		"--store=memory|--net|none|--no-var-tmp|--no-xattrs|--run-as|eve|--report|--keep|"
		"--system|--runtime-dir|/r|--store-dir=/s|--|--help");
	const TnRunOptions *o = &p->options;

	assert_int_equal(p->result, 0);
	assert_string_equal(o->nest, "box");
	assert_true(o->bytes == 64 << 20 && o->inodes == 1000 && o->ttl == 7200);
	assert_true(o->idle_ttl == TN_UNLIMITED);
	assert_true(o->durable && o->unshare_net && o->no_var_tmp && o->report && o->keep);
	assert_true(o->no_xattrs);
	assert_int_equal(o->store, TN_STORE_MEMORY);
	assert_string_equal(o->run_as, "eve");
	assert_true(o->daemon.system);
	assert_string_equal(o->daemon.runtime_dir, "/r");
	assert_string_equal(o->daemon.store_dir, "/s");
	assert_false(o->help);
	assert_string_equal(o->command[0], "--help");
	assert_null(o->command[1]);
	assert_true(tn_run_options_shape_nest(o));
	free_parsed(p);
}

static void lists(void **state)
{
	Parsed *p = parse("--deny|/a|--read-only=/b|--deny=c|--workspace|/w|--workspace|.|--setenv|"
			  "A=b=c|--setenv=E=|--bwrap-arg|--bind|--bwrap-arg=--|--bwrap-arg||cmd");
	const TnRunOptions *o = &p->options;

	assert_int_equal(p->result, 0);
	words_are(&o->deny, "/a|c");
	words_are(&o->read_only, "/b");
	words_are(&o->workspaces, "/w|.");
	words_are(&o->setenvs, "A|b=c|E|");
	words_are(&o->bwrap_args, "--bind|--|");
	assert_string_equal(o->command[0], "cmd");
	free_parsed(p);
}

static void binds(void **state)
{
	static const struct {
		const char *word, *host, *inside;
	} cases[] = {
		{"/a", "/a", NULL},          {"a", "a", NULL},       {"/a:/b", "/a", "/b"},
		{"a:/b", "a", "/b"},         {"/a:b", "/a:b", NULL}, {"/a:b:/c", "/a:b", "/c"},
		{"/a:/b:/c", "/a:/b", "/c"}, {"/a:/", "/a", "/"},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		char line[64];
		Parsed *p;

		snprintf(line, sizeof(line), "--%s|%s|cmd", i % 2 ? "bind" : "ro-bind",
			 cases[i].word);
		p = parse(line);
		assert_int_equal(p->result, 0);
		assert_int_equal(p->options.n_binds, 1);
		assert_int_equal(p->options.binds[0].read_only, i % 2 == 0);
		assert_string_equal(p->options.binds[0].host, cases[i].host);
		if (cases[i].inside)
			assert_string_equal(p->options.binds[0].inside, cases[i].inside);
		else
			assert_null(p->options.binds[0].inside);
		free_parsed(p);
	}
}

static void wrong(void **state)
{
	static const char *const cases[][2] = {
		{"", "no command"},
		{"--", "no command"},
		{"--nest|box", "no command"},
		{"--nest", "--nest: needs a value"},
		{"--nest||x", "not a nest's name"},
		{"--nest|a/b|x", "a/b: not a nest's name"},
		{"--nest|-x|x", "-x: not a nest's name"},
		{"--nope|x", "--nope: unknown option"},
		{"--nope=1|x", "--nope: unknown option"},
		{"--nes|a|x", "--nes: unknown option"},
		{"--=|x", "unknown option"},
		{"-x|y", "-x: unknown option"},
		{"--durable=yes|x", "--durable: takes no value"},
		{"--quota|0|x", "--quota: 0: not a valid value"},
		{"--quota|1X|x", "K, M, G or T"},
		{"--quota|99999999T|x", "too large"},
		{"--quota=|x", "--quota: : not a valid value"},
		{"--inodes|0|x", "--inodes: 0"},
		{"--ttl|5|x", "s, m, h or d"},
		{"--ttl|0s|x", "--ttl: 0s"},
		{"--idle-ttl|x|x", "--idle-ttl: x"},
		{"--store|tape|x", "dir, memory or image"},
		{"--net|some|x", "host or none"},
		{"--setenv|A|x", "NAME=VALUE"},
		{"--setenv|=b|x", "NAME=VALUE"},
		{"--deny||x", "--deny: empty"},
		{"--read-only=|x", "--read-only: empty"},
		{"--workspace||x", "--workspace: empty"},
		{"--bind||x", "--bind"},
		{"--ro-bind|:/b|x", "--ro-bind"},
		{"--durable|x", "--durable"},
		{"--system|--user|x", "exclude each other"},
		{"--no-workspace|--workspace|/w|x", "exclude each other"},
		{"--run-as|eve|--keep-caps|x", "exclude each other"},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		Parsed *p = parse(cases[i][0]);

		if (p->result != -EINVAL || !strstr(p->why, cases[i][1]))
			fail_msg("\"%s\": %d, \"%s\"", cases[i][0], p->result, p->why);
		assert_null(strchr(p->why, '\n'));
		free_parsed(p);
	}
}

static void help(void **state)
{
	static const char *const cases[] = {"--help", "-h", "--nest|a|--help", "-h|x"};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		Parsed *p = parse(cases[i]);

		assert_int_equal(p->result, 0);
		assert_true(p->options.help);
		free_parsed(p);
	}
}

/* Each of these is something that only the making of a nest can heed. */
static void shaping(void **state)
{
	static const char *const shaping[] = {
		"--quota|1|x", "--inodes|1|x",    "--ttl|1s|x",    "--idle-ttl|1s|x",
		"--deny|a|x",  "--read-only|a|x", "--store|dir|x", "--nest|a|--durable|x",
	};
	static const char *const others[] = {"--nest|a|x", "--net|none|x", "--keep|x"};

	for (size_t i = 0; i < TN_ARRAY_LEN(shaping); i++) {
		Parsed *p = parse(shaping[i]);

		assert_int_equal(p->result, 0);
		assert_true(tn_run_options_shape_nest(&p->options));
		free_parsed(p);
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(others); i++) {
		Parsed *p = parse(others[i]);

		assert_int_equal(p->result, 0);
		assert_false(tn_run_options_shape_nest(&p->options));
		free_parsed(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults), cmocka_unit_test(everything), cmocka_unit_test(lists),
		cmocka_unit_test(binds),    cmocka_unit_test(wrong),      cmocka_unit_test(help),
		cmocka_unit_test(shaping),
	};

	return cmocka_run_group_tests_name("run-options", tests, NULL, NULL);
}
