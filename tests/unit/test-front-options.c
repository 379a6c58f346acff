/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* front-options, front-nest: configuration, environment, and the nest that a line means. */
#include "from-name.h"
#include "front-nest.h"
#include "front-options.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_file(void **state)
{
	static const char system[] = "# defaults\n"
				     "[nest]\n"
				     "quota = 64M\n"
				     "inodes = 1000\n"
				     "ttl = 2h\n"
				     "idle_ttl = max\n"
				     "store = memory\n"
				     "deny = /tmp/a:b:\n"
				     "read_only = /tmp/ro\n"
				     "[bwrap]\n"
				     "nest_from = bind:*/work-*\n"
				     "var_tmp = yes\n"
				     "program = /opt/bwrap\n"
				     "view = possible\n"
				     "[daemon]\n"
				     "quota = nonsense of another part\n";
	static const char user[] =
		"[nest]\nquota=1K\nname=mine\ndeny=c\n"
		"[bwrap]\nprogram=/home/u/evil\nview=never\nverbose=1\nvar_tmp=0\n";
	TnFrontOptions options = {0};

	assert_int_equal(tn_front_options_parse(&options, system, "system", true), 0);
	assert_int_equal(options.bytes, 64 << 20);
	assert_int_equal(options.inodes, 1000);
	assert_int_equal(options.ttl, 7200);
	assert_true(options.idle_ttl == TN_UNLIMITED);
	assert_int_equal(options.store, TN_STORE_MEMORY);
	assert_true(options.var_tmp);
	assert_int_equal(tn_front_options_parse(&options, user, "user", false), 0);
	assert_int_equal(options.bytes, 1024);
	assert_int_equal(options.deny.n, 3);
	assert_string_equal(options.deny.items[0], "/tmp/a");
	assert_string_equal(options.deny.items[1], "b");
	assert_string_equal(options.deny.items[2], "c");
	assert_int_equal(options.read_only.n, 1);
	assert_string_equal(options.nest, "mine");
	assert_string_equal(options.program, "/opt/bwrap");
	assert_int_equal(options.view, TN_FRONT_VIEW_POSSIBLE);
	assert_true(options.verbose);
	assert_false(options.var_tmp);
	assert_int_equal(options.globs.n, 1);
	assert_string_equal(options.globs.items[0], "*/work-*");
	tn_front_options_clear(&options);
}

static void test_bad_file(void **state)
{
	static const char *const texts[] = {
		"[nest]\nquota = lots\n",
		"[nest]\ninodes = 0\n",
		"[nest]\nname = .hidden\n",
		"[nest]\nstore = disk\n",
		"[nest]\nttl = 5\n",
		"[bwrap]\nnest_from = */x\n",
		"[bwrap]\nnest_from = bind:\n",
		"[bwrap]\nvar_tmp = maybe\n",
		"[bwrap]\nprogram = bwrap\n",
		"[bwrap]\nview = no\n",
		"[nest\nquota = 1\n",
		"[nest]\nnonsense\n",
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(texts); i++) {
		TnFrontOptions options = {0};

		if (tn_front_options_parse(&options, texts[i], "file", true) != -EINVAL)
			fail_msg("%s", texts[i]);
		tn_front_options_clear(&options);
	}
}

static const char *const *variables; /* name, value, ..., NULL */

static const char *look(const char *name)
{
	for (size_t i = 0; variables[i]; i += 2)
		if (strcmp(variables[i], name) == 0)
			return variables[i + 1];
	return NULL;
}

static void test_environment(void **state)
{
	static const char *const good[] = {"TMPNEST_NEST",
					   "n1",
					   "TMPNEST_QUOTA",
					   "1G",
					   "TMPNEST_DENY",
					   "x:/tmp/y",
					   "TMPNEST_STORE",
					   "dir",
					   "TMPNEST_INODES",
					   "",
					   "TMPNEST_NEST_FROM",
					   "bind:/w/*",
					   "TMPNEST_VAR_TMP",
					   "1",
					   NULL};
	static const char *const none[] = {"TMPNEST_NEST_FROM", "none", NULL};
	static const char *const bad[] = {"TMPNEST_QUOTA", "1X", NULL};
	TnFrontOptions options = {0};

	assert_int_equal(tn_front_options_parse(&options,
						"[nest]\ninodes=7\n[bwrap]\nnest_from=bind:/old\n",
						"f", true),
			 0);
	variables = good;
	assert_int_equal(tn_front_options_environment(&options, look), 0);
	assert_string_equal(options.nest, "n1");
	assert_int_equal(options.bytes, 1 << 30);
	assert_int_equal(options.inodes, 7);
	assert_int_equal(options.deny.n, 2);
	assert_int_equal(options.store, TN_STORE_DIR);
	assert_int_equal(options.globs.n, 1);
	assert_string_equal(options.globs.items[0], "/w/*");
	assert_true(options.var_tmp);
	assert_false(options.no_built_in);
	variables = none;
	assert_int_equal(tn_front_options_environment(&options, look), 0);
	assert_int_equal(options.globs.n, 0);
	assert_true(options.no_built_in);
	variables = bad;
	assert_int_equal(tn_front_options_environment(&options, look), -EINVAL);
	assert_int_equal(options.bytes, 1 << 30);
	tn_front_options_clear(&options);
}

