/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger-entry.h"
#include "ledger.h"
#include "macros.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOREIGN \
	"{\"path\":\"/w/.bashrc\",\"ino\":7,\"dev\":8,\"kind\":\"file\",\"ctimeMs\":12.5," \
	"\"pid\":9,\"pidNamespace\":\"pid:[4026531836]\",\"bootId\":\"b\",\"runId\":\"r\"," \
	"\"createdAt\":\"2026-01-01T00:00:00.000Z\",\"extra\":{\"deep\":[1,2]}}"

static TnLedger *parse(const char *text)
{
	TnLedger *ledger = NULL;

	assert_int_equal(tn_ledger_parse(text, strlen(text), &ledger), 0);
	return ledger;
}

static char *serialize(const TnLedger *ledger)
{
	char *text = NULL;
	size_t size = 0;

	assert_int_equal(tn_ledger_serialize(ledger, &text, &size), 0);
	assert_int_equal(strlen(text), size);
	return text;
}

static void test_foreign_entry(void **state)
{
	TN_AUTOLEDGER ledger = parse("{\"version\":3,\"entries\":[" FOREIGN "],\"more\":[\"]\"]}");
	TN_AUTOFREE char *text = serialize(ledger);
	const TnLedgerEntry *entry = &ledger->entries[0];

	assert_int_equal(ledger->n_entries, 1);
	assert_string_equal(entry->path, "/w/.bashrc");
	assert_int_equal(entry->ino, 7);
	assert_int_equal(entry->dev, 8);
	assert_int_equal(entry->kind, TN_STUB_FILE);
	assert_true(entry->has_ctime_ms && entry->ctime_ms > 12.49 && entry->ctime_ms < 12.51);
	assert_int_equal(entry->holder.pid, 9);
	assert_int_equal(entry->holder.pid_namespace, 4026531836);
	assert_string_equal(entry->holder.boot_id, "b");
	assert_string_equal(entry->run_id, "r");
	/* what we do not know is kept, in the entry and beside it */
	assert_non_null(strstr(text, FOREIGN));
	assert_non_null(strstr(text, "\"version\":3"));
	assert_non_null(strstr(text, "\"more\":[\"]\"]"));
}

static void test_changed_foreign_entry_keeps_its_members(void **state)
{
	TN_AUTOLEDGER ledger = parse("{\"entries\":[" FOREIGN "]}");
	TN_AUTOLEDGER again = NULL;
	TN_AUTOFREE char *text = NULL;

	ledger->entries[0].holder.pid = 10;
	ledger->entries[0].adopted = true;
	ledger->entries[0].changed = true;
	text = serialize(ledger);
	assert_non_null(strstr(text, "\"extra\":{\"deep\":[1,2]}"));
	again = parse(text);
	assert_int_equal(again->entries[0].holder.pid, 10);
	assert_true(again->entries[0].adopted);
}

