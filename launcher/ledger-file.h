/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ledger on disk: one file per machine and user, changed by one process at a time.
 *
 * PATH.lock is locked from open to close. PATH is replaced by rename after its new
 * content is on disk as PATH.new; where a power cut undoes the rename, the next open adds what a
 * complete PATH.new names. What is about to be made is first written to PATH.intent, so
 * that a stub whose maker was killed is known: the next open adds what it finds
 * there to the ledger. A PATH that is no ledger (cut short, too large, no regular file) is renamed
 * to PATH.corrupt; the ledger is then empty.
 *
 * Not thread-safe; messages go to the caller.
 */
#pragma once

#include "ledger.h"

#include <limits.h>
#include <stdbool.h>

typedef struct TnLedgerFile {
	char path[PATH_MAX];
	TnLedger *ledger;
	bool was_corrupt; /* this open has set the file aside */
	bool recovered;   /* this open took something over: save before anything else ends */
	bool has_left;    /* it took PATH.new over, which stays until that is saved */
	int lock_fd, dir_fd, intent_fd;
} TnLedgerFile;

#define TN_LEDGER_FILE_INIT \
	{ \
		.lock_fd = -1, .dir_fd = -1, .intent_fd = -1 \
	}

/*
 * Where the ledger is: explicit path, else TMPNEST_STUBS_LEDGER, else
 * $XDG_STATE_HOME/tmpnest/stubs/ledger.json. -ENAMETOOLONG; -EINVAL not absolute;
 * -ENOENT no home directory.
 */
int tn_ledger_file_path(const char *explicit_path, char ret[PATH_MAX]);

/*
 * Makes the directories (0700), locks, reads. What is no ledger is set aside when its name ends in
 * ".json", else left alone: -EBADMSG. -ETIMEDOUT when another process kept the
 * lock for 20 seconds; other -errno. On success end with tn_ledger_file_close().
 */
int tn_ledger_file_open(TnLedgerFile *file, const char *path);

/*
 * Writes the entries of intents down; they count until the next save. Not synced: that would cost
 * as much as the rest, and a power cut in the milliseconds before the save, which is, leaves at
 * worst an empty stub that nobody was told of. 0 or -errno.
 */
int tn_ledger_file_intend(TnLedgerFile *file, const TnLedger *intents);

/*
 * Replaces the file, and takes intents back. Its entries are on disk, and found by the next open,
 * after a power cut too. 0 or -errno: the old one stands.
 */
int tn_ledger_file_save(TnLedgerFile *file);

/* What such an error means, for a message. */
const char *tn_ledger_file_why(int error);

/* Unlocks and frees; harmless on one that was never opened. */
void tn_ledger_file_close(TnLedgerFile *file);
