/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests of the file-system core: a directory of one's own, and what must not leak. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TnScratch {
	int dir; /* descriptor of the directory */
	char path[256];
} TnScratch;

/*
 * A fresh directory, below `base`, or with NULL below the working directory. False with a
 * reason on stderr when base cannot be used.
 */
bool tn_scratch_new(TnScratch *ret, const char *base);
/* Deletes it with everything in it, whatever the modes. */
void tn_scratch_remove(TnScratch *scratch);

/* A tmpfs to make a scratch directory on, or NULL. */
const char *tn_scratch_tmpfs(void);

/* Open descriptors of this process. */
size_t tn_count_fds(void);

/* Small and fast, the same everywhere for one seed. */
typedef struct TnDice {
	uint64_t state;
} TnDice;
uint64_t tn_dice(TnDice *dice, uint64_t sides);

/* TN_TEST_SEED, or a random one; printed, so that a failure can be repeated. */
uint64_t tn_test_seed(void);
