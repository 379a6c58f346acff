/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* paths: where a daemon's directories are, from words, environment and defaults. */
#include "paths.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const variables[] = {"TMPNEST_RUNTIME_DIR", "TMPNEST_STORE_DIR",
					"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME"};

static int clean_environment(void **state)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
	setenv("HOME", "/home/eve", 1);
	return 0;
}

typedef struct Case {
	const char *set[TN_ARRAY_LEN(variables)]; /* values in the order of `variables` */
	TnScope scope;
	const char *runtime_word, *store_word;
	int result;
	const char *runtime, *store; /* when result is 0 */
	const char *mentions;        /* part of the one line, when it is not */
} Case;

static void check(const Case *c)
{
	TnPaths paths = {.scope = 77};
	char why[512] = "";
	int r;

	clean_environment(NULL);
	for (size_t i = 0; i < TN_ARRAY_LEN(variables); i++)
		if (c->set[i])
			setenv(variables[i], c->set[i], 1);
	r = tn_paths_init(&paths, c->scope, c->runtime_word, c->store_word, why, sizeof(why));
	assert_int_equal(r, c->result);
	if (r < 0) {
		if (!strstr(why, c->mentions))
			fail_msg("\"%s\" does not say \"%s\"", why, c->mentions);
		assert_null(strchr(why, '\n'));
		assert_int_equal(paths.scope, 77);
		return;
	}
	assert_string_equal(why, "");
	assert_int_equal(paths.scope, c->scope);
	assert_string_equal(paths.runtime_dir, c->runtime);
	assert_string_equal(paths.store_dir, c->store);
	assert_true(tn_path_is_below(paths.attach_socket, paths.runtime_dir));
	assert_string_equal(strrchr(paths.attach_socket, '/'), "/attach.sock");
	assert_true(tn_path_is_below(paths.control_socket, paths.runtime_dir));
	assert_string_equal(strrchr(paths.control_socket, '/'), "/control.sock");
	assert_true(tn_path_is_below(paths.leases_dir, paths.runtime_dir));
	assert_string_equal(strrchr(paths.leases_dir, '/'), "/leases");
}

static void places(void **state)
{
	static const Case cases[] = {
		{{0}, TN_SCOPE_SYSTEM, 0, 0, 0, "/run/tmpnest", "/var/lib/tmpnest"},
		{{0, 0, "/run/user/7", 0, 0},
		 TN_SCOPE_USER,
		 0,
		 0,
		 0,
		 "/run/user/7/tmpnest",
		 "/home/eve/.local/state/tmpnest"},
		{{0},
		 TN_SCOPE_USER,
		 0,
		 0,
		 0,
		 "/home/eve/.local/state/tmpnest-run",
		 "/home/eve/.local/state/tmpnest"},
		{{0, 0, 0, "/s", 0}, TN_SCOPE_USER, 0, 0, 0, "/s/tmpnest-run", "/s/tmpnest"},
		/* relative values of the XDG variables do not count */
		{{0, 0, "run", "state", 0},
		 TN_SCOPE_USER,
		 0,
		 0,
		 0,
		 "/home/eve/.local/state/tmpnest-run",
		 "/home/eve/.local/state/tmpnest"},
		/* neither do empty ones, of ours too */
		{{"", "", "", "", 0},
		 TN_SCOPE_USER,
		 0,
		 0,
		 0,
		 "/home/eve/.local/state/tmpnest-run",
		 "/home/eve/.local/state/tmpnest"},
		{{"/r", "/s", 0, 0, 0}, TN_SCOPE_SYSTEM, 0, 0, 0, "/r", "/s"},
		{{"/r", "/s", 0, 0, 0}, TN_SCOPE_USER, 0, 0, 0, "/r", "/s"},
		{{"/r", 0, 0, 0, 0}, TN_SCOPE_SYSTEM, 0, 0, 0, "/r", "/var/lib/tmpnest"},
		{{"/r", "/s", 0, 0, 0}, TN_SCOPE_SYSTEM, "/x", "/y", 0, "/x", "/y"},
		{{"/r", "/s", 0, 0, 0}, TN_SCOPE_SYSTEM, 0, "/y", 0, "/r", "/y"},
		{{0}, TN_SCOPE_SYSTEM, "//r/./a/../b//", "/s/", 0, "/r/b", "/s"},
		/* a common beginning of the name is not containment */
		{{0}, TN_SCOPE_SYSTEM, "/a/nest", "/a/nest-store", 0, "/a/nest", "/a/nest-store"},
		{{0}, TN_SCOPE_SYSTEM, "/tmpx/r", "/var/tmpx", 0, "/tmpx/r", "/var/tmpx"},

		{{0}, TN_SCOPE_SYSTEM, "r", "/s", -EINVAL, 0, 0, "not an absolute path"},
		{{0}, TN_SCOPE_SYSTEM, "/r", "s", -EINVAL, 0, 0, "store: s: not an absolute path"},
		{{0}, TN_SCOPE_SYSTEM, "", "/s", -EINVAL, 0, 0, "not an absolute path"},
		{{"r", 0, 0, 0, 0}, TN_SCOPE_SYSTEM, 0, 0, -EINVAL, 0, 0, "TMPNEST_RUNTIME_DIR"},
		{{0}, TN_SCOPE_SYSTEM, "/tmp", "/s", -EINVAL, 0, 0, "below /tmp"},
		{{0}, TN_SCOPE_SYSTEM, "/tmp/r", "/s", -EINVAL, 0, 0, "/tmp/r"},
		{{0}, TN_SCOPE_SYSTEM, "/x/../tmp/r", "/s", -EINVAL, 0, 0, "/tmp/r"},
		{{0}, TN_SCOPE_SYSTEM, "/r", "/var/tmp/s", -EINVAL, 0, 0, "/var/tmp/s"},
		{{0, 0, "/tmp/u", 0, 0}, TN_SCOPE_USER, 0, 0, -EINVAL, 0, 0, "/tmp/u/tmpnest"},
		{{0}, TN_SCOPE_SYSTEM, "/a", "/a", -EINVAL, 0, 0, "must not contain"},
		{{0}, TN_SCOPE_SYSTEM, "/a/b", "/a", -EINVAL, 0, 0, "must not contain"},
		{{0}, TN_SCOPE_SYSTEM, "/a", "/a/b", -EINVAL, 0, 0, "must not contain"},
		{{0}, TN_SCOPE_SYSTEM, "/", "/a", -EINVAL, 0, 0, "must not contain"},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++)
		check(&cases[i]);
}

