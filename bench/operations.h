/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The single file-system operations that are measured and counted. Each works in the cwd and
 * ends the process, with a message, when something fails: a time of a failure means nothing.
 *
 * What an operation needs is prepared before, so that of two runs with a different number of
 * rounds the difference is that of the operation alone. One thread.
 */
#pragma once

#include <stddef.h>

typedef struct TnBenchOperation {
	const char *name, *words;
	void (*prepare)(void);
	void (*round)(unsigned round); /* the number counts up, so that names are fresh */
} TnBenchOperation;

extern const TnBenchOperation tn_bench_operations[];
extern const size_t tn_bench_n_operations;
