/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pins.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static TnPin *make(const char *path)
{
	TnPin *pin = NULL;

	assert_int_equal(tn_pin_new(&pin, TN_MOUNT_POINT_DIR, path), 0);
	return pin;
}

static void test_spellings(void **state)
{
	static const struct {
		const char *path;
		int expected;
		TnSubtree subtree;
		const char *joined;
	} cases[] = {
		{"/tmp/a/b", 0, TN_SUBTREE_TMP, "a/b"},
		{"//tmp//a/./b/", 0, TN_SUBTREE_TMP, "a/b"},
		{"/private/tmp/a", 0, TN_SUBTREE_TMP, "a"},
		{"/var/tmp/a", 0, TN_SUBTREE_VAR_TMP, "a"},
		{"/private/var/tmp/a", 0, TN_SUBTREE_VAR_TMP, "a"},
		{"a", 0, TN_SUBTREE_TMP, "a"},
		{"tmp/a", 0, TN_SUBTREE_TMP, "tmp/a"},
		{"/private/a", 0, TN_SUBTREE_TMP, "private/a"},
		{"/tmp", -EINVAL, 0, NULL},
		{"/tmp/", -EINVAL, 0, NULL},
		{"/var/tmp/.", -EINVAL, 0, NULL},
		{"/tmp/a/../b", -EINVAL, 0, NULL},
		{"", -EINVAL, 0, NULL},
		{"/", -EINVAL, 0, NULL},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		char joined[128] = "";
		TnPin *pin = NULL;
		int r = tn_pin_new(&pin, TN_MOUNT_POINT_FILE, cases[i].path);

		if (r != cases[i].expected)
			fail_msg("%s: %d", cases[i].path, r);
		if (r < 0)
			continue;
		for (size_t j = 0; j < pin->n; j++) {
			strcat(joined, j ? "/" : "");
			strcat(joined, pin->components[j]);
		}
		assert_string_equal(joined, cases[i].joined);
		assert_int_equal(pin->subtree, cases[i].subtree);
		tn_pin_free(pin);
	}
}

/* The depth counts below the anchor, however that is spelled: a successor reads it with one. */
static void test_depth(void **state)
{
	static const char *const anchors[] = {"", "/tmp/", "/private/var/tmp/"};
	char path[32 + 2 * (TN_PIN_DEPTH_MAX + 1)];

	for (size_t i = 0; i < TN_ARRAY_LEN(anchors); i++) {
		TnPin *pin = NULL;
		size_t at = (size_t)snprintf(path, sizeof(path), "%s", anchors[i]);

		for (size_t j = 0; j < TN_PIN_DEPTH_MAX; j++)
			at += (size_t)snprintf(path + at, sizeof(path) - at, "d/");
		assert_int_equal(tn_pin_new(&pin, TN_MOUNT_POINT_DIR, path), 0);
		assert_int_equal(pin->n, TN_PIN_DEPTH_MAX);
		tn_pin_free(pin);
		snprintf(path + at, sizeof(path) - at, "d");
		assert_int_equal(tn_pin_new(&pin, TN_MOUNT_POINT_DIR, path), -EINVAL);
	}
}

static bool holds(const TnPinSet *set, const char *path, bool above)
{
	TnPin *place = make(path);
	bool result = tn_pins_hold(set, place->subtree, place->components, place->n, above);

	tn_pin_free(place);
	return result;
}

static void test_hold(void **state)
{
	TnPinSet set = {0};
	TnPin *deep = make("/tmp/a/b/c"), *other = make("/var/tmp/x");

	assert_false(holds(&set, "/tmp/a/b/c", true));
	tn_pins_add(&set, deep);
	tn_pins_add(&set, other);
	assert_int_equal(set.depth, 3);
	assert_true(holds(&set, "/tmp/a/b/c", false));
	assert_false(holds(&set, "/tmp/a/b", false));
	assert_true(holds(&set, "/tmp/a/b", true));
	assert_true(holds(&set, "/tmp/a", true));
	assert_false(holds(&set, "/tmp/ab", true));
	assert_false(holds(&set, "/tmp/a/b/c/d", true));
	assert_true(holds(&set, "/var/tmp/x", false));
	assert_false(holds(&set, "/tmp/x", true));
	assert_ptr_equal(tn_pins_find(&set, deep), deep);
	tn_pins_remove(&set, deep);
	assert_null(tn_pins_find(&set, deep));
	assert_false(holds(&set, "/tmp/a", true));
	tn_pins_remove(&set, other);
	assert_int_equal(set.depth, 0);
	tn_pin_free(deep);
	tn_pin_free(other);
}

/* What another sandbox's bwrap made is nobody's to keep. */
static void test_lasting(void **state)
{
	TnPinSet set = {0};
	TnPin *first = make("/tmp/a/b/c"), *second = make("/tmp/a/b/d"), *third = make("/tmp/z");

	first->made_from = tn_pins_lasting(&set, first, 1); /* a was there */
	assert_int_equal(first->made_from, 1);
	tn_pins_add(&set, first);
	/* a and b exist now, but b is first's. */
	assert_int_equal(tn_pins_lasting(&set, second, 2), 1);
	assert_int_equal(tn_pins_lasting(&set, third, 1), 1);
	assert_int_equal(tn_pins_lasting(&set, third, 0), 0);
	tn_pins_remove(&set, first);
	assert_int_equal(tn_pins_lasting(&set, second, 2), 2);
	tn_pin_free(first);
	tn_pin_free(second);
	tn_pin_free(third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_lasting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
