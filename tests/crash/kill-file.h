/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a test and the worker that it kills share: when to die. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef struct KillFile {
	_Atomic int64_t first;   /* points until the worker dies; 0: it does not */
	_Atomic int64_t second;  /* once that one has died: points until its successor dies */
	_Atomic uint64_t passed; /* points so far */
	_Atomic uint64_t killed; /* workers so far */
} KillFile;