/* Each is dropped by itself; the sound ones around it stay. */
static void test_malformed_entries(void **state)
{
	static const char *const bad[] = {
		"1",
		"null",
		"\"x\"",
		"[]",
		"{}",
		"{\"path\":5}",
		/* paths */
		"{\"path\":\"relative\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":"
		"\"r\"}",
		"{\"path\":\"/a/../"
		"b\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/a//"
		"b\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/a/"
		".\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/a/"
		"\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\\u0000b\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		/* numbers */
		"{\"path\":\"/"
		"a\",\"ino\":-1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\",\"ino\":1.5,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\",\"ino\":1e999,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\",\"ino\":99999999999999999999999,\"dev\":1,\"kind\":\"file\",\"pid\":1,"
		"\"runId\":\"r\"}",
		"{\"path\":\"/a\",\"ino\":0,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\",\"ino\":\"0x1\",\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\",\"ino\":1,\"dev\":true,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":0,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":-5,\"runId\":\"r\"}",
		"{\"path\":\"/"
		"a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":4294967297,\"runId\":\"r\"}",
		/* words */
		"{\"path\":\"/"
		"a\",\"ino\":1,\"dev\":1,\"kind\":\"socket\",\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/a\",\"ino\":1,\"dev\":1,\"pid\":1,\"runId\":\"r\"}",
		"{\"path\":\"/a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1}",
		"{\"path\":\"/a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"\"}",
		"{\"path\":\"/a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":7}",
		"{\"path\":\"/"
		"a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\",\"lease\":4}",
		"{\"path\":\"/a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\","
		"\"lease\":\"../x\"}",
		"{\"path\":\"/"
		"a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\",\"bootId\":4}",
		"{\"path\":\"/"
		"a\",\"ino\":1,\"dev\":1,\"kind\":\"file\",\"pid\":1,\"runId\":\"r\",\"ctimeMs\":{}"
		"}",
		/* well bracketed, but no JSON */
		"{\"path\":/a}",
		"{,}",
		"[}x{]",
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++) {
		TN_AUTOLEDGER ledger = NULL;
		char text[4096];
		int result;

		snprintf(text, sizeof(text), "{\"entries\":[%s,%s,%s]}", FOREIGN, bad[i], FOREIGN);
		result = tn_ledger_parse(text, strlen(text), &ledger);
		if (strcmp(bad[i], "[}x{]") == 0) {
			assert_int_equal(result, -EBADMSG);
			continue;
		}
		if (result != 0 || ledger->n_entries != 2 || ledger->n_malformed != 1)
			print_error("case %zu: %s\n", i, bad[i]);
		assert_int_equal(result, 0);
		assert_int_equal(ledger->n_entries, 2);
		assert_int_equal(ledger->n_malformed, 1);
	}
}

static void test_corrupt_texts(void **state)
{
	static const char *const bad[] = {
		"x",
		"[]",
		"{",
		"{\"entries\":",
		"{\"entries\":[",
		"{\"entries\":[" FOREIGN,
		"{\"entries\":[" FOREIGN ",",
		"{\"entries\":[" FOREIGN "]",
		"{\"entries\":[" FOREIGN "]}x",
		"{\"entries\":{}}",
		"{\"entries\":[],\"entries\":[]}",
		"{\"entries\":[],}",
		"{\"entries\":[,]}",
		"{\"a\":nul}",
		"{\"a\":[}",
		"{\"a\" 1}",
		"{a:1}",
		"{\"a\":\"unended}",
	};
	TnLedger *ledger = NULL;

	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++) {
		if (tn_ledger_parse(bad[i], strlen(bad[i]), &ledger) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
	}
	assert_int_equal(tn_ledger_parse("{}\0", 3, &ledger), -EBADMSG);
}

static void test_every_cut_is_corrupt(void **state)
{
	static const char text[] = "{\"entries\":[" FOREIGN "],\"more\":{\"a\":[\"\\\"]}\"]}}";
	TnLedger *ledger = NULL;

	for (size_t size = 1; size < sizeof(text) - 1; size++)
		assert_int_equal(tn_ledger_parse(text, size, &ledger), -EBADMSG);
	assert_int_equal(tn_ledger_parse(text, sizeof(text) - 1, &ledger), 0);
	tn_ledger_free(ledger);
}

static void test_nothing_is_an_empty_ledger(void **state)
{
	static const char *const texts[] = {"", " \n", "{}", "{\"entries\":[]}"};

	for (size_t i = 0; i < TN_ARRAY_LEN(texts); i++) {
		TN_AUTOLEDGER ledger = parse(texts[i]);

		assert_int_equal(ledger->n_entries, 0);
	}
}

