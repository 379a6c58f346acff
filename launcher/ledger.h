/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stub ledger as text: which placeholders lie where, and who holds them.
 *
 * One JSON object {"entries": [ENTRY...]}, one entry per stub and holder: a stub that two
 * sandboxes use has two. The format is shared with another runtime, whose entries carry
 * {path, ino, dev, kind, ctimeMs?, pid, pidNamespace?, bootId?, runId, createdAt}; ours add
 * startTime, ctimeNs and btimeNs (as strings: a JavaScript number would round them), lease,
 * and flags. What others wrote and we do not know is kept, in entries and beside them.
 *
 * A ledger is untrusted input: sandboxed shells may be able to write it. An entry that is
 * malformed is dropped and counted, whatever its neighbours are; a text that is no such
 * object at all is -EBADMSG; one that is too large is -EFBIG.
 *
 * Pure: no I/O. Not thread-safe per object; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TN_LEDGER_TEXT_MAX (8 * 1024 * 1024)
#define TN_LEDGER_ENTRIES_MAX 20000
#define TN_LEDGER_RUN_ID_MAX 256

typedef enum TnStubKind {
	TN_STUB_FILE,
	TN_STUB_DIR,
} TnStubKind;

#define TN_PID_NAMESPACE_ODD UINT64_MAX /* named in a way that we cannot read */

/* Who holds a stub. 0, "" and NULL mean unknown; pid is as seen in pid_namespace. */
typedef struct TnStubHolder {
	int64_t pid;
	uint64_t start_time;    /* clock ticks after boot, proc(5) field 22 */
	uint64_t pid_namespace; /* inode of the namespace */
	char boot_id[40];
	const char *lease; /* FIFO whose writers are the sandbox */
} TnStubHolder;

typedef struct TnLedgerEntry {
	const char *path; /* absolute, normal */
	uint64_t dev, ino;
	TnStubKind kind;
	bool has_ctime_ms;
	double ctime_ms;  /* as a JavaScript stat shows it */
	int64_t ctime_ns; /* 0: unknown */
	int64_t btime_ns; /* 0: unknown */
	TnStubHolder holder;
	const char *run_id;
	int64_t created_ms; /* since the epoch; 0: unknown */
	bool planned;       /* about to be made: ino may be 0, the change time is unknown */
	bool filled;        /* holds the text of tn_stub_text() */
	bool adopted;       /* was another's; goes with the holder's first release */
	bool by_mounts;     /* used while a process of the user has path as a mount point */

	bool changed; /* set it after changing a field of a parsed entry */
	bool dropped; /* set it to remove the entry */
	const char *raw;
	size_t raw_size;
} TnLedgerEntry;

typedef struct TnLedger TnLedger;
struct TnLedger {
	TnLedgerEntry *entries;
	size_t n_entries, n_allocated;
	size_t n_malformed; /* entries that parsing dropped */
	const char *others; /* members of the object beside "entries", as text */
	struct TnLedgerChunk *chunks;
};

TnLedger *tn_ledger_new(void); /* NULL: no memory */
void tn_ledger_free(TnLedger *ledger);
static inline void tn_ledger_free_pointer(TnLedger **ledger)
{
	tn_ledger_free(*ledger);
}
#define TN_AUTOLEDGER __attribute__((cleanup(tn_ledger_free_pointer))) TnLedger *

/* 0, -EBADMSG, -EFBIG or -ENOMEM. An empty text is an empty ledger. */
int tn_ledger_parse(const char *text, size_t size, TnLedger **ret);

/* Room for a text of size bytes that tn_ledger_parse_room() then reads where it is. */
TnLedger *tn_ledger_new_with_room(size_t size, char **ret_room);
int tn_ledger_parse_room(TnLedger *ledger, const char *room, size_t size);

/* Adds a copy. -EINVAL malformed or not UTF-8, -ENOSPC too many, -ENOMEM; ret may be NULL. */
int tn_ledger_add(TnLedger *ledger, const TnLedgerEntry *entry, TnLedgerEntry **ret);

/* A copy of text that lives as long as the ledger. NULL: no memory. */
const char *tn_ledger_string(TnLedger *ledger, const char *text, size_t size);

/* Takes the dropped entries out; the others move, strings stay where they are. */
void tn_ledger_purge(TnLedger *ledger);

/* Writes all entries that are not dropped. 0, -ENOMEM or the error of out. */
int tn_ledger_print(const TnLedger *ledger, FILE *out);

/* The text of all entries that are not dropped; the caller frees it. 0, -ENOMEM, -EFBIG. */
int tn_ledger_serialize(const TnLedger *ledger, char **ret, size_t *ret_size);

/* True when path, kind, ids and strings of an entry are in bounds. */
bool tn_ledger_entry_is_sound(const TnLedgerEntry *entry);