static void test_names(void **state)
{
	static const struct {
		const char *path, *start;
	} rows[] = {
		{"/tmp/librechat-code-srt-Ab9", "librechat-code-srt-Ab9-"},
		{"/w/.hidden dir", "_hidden_dir-"},
		{"/w/-x\xff", "_x_-"},
		{"/", "_-"},
		{"/w/"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-"},
	};
	char name[TN_NAME_MAX + 1], other[TN_NAME_MAX + 1];

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		tn_from_name(rows[i].path, 1, 2, name);
		assert_true(tn_name_is_valid(name));
		assert_int_equal(strlen(name), strlen(rows[i].start) + 8);
		assert_memory_equal(name, rows[i].start, strlen(rows[i].start));
	}
	tn_from_name("/a/x", 1, 2, name);
	tn_from_name("/a/x", 1, 2, other);
	assert_string_equal(name, other);
	tn_from_name("/b/x", 1, 2, other);
	assert_string_not_equal(name, other);
	tn_from_name("/a/x", 2, 2, other);
	assert_string_not_equal(name, other);
	tn_from_name("/a/x", 1, 3, other);
	assert_string_not_equal(name, other);
}

/* Everything is a directory, but what ends in "=". */
static TnFileKind resolve(void *data, const char *path, char real[PATH_MAX])
{
	snprintf(real, PATH_MAX, "%s", path);
	return path[strlen(path) - 1] == '=' ? TN_FILE_OTHER : TN_FILE_DIR;
}

static int load(void *data, int fd, const char **ret_block, size_t *ret_size)
{
	return -EBADF;
}

static void test_binds(void **state)
{
	static const struct {
		const char *line, *globs, *expected;
	} rows[] = {
		{"--ro-bind / / --bind /tmp/lc-A /tmp/lc-A", "*/lc-*", "/tmp/lc-A"},
		{"--ro-bind / / --ro-bind /tmp/lc-A /tmp/lc-A", "*/lc-*", NULL},
		{"--ro-bind / / --ro-bind-try /tmp/lc-A /x --dev-bind-try /tmp/lc-B /y", "*/lc-*",
		 "/tmp/lc-B"},
		{"--bind /tmp/lc-A/sub /x --bind /tmp/lc-A /y", "*/lc-*", "/tmp/lc-A"},
		{"--bind /tmp/lc-B /x --bind /tmp/lc-A /y", "*/lc-*", "/tmp/lc-B"},
		{"--bind /tmp/lc-s= /x", "*/lc-*", NULL},
		{"--bind /tmp/two /x --bind /tmp/one /y", "/tmp/none /tmp/one* /tmp/*", "/tmp/one"},
		{"--tmpfs /tmp/lc-A", "*/lc-*", NULL},
		{"--bind / /", "*/lc-*", NULL},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		static const char *const covered[] = {NULL};
		const TnSpliceFacts facts = {
			.resolve = resolve, .host_tmp = "/tmp", .covered = covered};
		char text[256], globs_text[64], why[TN_BWRAP_WHY_MAX];
		const char *argv[32], *got;
		TnWords globs = {0};
		TnBwrapLine line;
		TnSplice splice;
		size_t n = 0;

		snprintf(text, sizeof(text), "%s sh", rows[i].line);
		for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
			argv[n++] = word;
		snprintf(globs_text, sizeof(globs_text), "%s", rows[i].globs);
		for (char *word = strtok(globs_text, " "); word; word = strtok(NULL, " "))
			tn_words_add(&globs, word);
		assert_int_equal(tn_bwrap_parse(&line, argv, n, load, NULL, why), 0);
		assert_int_equal(tn_splice_plan(&splice, &line, &facts), 0);
		got = tn_front_nest_bind(&splice, &globs);
		if (got != rows[i].expected &&
		    (!got || !rows[i].expected || strcmp(got, rows[i].expected) != 0))
			fail_msg("%s: %s", rows[i].line, got ? got : "none");
		tn_splice_clear(&splice);
		tn_bwrap_clear(&line);
		tn_words_clear(&globs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),        cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_names),
		cmocka_unit_test(test_binds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
