/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One file-system operation, N times, for bench/requests.sh, or any of them on request, for
 * bench/run.sh.
 *
 *   ops OPERATION N [DIRECTORY]   prints the microseconds per operation
 *   ops list                      prints the operations, NAME: WORDS
 *   ops agent DIRECTORY           does what is said on standard input (agent.h)
 */
#include "agent.h"
#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int list(void)
{
	for (size_t i = 0; i < tn_bench_n_operations; i++)
		printf("%s: %s\n", tn_bench_operations[i].name, tn_bench_operations[i].words);
	return 0;
}

static int run(const TnBenchOperation *operation, unsigned rounds)
{
	double start;

	operation->prepare();
	start = tn_bench_now_us();
	for (unsigned i = 0; i < rounds; i++)
		operation->round(i);
	printf("%.1f\n", rounds ? (tn_bench_now_us() - start) / rounds : 0.0);
	return 0;
}

int main(int argc, char **argv)
{
	const TnBenchOperation *operation;

	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (argc == 3 && strcmp(argv[1], "agent") == 0)
		return tn_bench_agent(argv[2]);
	operation = argc >= 3 ? tn_bench_find(argv[1]) : NULL;
	if (!operation) {
		fputs("usage: ops OPERATION N [DIRECTORY] | ops list | ops agent DIRECTORY\n",
		      stderr);
		return 2;
	}
	if (argc > 3 && chdir(argv[3]) < 0) {
		perror(argv[3]);
		return 1;
	}
	return run(operation, (unsigned)strtoul(argv[2], NULL, 10));
}
