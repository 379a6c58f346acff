/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any text as a stub ledger. What is read must be sound, be written again, and then be read as the
 * same; the strict reader of entries must agree with jansson.
 */
#include "ledger-entry.h"
#include "ledger.h"
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_readers(const char *text, size_t size)
{
	TnLedger *ledger = tn_ledger_new();
	TnLedgerEntry own = {0}, json = {0};
	size_t taken = tn_ledger_entry_read_own(ledger, text, text + size, &own);

	if (taken > 0) {
		PROMISE(tn_ledger_entry_read_json(ledger, text, taken, &json) == 0);
		PROMISE(strcmp(own.path, json.path) == 0 && strcmp(own.run_id, json.run_id) == 0);
		PROMISE(own.ino == json.ino && own.dev == json.dev && own.kind == json.kind);
		PROMISE(own.ctime_ns == json.ctime_ns && own.btime_ns == json.btime_ns);
		PROMISE(own.holder.pid == json.holder.pid &&
			own.holder.pid_namespace == json.holder.pid_namespace &&
			own.holder.start_time == json.holder.start_time &&
			strcmp(own.holder.boot_id, json.holder.boot_id) == 0);
		PROMISE(!own.holder.lease == !json.holder.lease);
	}
	tn_ledger_free(ledger);
}

static void check_round_trip(TnLedger *ledger, bool changed)
{
	TnLedger *again = NULL;
	char *text = NULL;
	size_t size = 0;

	for (size_t i = 0; i < ledger->n_entries; i++) {
		PROMISE(tn_ledger_entry_is_sound(&ledger->entries[i]));
		ledger->entries[i].changed = changed;
	}
	PROMISE(tn_ledger_serialize(ledger, &text, &size) == 0);
	PROMISE(tn_ledger_parse(text, size, &again) == 0);
	PROMISE(again->n_entries == ledger->n_entries && again->n_malformed == 0);
	for (size_t i = 0; i < again->n_entries; i++) {
		PROMISE(strcmp(again->entries[i].path, ledger->entries[i].path) == 0);
		PROMISE(again->entries[i].ino == ledger->entries[i].ino);
		PROMISE(again->entries[i].holder.pid == ledger->entries[i].holder.pid);
	}
	tn_ledger_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TnLedger *ledger = NULL;
	/* exactly this long, and ended: readers may look one byte ahead */
	char *text = malloc(size + 1);

	if (!text || size > 65536) {
		free(text);
		return 0;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	check_readers(text, size);
	if (tn_ledger_parse(text, size, &ledger) == 0) {
		check_round_trip(ledger, false);
		check_round_trip(ledger, true);
		tn_ledger_free(ledger);
	}
	free(text);
	return 0;
}
