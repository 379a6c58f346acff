/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * File-system operations, one table row each, strict: what a call returns and what it did
 * must be what a file system without any trouble shows. Each works below the current
 * directory, on names of its own, and leaves nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What went wrong, in words; NULL: nothing. `prepare` is not disturbed, `act` may be. */
typedef struct Operation {
	const char *name;
	const char *(*prepare)(void);
	const char *(*act)(void);
	const char *(*tidy)(void); /* looks once more, and cleans up */
} Operation;

/* Closes what an operation that failed has left open. */
void operations_close(void);

extern const Operation operations[];
extern const size_t n_operations;
