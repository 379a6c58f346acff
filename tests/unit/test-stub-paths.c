/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "macros.h"
#include "stub-paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *profiles_dir(void)
{
	assert_non_null(getenv("TMPNEST_STUBS_PROFILES"));
	return getenv("TMPNEST_STUBS_PROFILES");
}

static TnStubProfile load(const char *name)
{
	TnStubProfile profile = {0};
	char why[256] = "";

	if (tn_stub_profile_load(profiles_dir(), name, &profile, why, sizeof(why)) < 0)
		fail_msg("%s: %s", name, why);
	return profile;
}

static bool has(const TnStubPaths *paths, const char *path)
{
	for (size_t i = 0; i < paths->n_paths; i++) {
		if (strcmp(paths->paths[i], path) == 0)
			return true;
	}
	return false;
}

static const char *const two_roots[] = {"/home/u/work", "/srv"};

static void test_places(void **state)
{
	TnStubProfile profile = load("builtin");
	TnStubPlaces places = {.cwd = "/home/u/work/a/b",
			       .home = "/home/u",
			       .writable = two_roots,
			       .n_writable = 2};
	TnStubPaths paths;

	assert_int_equal(tn_stub_paths_expand(&profile, &places, &paths), 0);
	/* the working directory */
	assert_true(has(&paths, "/home/u/work/a/b/.bashrc"));
	assert_true(has(&paths, "/home/u/work/a/b/.git/config.worktree"));
	assert_false(has(&paths, "/home/u/work/a/.bashrc"));
	/* the project set, upwards as far as it is writable */
	assert_true(has(&paths, "/home/u/work/a/b/.claude/settings.local.json"));
	assert_true(has(&paths, "/home/u/work/a/.claude"));
	assert_true(has(&paths, "/home/u/work/.mcp.json"));
	assert_false(has(&paths, "/home/u/.claude"));
	assert_false(has(&paths, "/srv/.claude"));
	/* the home directory */
	assert_true(has(&paths, "/home/u/.mcp.json"));
	assert_true(has(&paths, "/home/u/.claude/CLAUDE.md"));
	assert_true(has(&paths, "/home/u/.claude-custom-oauth.json"));
	assert_true(has(&paths, "/home/u/.claude/.claude-staging-oauth.json"));
	assert_true(has(&paths, "/home/u/.claude/.claude.json"));
	/* state that the agent writes itself */
	assert_false(has(&paths, "/home/u/.claude.json"));
	assert_false(has(&paths, "/home/u/.claude/projects"));
	assert_false(has(&paths, "/home/u/work/a/b/.git/config.lock"));
	tn_stub_paths_clear(&paths);

	places.config_dir = "/etc/agent";
	assert_int_equal(tn_stub_paths_expand(&profile, &places, &paths), 0);
	assert_true(has(&paths, "/etc/agent/policy-limits.json"));
	assert_true(has(&paths, "/etc/agent/.claude-local-oauth.json"));
	assert_false(has(&paths, "/etc/agent/.claude.json"));
	assert_false(has(&paths, "/home/u/.claude-local-oauth.json"));
	assert_false(has(&paths, "/home/u/.claude/.claude.json"));
	tn_stub_paths_clear(&paths);
	tn_stub_profile_clear(&profile);
}

static void test_order_and_kinds(void **state)
{
	TnStubProfile profile = load("builtin");
	TnStubPlaces places = {.cwd = "/w", .home = "/w"};
	TnStubPaths paths;

	assert_int_equal(tn_stub_paths_expand(&profile, &places, &paths), 0);
	for (size_t i = 1; i < paths.n_paths; i++)
		assert_true(strcmp(paths.paths[i - 1], paths.paths[i]) < 0);
	assert_int_equal(tn_stub_kind_of(&profile, "/w/.claude"), TN_STUB_DIR);
	assert_int_equal(tn_stub_kind_of(&profile, "/w/.claude/agents"), TN_STUB_FILE);
	assert_int_equal(tn_stub_kind_of(&profile, "/w/.vscode"), TN_STUB_FILE);
	tn_stub_paths_clear(&paths);
	tn_stub_profile_clear(&profile);
}

static void test_root_is_a_place(void **state)
{
	static const char *const root[] = {"/"};
	TnStubProfile profile = load("builtin");
	TnStubPlaces places = {.cwd = "/w", .home = "/", .writable = root, .n_writable = 1};
	TnStubPaths paths;

	assert_int_equal(tn_stub_paths_expand(&profile, &places, &paths), 0);
	assert_true(has(&paths, "/.mcp.json"));
	assert_true(has(&paths, "/.claude/settings.json"));
	tn_stub_paths_clear(&paths);
	tn_stub_profile_clear(&profile);
}

static void test_names(void **state)
{
	TnStubNames names;

	tn_stub_names_load(&names, profiles_dir());
	assert_true(tn_stub_names_has(&names, "/anywhere/.bashrc"));
	assert_true(tn_stub_names_has(&names, "/anywhere/.tmpnest-stub"));
	assert_true(tn_stub_names_has(&names, "/x/settings.json"));
	/* of the second profile */
	assert_true(tn_stub_names_has(&names, "/x/policy-limits.json.signature.json"));
	assert_false(tn_stub_names_has(&names, "/x/id_rsa"));
	assert_false(tn_stub_names_has(&names, "/.bashrc/x"));
	tn_stub_names_clear(&names);
	/* those that are built in are known without any file */
	tn_stub_names_load(&names, "/var/empty/nowhere");
	assert_true(tn_stub_names_has(&names, "/x/.bashrc"));
	assert_false(tn_stub_names_has(&names, "/x/id_rsa"));
	tn_stub_names_clear(&names);
}

static void test_texts(void **state)
{
	assert_string_equal(tn_stub_text("/x/a.json"), "{}");
	assert_int_equal(tn_stub_text("/x/.json.d/.bashrc")[0], '#');
	assert_int_equal(tn_stub_text("/x/CLAUDE.md")[0], '#');
}

#define HEAD "{\"name\":\"n\",\"source\":\"s\",\"version\":\"1\",\"directories\":[\".claude\"],"

static void test_bad_profiles(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		HEAD "\"sets\":{}}",
		HEAD "\"sets\":[{\"where\":\"moon\",\"paths\":[]}]}",
		HEAD "\"sets\":[{\"where\":\"cwd\"}]}",
		HEAD "\"sets\":[{\"where\":\"cwd\",\"paths\":[1]}]}",
		HEAD "\"sets\":[{\"where\":\"cwd\",\"paths\":[\"\"]}]}",
		HEAD "\"sets\":[{\"where\":\"cwd\",\"paths\":[\"../x\"]}]}",
		HEAD "\"sets\":[{\"where\":\"cwd\",\"paths\":[\"/etc/passwd\"]}]}",
		HEAD "\"sets\":[{\"where\":\"cwd\",\"paths\":[\"a/../../x\"]}]}",
		HEAD "\"sets\":[],\"also_denied\":[{\"where\":\"x\",\"paths\":[]}]}",
	};
	TnStubProfile profile = {0};
	char why[256];

	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++) {
		why[0] = '\0';
		if (tn_stub_profile_parse(bad[i], strlen(bad[i]), &profile, why, sizeof(why)) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_true(why[0] != '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),          cmocka_unit_test(test_order_and_kinds),
		cmocka_unit_test(test_root_is_a_place), cmocka_unit_test(test_names),
		cmocka_unit_test(test_texts),           cmocka_unit_test(test_bad_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