/* The longest directory whose sockets fit, and one byte more. */
static void socket_length(void **state)
{
	size_t longest = 107 - strlen("/control.sock");
	char dir[200];
	Case c = {.scope = TN_SCOPE_SYSTEM, .runtime_word = dir, .store_word = "/s"};

	memset(dir, 'x', sizeof(dir));
	dir[0] = '/';
	dir[longest] = '\0';
	c.runtime = dir;
	c.store = "/s";
	check(&c);
	dir[longest] = 'x';
	dir[longest + 1] = '\0';
	c.result = -ENAMETOOLONG;
	c.mentions = "107 bytes";
	check(&c);
}

static void too_long(void **state)
{
	static char dir[2 * PATH_MAX];
	Case c = {.scope = TN_SCOPE_SYSTEM,
		  .runtime_word = "/r",
		  .store_word = dir,
		  .result = -ENAMETOOLONG,
		  .mentions = "path too long"};

	memset(dir, 'x', sizeof(dir) - 1);
	dir[0] = '/';
	check(&c);
}

static void explicit_or_not(void **state)
{
	clean_environment(NULL);
	assert_false(tn_paths_are_explicit(NULL, NULL));
	assert_true(tn_paths_are_explicit("/r", NULL));
	assert_true(tn_paths_are_explicit(NULL, "/s"));
	setenv("TMPNEST_STORE_DIR", "", 1);
	assert_false(tn_paths_are_explicit(NULL, NULL));
	setenv("TMPNEST_STORE_DIR", "/s", 1);
	assert_true(tn_paths_are_explicit(NULL, NULL));
	unsetenv("TMPNEST_STORE_DIR");
	setenv("TMPNEST_RUNTIME_DIR", "/r", 1);
	assert_true(tn_paths_are_explicit(NULL, NULL));
}

/* The defaults are what they are, whatever this caller's variables say. */
static void defaults(void **state)
{
	TnPaths paths;

	clean_environment(NULL);
	setenv("TMPNEST_RUNTIME_DIR", "/r", 1);
	setenv("TMPNEST_STORE_DIR", "/s", 1);
	assert_true(tn_paths_init_default(&paths, TN_SCOPE_SYSTEM));
	assert_string_equal(paths.runtime_dir, "/run/tmpnest");
	assert_string_equal(paths.store_dir, "/var/lib/tmpnest");
	assert_true(tn_paths_init_default(&paths, TN_SCOPE_USER));
	assert_string_equal(paths.store_dir, "/home/eve/.local/state/tmpnest");
}

static void below(void **state)
{
	assert_true(tn_path_is_below("/a", "/a"));
	assert_true(tn_path_is_below("/a/b", "/a"));
	assert_true(tn_path_is_below("/a", "/"));
	assert_true(tn_path_is_below("/", "/"));
	assert_false(tn_path_is_below("/ab", "/a"));
	assert_false(tn_path_is_below("/a", "/a/b"));
	assert_false(tn_path_is_below("/", "/a"));
}

static void normal_form(void **state)
{
	static const char *const cases[][2] = {
		{"/", "/"},           {"//", "/"},          {"/.", "/"},
		{"/..", "/"},         {"/../..", "/"},      {"/a", "/a"},
		{"/a/", "/a"},        {"//a//b//", "/a/b"}, {"/a/./b", "/a/b"},
		{"/a/../b", "/b"},    {"/a/b/../..", "/"},  {"/a/../../b", "/b"},
		{"/a/...", "/a/..."}, {"/a/..b", "/a/..b"}, {"/.a/b.", "/.a/b."},
		{"/a/b/..", "/a"},    {"/a/.../..", "/a"},
	};
	char ret[16];

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		assert_true(tn_path_normalize(cases[i][0], ret, sizeof(ret)));
		assert_string_equal(ret, cases[i][1]);
	}
	assert_false(tn_path_normalize("", ret, sizeof(ret)));
	assert_false(tn_path_normalize("a", ret, sizeof(ret)));
	assert_false(tn_path_normalize("./a", ret, sizeof(ret)));
	/* fifteen bytes and the NUL fit, one more does not */
	assert_true(tn_path_normalize("/23456789012345", ret, sizeof(ret)));
	assert_string_equal(ret, "/23456789012345");
	assert_false(tn_path_normalize("/234567890123456", ret, sizeof(ret)));
	assert_false(tn_path_normalize("/a/34567890123456", ret, sizeof(ret)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),      cmocka_unit_test(socket_length),
		cmocka_unit_test(too_long),    cmocka_unit_test(explicit_or_not),
		cmocka_unit_test(defaults),    cmocka_unit_test(below),
		cmocka_unit_test(normal_form),
	};

	return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
