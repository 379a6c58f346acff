/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rules: every spelling of a pattern, and which places they hold for. */
#include "policy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Splits "a/b/c" in place; returns how many. */
static size_t split(char *path, const char *components[], size_t most)
{
	size_t n = 0;

	for (char *at = strtok(path, "/"); at && n < most; at = strtok(NULL, "/"))
		components[n++] = at;
	return n;
}

/* "/tmp/a/b" or "/var/tmp/a" as the node table would name the place. */
static TnVerdict match(const TnPolicy *policy, const char *place)
{
	const char *components[TN_RULE_DEPTH_MAX + 2];
	TnSubtree subtree =
		strncmp(place, "/var/tmp", 8) == 0 ? TN_SUBTREE_VAR_TMP : TN_SUBTREE_TMP;
	char copy[1024];
	size_t n;

	strcpy(copy, place + (subtree == TN_SUBTREE_TMP ? 4 : 8));
	n = split(copy, components, TN_RULE_DEPTH_MAX + 2);
	return tn_policy_match(policy, subtree, components, n);
}

typedef struct Last {
	char pattern[1024];
	bool deny, built_in;
	size_t n;
} Last;

static bool remember(const char *pattern, bool deny, bool built_in, void *data)
{
	Last *last = data;

	strcpy(last->pattern, pattern);
	last->deny = deny;
	last->built_in = built_in;
	last->n++;
	return true;
}

static void test_built_in(void **state)
{
	TnPolicy *policy = tn_policy_new();
	Last last = {.n = 0};

	(void)state;
	tn_policy_each(policy, remember, &last);
	assert_int_equal(last.n, 1);
	assert_string_equal(last.pattern, "/tmp/claude");
	assert_true(last.deny && last.built_in);
	assert_int_equal(match(policy, "/tmp/claude"), TN_DENIED);
	assert_int_equal(match(policy, "/tmp/claude/below/it"), TN_DENIED);
	assert_int_equal(match(policy, "/tmp/claudette"), TN_ALLOWED);
	assert_int_equal(match(policy, "/tmp/x/claude"), TN_ALLOWED);
	assert_int_equal(match(policy, "/tmp/Claude"), TN_ALLOWED);
	assert_int_equal(match(policy, "/var/tmp/claude"), TN_ALLOWED);
	assert_int_equal(match(policy, "/tmp"), TN_ALLOWED);
	assert_false(tn_policy_has_read_only(policy));
	assert_int_equal(tn_policy_depth(policy), 1);
	tn_policy_free(policy);
	tn_policy_free(NULL);
}

