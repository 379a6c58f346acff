/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The client of a measurement: one process that stays in a sandbox, so that its start is in no
 * figure, and does what it is told, one line in, one line out:
 *
 *   cpu N | cpu any          where it and its children run from now on
 *   prepare OPERATION        in a fresh directory            -> ok
 *   run N                    of the prepared operation       -> microseconds for all of them
 *   clients OPERATION N K    by K processes at once          -> microseconds until the last ends
 *   shell COMMAND            in a fresh directory            -> microseconds
 *   again COMMAND            in the same directory           -> microseconds
 *   clean                    removes the directory           -> ok
 *
 * What fails is answered `failed: WHY`.
 */
#pragma once

#include "operations.h"

/* Serves standard input until its end, working below `place`. The exit status. */
int tn_bench_agent(const char *place);

/* The operation of that name, or NULL. */
const TnBenchOperation *tn_bench_find(const char *name);
double tn_bench_now_us(void); /* CLOCK_MONOTONIC */
