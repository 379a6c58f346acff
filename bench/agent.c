/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MOST 64
#define LINE_SIZE 8192

typedef struct Agent {
	const char *place;
	unsigned serial;
	char directory[PATH_MAX];
	const TnBenchOperation *prepared;
	unsigned done; /* rounds of it, so that names stay fresh */
} Agent;

double tn_bench_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

const TnBenchOperation *tn_bench_find(const char *name)
{
	for (size_t i = 0; i < tn_bench_n_operations; i++) {
		if (strcmp(name, tn_bench_operations[i].name) == 0)
			return &tn_bench_operations[i];
	}
	return NULL;
}

static void answer_ok(void)
{
	puts("ok");
}

static void answer_failed(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static void clean(Agent *agent)
{
	if (chdir("/") == 0 && agent->directory[0])
		nftw(agent->directory, remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	agent->directory[0] = '\0';
}

static bool enter_fresh(Agent *agent)
{
	clean(agent);
	snprintf(agent->directory, sizeof(agent->directory), "%s/bench-%d-%u", agent->place,
		 (int)getpid(), agent->serial++);
	if (mkdir(agent->directory, 0755) == 0 && chdir(agent->directory) == 0)
		return true;
	answer_failed(agent->directory);
	return false;
}

static void choose_cpu(const char *word)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (strcmp(word, "any") == 0) {
		for (int i = 0; i < CPU_SETSIZE; i++)
			CPU_SET(i, &set);
	} else {
		CPU_SET((unsigned)strtoul(word, NULL, 10) % CPU_SETSIZE, &set);
	}
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		answer_failed("cpu");
	else
		answer_ok();
}

static void prepare(Agent *agent, const char *name)
{
	agent->prepared = tn_bench_find(name);
	if (!agent->prepared) {
		errno = EINVAL;
		answer_failed(name);
		return;
	}
	if (!enter_fresh(agent))
		return;
	agent->prepared->prepare();
	agent->done = 0;
	answer_ok();
}

static void run(Agent *agent, unsigned rounds)
{
	double start = tn_bench_now_us();

	for (unsigned i = 0; agent->prepared && i < rounds; i++)
		agent->prepared->round(agent->done++);
	printf("%.1f\n", tn_bench_now_us() - start);
}

/* --- several at once ------------------------------------------------------------------------- */

/* One of them: says that it is ready, waits for the start, works. */
static void be_client(const TnBenchOperation *operation, unsigned number, unsigned rounds,
		      int ready, int start)
{
	char name[16], byte = 0;

	snprintf(name, sizeof(name), "c%u", number);
	if (mkdir(name, 0755) < 0 || chdir(name) < 0)
		_exit(1);
	operation->prepare();
	if (write(ready, &byte, 1) != 1 || read(start, &byte, 1) != 0)
		_exit(1);
	for (unsigned i = 0; i < rounds; i++)
		operation->round(i);
	_exit(0);
}

static bool wait_all(unsigned n)
{
	bool fine = true;

	for (unsigned i = 0; i < n; i++) {
		int status;

		fine &= wait(&status) > 0 && status == 0;
	}
	return fine;
}

/* The start is the end of file of a pipe that all of them wait for. */
static void run_clients(Agent *agent, const TnBenchOperation *operation, unsigned rounds,
			unsigned n)
{
	int ready[2], start[2];
	unsigned made = 0;
	double begun;
	char byte;

	if (!enter_fresh(agent))
		return;
	if (pipe(ready) < 0 || pipe(start) < 0) {
		answer_failed("pipe");
		return;
	}
	fflush(stdout);
	for (; made < n; made++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			close(start[1]);
			be_client(operation, made, rounds, ready[1], start[0]);
		}
	}
	close(ready[1]);
	for (unsigned i = 0; i < made && read(ready[0], &byte, 1) == 1; i++)
		;
	close(start[0]);
	begun = tn_bench_now_us();
	close(start[1]);
	if (wait_all(made) && made == n)
		printf("%.1f\n", tn_bench_now_us() - begun);
	else
		puts("failed: a client ended early");
	close(ready[0]);
}

/* --- commands -------------------------------------------------------------------------------- */

static void run_shell(const char *command)
{
	double start = tn_bench_now_us();
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* what it says on standard output is not an answer of ours */
		if (!freopen("/dev/null", "w", stdout))
			_exit(127);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		answer_failed("fork");
	else if (status != 0)
		printf("failed: status %d of: %s\n", WEXITSTATUS(status), command);
	else
		printf("%.1f\n", tn_bench_now_us() - start);
}

static void serve_line(Agent *agent, char *line)
{
	char *words = strchr(line, ' ');
	char name[32];
	unsigned rounds, n;

	if (words)
		*words++ = '\0';
	else
		words = line + strlen(line);
	if (strcmp(line, "cpu") == 0) {
		choose_cpu(words);
	} else if (strcmp(line, "prepare") == 0) {
		prepare(agent, words);
	} else if (strcmp(line, "run") == 0) {
		run(agent, (unsigned)strtoul(words, NULL, 10));
	} else if (strcmp(line, "clients") == 0 &&
		   sscanf(words, "%31s %u %u", name, &rounds, &n) == 3 && tn_bench_find(name) &&
		   n <= CLIENTS_MOST) {
		run_clients(agent, tn_bench_find(name), rounds, n);
	} else if (strcmp(line, "shell") == 0) {
		if (enter_fresh(agent))
			run_shell(words);
	} else if (strcmp(line, "again") == 0) {
		run_shell(words);
	} else if (strcmp(line, "clean") == 0) {
		clean(agent);
		answer_ok();
	} else {
		printf("failed: not understood: %s %s\n", line, words);
	}
}

int tn_bench_agent(const char *place)
{
	Agent agent = {.place = place};
	char line[LINE_SIZE];

	answer_ok();
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		serve_line(&agent, line);
		fflush(stdout);
	}
	clean(&agent);
	return 0;
}
