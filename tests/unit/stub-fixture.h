/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A directory of its own for each test of the stub keeper, with a ledger, a work tree and a record
 * of what the keeper said.
 */
#pragma once

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stub-hold.h"

typedef struct Said {
	TnStubOutcome outcome;
	char path[PATH_MAX];
	char why[256];
} Said;

typedef struct Fixture {
	char dir[256];         /* resolved */
	char ledger[PATH_MAX]; /* dir/state/ledger.json */
	char runtime[PATH_MAX];
	TnStubs stubs;
	TnStubHolder self;
	Said *said;
	size_t n_said;
	int n_fds; /* open before the test */
} Fixture;

int fixture_setup(void **state);
/* Fails when descriptors were left open. Removes everything. */
int fixture_teardown(void **state);

/* dir/name; a few rotating buffers. */
const char *in(Fixture *fixture, const char *name);
void write_file(const char *path, const char *text);
/* NULL when it is not there; free it. */
char *read_file(const char *path);
bool exists(const char *path);
size_t count(const Fixture *fixture, TnStubOutcome outcome);
/* The last thing said about path, or -1. */
int outcome_of(const Fixture *fixture, const char *path);
void forget_said(Fixture *fixture);
/* Entries in the ledger file. */
size_t n_entries(Fixture *fixture);
/* A keeper with the ledger as it is on disk, as another process would have it. */
void reopen(Fixture *fixture);
