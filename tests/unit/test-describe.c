/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A nest's description: what is written is read again; what is broken is refused. */
#include "describe.h"

#include "macros.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

static const TnRegistryConfig config = {.many_owners = true};

typedef struct Fixture {
	TnScratch scratch;
	TnNest *nest;
	size_t fds;
} Fixture;

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));
	TnNestParts parts = {
		.config = &config,
		.id = 0xfedcba9876543210,
		.name = "a.name-1",
		.uid = 1000,
		.gid = 4294967294U,
		.keep = true,
		.no_xattrs = true,
		.bytes = 1ULL << 40,
		.inodes = UINT64_MAX,
		.ttl = 3600,
		.idle_ttl = UINT64_MAX,
		.created_ns = 1700000000123456789,
		.from = {.fd = -1},
		.store = {.ops = &tn_store_dir_ops,
			  .data = -1,
			  .orphans = -1,
			  .mount = -1,
			  .image = -1},
		.policy = tn_policy_new(),
	};

	f->fds = tn_count_fds();
	assert_true(tn_scratch_new(&f->scratch, NULL));
	assert_int_equal(tn_policy_add(parts.policy, "se cret/*", true), 0);
	assert_int_equal(tn_policy_add(parts.policy, "/var/tmp/look", false), 0);
	parts.home = fcntl(f->scratch.dir, F_DUPFD_CLOEXEC, 0);
	parts.store.data = fcntl(f->scratch.dir, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(tn_nest_new(&f->nest, &parts), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_nest_unref(f->nest);
	tn_scratch_remove(&f->scratch);
	assert_int_equal(tn_count_fds(), f->fds);
	free(f);
	return 0;
}

static bool join_rules(const char *pattern, bool deny, bool built_in, void *data)
{
	strcat(strcat(strcat(data, deny ? "d" : "r"), built_in ? "!" : ":"), pattern);
	strcat(data, "\n");
	return true;
}

static void check_whole(const TnDescription *d)
{
	char rules[256] = "", boot[TN_BOOT_ID_MAX];

	assert_int_equal(d->id, 0xfedcba9876543210);
	assert_string_equal(d->name, "a.name-1");
	assert_int_equal(d->uid, 1000);
	assert_int_equal(d->gid, 4294967294U);
	assert_true(d->keep && d->no_xattrs && !d->ephemeral && !d->durable);
	assert_int_equal(d->store, TN_STORE_DIR);
	assert_int_equal(d->bytes, 1ULL << 40);
	assert_int_equal(d->inodes, UINT64_MAX);
	assert_int_equal(d->ttl, 3600);
	assert_int_equal(d->idle_ttl, UINT64_MAX);
	assert_int_equal(d->created_ns, 1700000000123456789);
	tn_boot_id(boot);
	assert_string_equal(d->boot_id, boot);
	assert_int_equal(strlen(boot), 36);
	tn_policy_each(d->policy, join_rules, rules);
	assert_string_equal(rules, "d!/tmp/claude\nd:/tmp/se cret/*\nr:/var/tmp/look\n");
}

static void test_round_trip(void **state)
{
	Fixture *f = *state;
	TnDescription d = {0};

	assert_int_equal(tn_describe_save(f->nest), 0);
	assert_int_equal(tn_describe_save(f->nest), 0); /* over the old one */
	assert_int_equal(tn_describe_load(f->scratch.dir, &d), 0);
	check_whole(&d);
	tn_description_clear(&d);
	tn_description_clear(&d);
}

static void test_missing(void **state)
{
	Fixture *f = *state;
	TnDescription d = {0};

	assert_int_equal(tn_describe_load(f->scratch.dir, &d), -ENOENT);
	assert_int_equal(mkdirat(f->scratch.dir, "nest", 0700), 0);
	assert_true(tn_describe_load(f->scratch.dir, &d) < 0);
	assert_null(d.policy);
}

/* Saves, and reads the text back. */
static size_t saved_text(Fixture *f, char **ret)
{
	ssize_t n;

	assert_int_equal(tn_describe_save(f->nest), 0);
	n = tn_read_file(f->scratch.dir, "nest", 1 << 20, ret);
	assert_true(n > 0);
	return (size_t)n;
}

static int parse_copy(const char *text, size_t size, TnDescription *ret)
{
	TN_AUTOFREE char *copy = malloc(size + 1); /* exactly, for the address sanitizer */

	memcpy(copy, text, size);
	copy[size] = '\0';
	return tn_describe_parse(copy, ret);
}

/* Whatever is cut off: a rule that was lost must not go unnoticed. */
static void test_truncated(void **state)
{
	Fixture *f = *state;
	TN_AUTOFREE char *text = NULL;
	size_t size = saved_text(f, &text);

	for (size_t n = 0; n < size; n++) {
		TnDescription d = {0};
		int r = parse_copy(text, n, &d);

		if (r == 0 && n == size - 1) /* without the last newline all is there */
			check_whole(&d);
		else if (r != -EBADMSG)
			fail_msg("cut to %zu of %zu bytes it gives %d", n, size, r);
		tn_description_clear(&d);
	}
}

static void check_sane(const TnDescription *d)
{
	assert_true(d->id && d->bytes && d->inodes && d->policy);
	assert_true(tn_name_is_valid(d->name));
	assert_non_null(tn_store_ops(d->store));
	assert_true(strlen(d->boot_id) < TN_BOOT_ID_MAX);
	assert_true(d->uid != (uid_t)-1 && d->gid != (gid_t)-1);
}

static void corrupt(char *text, size_t *size, TnDice *dice)
{
	size_t at = tn_dice(dice, *size), n;

	switch (tn_dice(dice, 4)) {
	case 0:
		text[at] = (char)tn_dice(dice, 256);
		break;
	case 1:
		text[at] = (char)(text[at] ^ 1 << tn_dice(dice, 8));
		break;
	case 2: /* bytes go */
		n = 1 + tn_dice(dice, *size - at);
		memmove(text + at, text + at + n, *size - at - n);
		*size -= n;
		break;
	default: /* a part of it stands elsewhere, too */
		n = tn_dice(dice, *size - at);
		memmove(text + tn_dice(dice, *size - n + 1), text + at, n);
	}
	if (*size == 0)
		*size = 1;
}

static void test_corrupted(void **state)
{
	Fixture *f = *state;
	TN_AUTOFREE char *text = NULL, *copy = NULL;
	size_t size = saved_text(f, &text), good = 0;
	TnDice dice = {tn_test_seed()};

	copy = malloc(size + 1);
	for (int round = 0; round < 50000; round++) {
		TnDescription d = {0};
		size_t now = size;
		int r;

		memcpy(copy, text, size + 1);
		for (uint64_t n = tn_dice(&dice, 3); n < 3; n++)
			corrupt(copy, &now, &dice);
		r = parse_copy(copy, now, &d);
		if (r == 0)
			check_sane(&d);
		else
			assert_int_equal(r, -EBADMSG);
		good += r == 0;
		tn_description_clear(&d);
	}
	printf("%zu of 50000 were still descriptions\n", good);
}

static void test_bad_values(void **state)
{
	static const struct {
		const char *line, *instead;
	} rows[] = {
		{"id fedcba9876543210", "id 0"},
		{"id fedcba9876543210", "id 1fedcba9876543210"},
		{"id fedcba9876543210", "id xyz"},
		{"id fedcba9876543210", "id "},
		{"name a.name-1", "name ../x"},
		{"name a.name-1", "name .x"},
		{"name a.name-1", "name "},
		{"uid 1000", "uid -1"},
		{"uid 1000", "uid  -1"},
		{"uid 1000", "uid 4294967295"}, /* chown(2) takes it for "as it is" */
		{"uid 1000", "uid 4294967296"},
		{"gid 4294967294", "gid 4294967295"},
		{"uid 1000", "uid 1000x"},
		{"store dir", "store picture"},
		{"store dir", "store"},
		{"bytes 1099511627776", "bytes 0"},
		{"bytes 1099511627776", "bytes 99999999999999999999"},
		{"keep 1", "keep 2"},
		{"created 1700000000123456789", "created 9223372036854775808"},
		{"deny /tmp/se cret/*", "deny /tmp"},
		{"deny /tmp/se cret/*", "deny /tmp/../x"},
		{"deny /tmp/se cret/*", ""},
		{"tmpnest-nest 1", "tmpnest-nest 2"},
		{"tmpnest-nest 1", "tmpnest-nest 10"},
	};
	Fixture *f = *state;
	TN_AUTOFREE char *text = NULL;

	saved_text(f, &text);
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		const char *at = strstr(text, rows[i].line);
		TN_AUTOFREE char *changed = NULL;
		TnDescription d = {0};
		int r;

		assert_non_null(at);
		assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, rows[i].instead,
				     at + strlen(rows[i].line)) > 0);
		r = tn_describe_parse(changed, &d);
		if (r != -EBADMSG)
			fail_msg("\"%s\" gives %d", rows[i].instead, r);
		tn_description_clear(&d);
	}
}

static void test_unknown_key(void **state)
{
	Fixture *f = *state;
	TN_AUTOFREE char *text = NULL, *changed = NULL;
	TnDescription d = {0};
	const char *at;

	saved_text(f, &text);
	at = strstr(text, "keep 1");
	assert_true(asprintf(&changed, "%.*sfuture some words\n%s", (int)(at - text), text, at) >
		    0);
	assert_int_equal(tn_describe_parse(changed, &d), 0);
	check_whole(&d);
	tn_description_clear(&d);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip), TEST(test_missing),    TEST(test_truncated),
		TEST(test_corrupted),  TEST(test_bad_values), TEST(test_unknown_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
