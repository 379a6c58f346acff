/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a test and the worker that it troubles share: when to die, which call is to fail. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef struct KillFile {
	_Atomic int64_t first;   /* points until the worker dies; 0: it does not */
	_Atomic int64_t second;  /* once that one has died: points until its successor dies */
	_Atomic uint64_t passed; /* points so far */
	_Atomic uint64_t killed; /* workers so far */
	_Atomic int64_t fail_in; /* calls to the store until one fails; 0: none */
	_Atomic int64_t error;   /* its errno */
	_Atomic uint64_t calls;  /* that were looked at */
	_Atomic uint64_t failed; /* calls that were made to */
	_Atomic int64_t poison;  /* the point of a request that has begun a change at which each
				    worker that serves it aborts; 0: none */
} KillFile;