static void test_limits(void **state)
{
	char *text = malloc(TN_LEDGER_TEXT_MAX + 2);
	TnLedger *ledger = NULL;
	size_t used;

	assert_non_null(text);
	memset(text, ' ', TN_LEDGER_TEXT_MAX + 1);
	assert_int_equal(tn_ledger_parse(text, TN_LEDGER_TEXT_MAX + 1, &ledger), -EFBIG);
	/* nested without end */
	used = (size_t)sprintf(text, "{\"entries\":[");
	memset(text + used, '[', 100000);
	assert_int_equal(tn_ledger_parse(text, used + 100000, &ledger), -EBADMSG);
	/* more entries than anybody has */
	used = (size_t)sprintf(text, "{\"entries\":[");
	for (int i = 0; i <= TN_LEDGER_ENTRIES_MAX; i++)
		used += (size_t)sprintf(text + used, "%s" FOREIGN, i ? "," : "");
	used += (size_t)sprintf(text + used, "]}");
	assert_true(used < TN_LEDGER_TEXT_MAX);
	assert_int_equal(tn_ledger_parse(text, used, &ledger), -EFBIG);
	free(text);
}

static TnLedgerEntry sample(uint32_t random)
{
	static const char *const paths[] = {"/w/.bashrc", "/w/with \"quotes\" and \\",
					    "/w/\xc3\xa9", "/w/line\nbreak", "/w/.claude"};
	TnLedgerEntry entry = {
		.path = paths[random % 5],
		.dev = 65024,
		.ino = random & 8 ? 1 + random : UINT64_C(9007199254740993),
		.kind = random & 16 ? TN_STUB_DIR : TN_STUB_FILE,
		.has_ctime_ms = random & 32,
		.ctime_ms = random & 32 ? 1798412341234.5679 : 0,
		.ctime_ns = random & 32 ? INT64_C(1798412341234567812) : 0,
		.btime_ns = random & 64 ? INT64_C(1798412341234567811) : 0,
		.holder = {.pid = 1 + random % 1000,
			   .start_time = random & 128 ? random : 0,
			   .pid_namespace = random & 256 ? 4026531836 : 0},
		.run_id = random & 512 ? "a run" : "r\xc3\xbcn \"x\"",
		.created_ms = random & 1024 ? 1798412341234 : 0,
		.planned = random & 2048,
		.filled = random & 4096,
		.adopted = random & 8192,
		.by_mounts = random & 16384,
	};

	if (random & 32768)
		strcpy(entry.holder.boot_id, "ad8f7a2c-1111-2222-3333-444455556666");
	if (random & 65536)
		entry.holder.lease = "/run/tmpnest/leases/1";
	return entry;
}

static void assert_same(const TnLedgerEntry *a, const TnLedgerEntry *b)
{
	assert_string_equal(a->path, b->path);
	assert_string_equal(a->run_id, b->run_id);
	assert_int_equal(a->dev, b->dev);
	assert_int_equal(a->ino, b->ino);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->has_ctime_ms, b->has_ctime_ms);
	assert_memory_equal(&a->ctime_ms, &b->ctime_ms, sizeof(double));
	assert_int_equal(a->ctime_ns, b->ctime_ns);
	assert_int_equal(a->btime_ns, b->btime_ns);
	assert_int_equal(a->holder.pid, b->holder.pid);
	assert_int_equal(a->holder.start_time, b->holder.start_time);
	assert_int_equal(a->holder.pid_namespace, b->holder.pid_namespace);
	assert_string_equal(a->holder.boot_id, b->holder.boot_id);
	assert_int_equal(!a->holder.lease, !b->holder.lease);
	if (a->holder.lease)
		assert_string_equal(a->holder.lease, b->holder.lease);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->planned, b->planned);
	assert_int_equal(a->filled, b->filled);
	assert_int_equal(a->adopted, b->adopted);
	assert_int_equal(a->by_mounts, b->by_mounts);
}

