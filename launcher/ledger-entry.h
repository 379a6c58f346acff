/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One ledger entry as text. Used by ledger.c only; pure.
 *
 * Reading is done twice: a strict reader takes the exact form that tn_ledger_entry_write()
 * makes (a ledger of 1,000 entries is read at every hold, and jansson needs 5 us for
 * each), and jansson takes everything else. Both give the same result for the same text.
 */
#pragma once

#include "ledger.h"

#include <stdio.h>

/*
 * Reads an entry in our own form at text, which must have ended by end. Returns the bytes
 * it took, 0 when the text has another form. Strings are copied into ledger.
 */
size_t tn_ledger_entry_read_own(TnLedger *ledger, const char *text, const char *end,
				TnLedgerEntry *ret);

/* Reads any JSON value of size bytes. 0, -EBADMSG malformed, -ENOMEM. */
int tn_ledger_entry_read_json(TnLedger *ledger, const char *text, size_t size, TnLedgerEntry *ret);

/* Writes the entry; unknown members of raw are kept. 0 or -ENOMEM. */
int tn_ledger_entry_write(FILE *out, const TnLedgerEntry *entry);