static void test_spellings(void **state)
{
	static const struct {
		const char *pattern, *absolute; /* NULL: -EINVAL */
	} rows[] = {
		{"x", "/tmp/x"},
		{"/x", "/tmp/x"},
		{"//x", "/tmp/x"},
		{"x/", "/tmp/x"},
		{"x//", "/tmp/x"},
		{"/tmp/x", "/tmp/x"},
		{"//tmp//x/", "/tmp/x"},
		{"/tmp///x///y//", "/tmp/x/y"},
		{"/private/tmp/x", "/tmp/x"},
		{"//private//tmp//x", "/tmp/x"},
		{"/private/var/tmp/x", "/var/tmp/x"},
		{"/var/tmp/x", "/var/tmp/x"},
		{"/var//tmp/x/y", "/var/tmp/x/y"},
		{"/var/tmpx", "/tmp/var/tmpx"},
		{"/tmpx/y", "/tmp/tmpx/y"},
		{"/tmp/tmp/x", "/tmp/tmp/x"},
		{"tmp/x", "/tmp/tmp/x"},
		{"/private/x", "/tmp/private/x"},
		{"a*b", "/tmp/a*b"},
		{"a?/[bc]*/d", "/tmp/a?/[bc]*/d"},
		{"..x", "/tmp/..x"},
		{"x..", "/tmp/x.."},
		{".x", "/tmp/.x"},
		{"...", "/tmp/..."},
		{" x ", "/tmp/ x "},
		{"\xff\xfe", "/tmp/\xff\xfe"},
		{"a\\b", "/tmp/a\\b"},
		{"", NULL},
		{"/", NULL},
		{"///", NULL},
		{"/tmp", NULL},
		{"/tmp/", NULL},
		{"//tmp//", NULL},
		{"/var/tmp", NULL},
		{"/var/tmp/", NULL},
		{"/private/tmp", NULL},
		{"/private/tmp/", NULL},
		{"/private/var/tmp", NULL},
		{".", NULL},
		{"..", NULL},
		{"./x", NULL},
		{"../x", NULL},
		{"x/.", NULL},
		{"x/..", NULL},
		{"x/../y", NULL},
		{"x/./y", NULL},
		{"/tmp/../x", NULL},
		{"/tmp/./x", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TnPolicy *policy = tn_policy_new();
		Last last = {.n = 0};
		int r = tn_policy_add(policy, rows[i].pattern, true);

		if (r != (rows[i].absolute ? 0 : -EINVAL))
			fail_msg("\"%s\" gives %d", rows[i].pattern, r);
		tn_policy_each(policy, remember, &last);
		assert_int_equal(last.n, rows[i].absolute ? 2 : 1);
		if (rows[i].absolute) {
			assert_string_equal(last.pattern, rows[i].absolute);
			assert_false(last.built_in);
		}
		tn_policy_free(policy);
	}
}

static void test_sizes(void **state)
{
	TnPolicy *policy = tn_policy_new();
	char text[600];

	(void)state;
	memset(text, 'n', sizeof(text));
	text[255] = '\0';
	assert_int_equal(tn_policy_add(policy, text, true), 0);
	text[255] = 'n';
	text[256] = '\0';
	assert_int_equal(tn_policy_add(policy, text, true), -EINVAL);
	for (size_t i = 0; i < TN_RULE_DEPTH_MAX; i++)
		memcpy(text + 2 * i, "d/", 3);
	assert_int_equal(tn_policy_add(policy, text, true), 0);
	assert_int_equal(tn_policy_depth(policy), TN_RULE_DEPTH_MAX);
	strcat(text, "d");
	assert_int_equal(tn_policy_add(policy, text, true), -EINVAL);
	assert_int_equal(tn_policy_depth(policy), TN_RULE_DEPTH_MAX);
	tn_policy_free(policy);
}

static void test_most(void **state)
{
	TnPolicy *policy = tn_policy_new();
	char text[32];

	(void)state;
	for (int i = 1; i < TN_RULES_MAX; i++) {
		snprintf(text, sizeof(text), "rule-%d", i);
		assert_int_equal(tn_policy_add(policy, text, i % 2), 0);
	}
	assert_int_equal(tn_policy_add(policy, "one-more", true), -E2BIG);
	assert_int_equal(match(policy, "/tmp/rule-1023"), TN_DENIED);
	assert_int_equal(match(policy, "/tmp/one-more"), TN_ALLOWED);
	tn_policy_free(policy);
}

static void test_repeated(void **state)
{
	TnPolicy *policy = tn_policy_new();
	Last last = {.n = 0};

	(void)state;
	assert_int_equal(tn_policy_add(policy, "/private/tmp/claude", true), 0);
	assert_int_equal(tn_policy_add(policy, "claude/", true), 0);
	tn_policy_each(policy, remember, &last);
	assert_int_equal(last.n, 1);
	assert_true(last.built_in);
	/* Another kind is another rule; the strictest counts. */
	assert_int_equal(tn_policy_add(policy, "claude", false), 0);
	last.n = 0;
	tn_policy_each(policy, remember, &last);
	assert_int_equal(last.n, 2);
	assert_int_equal(match(policy, "/tmp/claude"), TN_DENIED);
	assert_true(tn_policy_has_read_only(policy));
	tn_policy_free(policy);
}

static void test_match(void **state)
{
	static const struct {
		const char *pattern, *place;
		bool matches;
	} rows[] = {
		{"x", "/tmp/x", true},
		{"x", "/tmp/x/y/z", true},
		{"x", "/tmp/xx", false},
		{"x", "/tmp/y/x", false},
		{"x", "/var/tmp/x", false},
		{"/var/tmp/x", "/var/tmp/x", true},
		{"/var/tmp/x", "/tmp/x", false},
		{"x/y", "/tmp/x", false},
		{"x/y", "/tmp/x/y", true},
		{"x/y", "/tmp/x/z", false},
		{"*", "/tmp/anything", true},
		{"*", "/tmp/.hidden", true},
		{"*.sock", "/tmp/a.sock", true},
		{"*.sock", "/tmp/d/a.sock", false},
		{"*/a", "/tmp/d/a", true},
		{"*/a", "/tmp/a", false},
		{"*/a", "/tmp/d/e/a", false},
		{"a?c", "/tmp/abc", true},
		{"a?c", "/tmp/ac", false},
		{"[ab]x", "/tmp/bx", true},
		{"[!ab]x", "/tmp/bx", false},
		{"[ab", "/tmp/[ab", true},   /* no class without its end */
		{"a\\*", "/tmp/a\\b", true}, /* a backslash is only a backslash */
		{"a\\*", "/tmp/a*", false},
		{"a\\b", "/tmp/a\\b", true},
		{"a\\b", "/tmp/ab", false},
		{"*", "/tmp/\xff\xfe", true},
		{"\xc3*", "/tmp/\xc3\xa9", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int deny = 0; deny < 2; deny++) {
			TnPolicy *policy = tn_policy_new();
			TnVerdict expected = !rows[i].matches ? TN_ALLOWED
					     : deny           ? TN_DENIED
							      : TN_READ_ONLY;
			TnVerdict verdict;

			assert_int_equal(tn_policy_add(policy, rows[i].pattern, deny), 0);
			verdict = match(policy, rows[i].place);
			if (verdict != expected)
				fail_msg("%s on %s: %d", rows[i].pattern, rows[i].place, verdict);
			tn_policy_free(policy);
		}
	}
}

static void test_strictest(void **state)
{
	TnPolicy *policy = tn_policy_new();

	(void)state;
	assert_int_equal(tn_policy_add(policy, "a", false), 0);
	assert_int_equal(tn_policy_add(policy, "a/b", true), 0);
	assert_int_equal(tn_policy_add(policy, "a/b/c", false), 0);
	assert_int_equal(match(policy, "/tmp/a"), TN_READ_ONLY);
	assert_int_equal(match(policy, "/tmp/a/x"), TN_READ_ONLY);
	assert_int_equal(match(policy, "/tmp/a/b"), TN_DENIED);
	assert_int_equal(match(policy, "/tmp/a/b/c"), TN_DENIED);
	tn_policy_free(policy);
}

/* --- rules below a place ------------------------------------------------------------------ */

typedef struct Below {
	char text[1024];
	bool stop;
} Below;

static bool note_below(const char *const *pattern, size_t n, TnVerdict verdict, void *data)
{
	Below *below = data;

	strcat(below->text, verdict == TN_DENIED ? "d:" : "r:");
	for (size_t i = 0; i < n; i++) {
		strcat(below->text, i ? "/" : "");
		strcat(below->text, pattern[i]);
	}
	strcat(below->text, " ");
	return below->stop;
}

static bool each_below(const TnPolicy *policy, TnSubtree subtree, const char *place, Below *below)
{
	const char *components[TN_RULE_DEPTH_MAX];
	char copy[256];

	strcpy(copy, place);
	below->text[0] = '\0';
	return tn_policy_each_below(policy, subtree, components,
				    split(copy, components, TN_RULE_DEPTH_MAX), note_below, below);
}

static void test_below(void **state)
{
	TnPolicy *policy = tn_policy_new();
	Below below = {.stop = false};

	(void)state;
	assert_int_equal(tn_policy_add(policy, "a/b/c", true), 0);
	assert_int_equal(tn_policy_add(policy, "*/x", false), 0);
	assert_int_equal(tn_policy_add(policy, "/var/tmp/a/v", true), 0);
	assert_false(each_below(policy, TN_SUBTREE_TMP, "", &below));
	assert_string_equal(below.text, "d:claude d:a/b/c r:*/x ");
	assert_false(each_below(policy, TN_SUBTREE_TMP, "a", &below));
	assert_string_equal(below.text, "d:b/c r:x ");
	assert_false(each_below(policy, TN_SUBTREE_TMP, "a/b", &below));
	assert_string_equal(below.text, "d:c ");
	assert_false(each_below(policy, TN_SUBTREE_TMP, "a/b/c", &below)); /* not strictly below */
	assert_string_equal(below.text, "");
	assert_false(each_below(policy, TN_SUBTREE_TMP, "other", &below));
	assert_string_equal(below.text, "r:x ");
	assert_false(each_below(policy, TN_SUBTREE_VAR_TMP, "a", &below));
	assert_string_equal(below.text, "d:v ");
	below.stop = true;
	assert_true(each_below(policy, TN_SUBTREE_TMP, "a", &below));
	assert_string_equal(below.text, "d:b/c ");
	tn_policy_free(policy);
}

static bool count_rule(const char *pattern, bool deny, bool built_in, void *data)
{
	(void)pattern;
	(void)deny;
	(void)built_in;
	++*(size_t *)data;
	return true;
}

static size_t count_rules(const TnPolicy *policy)
{
	size_t n = 0;

	tn_policy_each(policy, count_rule, &n);
	return n;
}

static void test_copy_and_remove(void **state)
{
	const char *const place[] = {"a", "b", "c"};
	TnPolicy *policy = tn_policy_new(), *copy;

	(void)state;
	assert_int_equal(tn_policy_add(policy, "a/b/c", true), 0);
	assert_int_equal(tn_policy_add(policy, "a", false), 0);
	copy = tn_policy_copy(policy);
	assert_int_equal(count_rules(copy), 3);
	assert_int_equal(tn_policy_remove(copy, "a/b/c", false), -ENOENT);
	assert_int_equal(tn_policy_remove(copy, "..", true), -EINVAL);
	assert_int_equal(tn_policy_remove(copy, "/private/tmp/claude", true), -EPERM);
	assert_int_equal(tn_policy_remove(copy, "/tmp//a/b/c/", true), 0);
	assert_int_equal(tn_policy_match(copy, TN_SUBTREE_TMP, place, 3), TN_READ_ONLY);
	assert_int_equal(tn_policy_depth(copy), 1);
	assert_true(tn_policy_has_read_only(copy));
	assert_int_equal(tn_policy_remove(copy, "a", false), 0);
	assert_false(tn_policy_has_read_only(copy));
	assert_int_equal(count_rules(copy), 1);
	/* the original is as it was */
	assert_int_equal(tn_policy_match(policy, TN_SUBTREE_TMP, place, 3), TN_DENIED);
	assert_int_equal(count_rules(policy), 3);
	tn_policy_free(copy);
	tn_policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy_and_remove),
		cmocka_unit_test(test_built_in),
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_most),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_strictest),
		cmocka_unit_test(test_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