/* What we write, both readers read alike, and as it was. */
static void test_both_readers_agree(void **state)
{
	uint32_t random = 2463534242;
	size_t n_own = 0;

	for (int i = 0; i < 20000; i++) {
		TN_AUTOLEDGER ledger = tn_ledger_new();
		TN_AUTOFREE char *text = NULL;
		TnLedgerEntry entry, own, json;
		size_t size = 0, taken;
		FILE *out = open_memstream(&text, &size);

		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		entry = sample(random);
		assert_int_equal(tn_ledger_entry_write(out, &entry), 0);
		fclose(out);
		assert_int_equal(tn_ledger_entry_read_json(ledger, text, size, &json), 0);
		assert_same(&json, &entry);
		taken = tn_ledger_entry_read_own(ledger, text, text + size, &own);
		if (taken > 0) {
			assert_int_equal(taken, size);
			assert_same(&own, &entry);
			n_own++;
		}
	}
	/* the fast reader is there for the ordinary case */
	assert_true(n_own > 3000);
}

/* A text changed in one place is either refused by the strict reader or read as by jansson. */
static void test_strict_reader_is_strict(void **state)
{
	uint32_t random = 88172645;
	size_t n_taken = 0;

	for (int i = 0; i < 60000; i++) {
		TN_AUTOLEDGER ledger = tn_ledger_new();
		TN_AUTOFREE char *text = NULL;
		TnLedgerEntry entry = sample(0x1ffa8), own, json;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		assert_int_equal(tn_ledger_entry_write(out, &entry), 0);
		fclose(out);
		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		text[(random >> 8) % size] = "\"\\{}[],:.0123456789eE-+ atruefals\n"[random % 35];
		size = tn_ledger_entry_read_own(ledger, text, text + size, &own);
		if (size == 0)
			continue;
		n_taken++;
		assert_int_equal(tn_ledger_entry_read_json(ledger, text, size, &json), 0);
		assert_same(&own, &json);
	}
	assert_true(n_taken > 1000);
}

static void test_untouched_entries_keep_their_bytes(void **state)
{
	TN_AUTOLEDGER ledger = tn_ledger_new();
	TN_AUTOLEDGER second = NULL;
	TN_AUTOFREE char *first_text = NULL, *second_text = NULL;

	for (uint32_t i = 1; i < 50; i++) {
		TnLedgerEntry entry = sample(i * 2654435761u);

		assert_int_equal(tn_ledger_add(ledger, &entry, NULL), 0);
	}
	first_text = serialize(ledger);
	second = parse(first_text);
	second_text = serialize(second);
	assert_string_equal(first_text, second_text);
	free(second_text);
	second->entries[0].dropped = true;
	second->entries[20].dropped = true;
	second->entries[48].dropped = true;
	second_text = serialize(second);
	assert_int_equal(second->n_entries, 49);
	tn_ledger_free(second);
	second = parse(second_text);
	assert_int_equal(second->n_entries, 46);
	assert_int_equal(second->n_malformed, 0);
}

static void test_add_refuses_what_cannot_be_read_back(void **state)
{
	TN_AUTOLEDGER ledger = tn_ledger_new();
	TnLedgerEntry entry = sample(8);

	entry.path = "/w/\xff\xfe";
	assert_int_equal(tn_ledger_add(ledger, &entry, NULL), -EINVAL);
	entry.path = "w";
	assert_int_equal(tn_ledger_add(ledger, &entry, NULL), -EINVAL);
	assert_int_equal(ledger->n_entries, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign_entry),
		cmocka_unit_test(test_changed_foreign_entry_keeps_its_members),
		cmocka_unit_test(test_malformed_entries),
		cmocka_unit_test(test_corrupt_texts),
		cmocka_unit_test(test_every_cut_is_corrupt),
		cmocka_unit_test(test_nothing_is_an_empty_ledger),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_both_readers_agree),
		cmocka_unit_test(test_strict_reader_is_strict),
		cmocka_unit_test(test_untouched_entries_keep_their_bytes),
		cmocka_unit_test(test_add_refuses_what_cannot_be_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
