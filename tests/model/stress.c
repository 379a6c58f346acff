/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stress SECONDS WORKERS SEED DIRECTORY
 *
 * The operations of the model test by several processes at once, each at its own pace, in
 * one small tree. Nothing is compared; a worker fails when an operation says what no file
 * system with room should (EIO, ESTALE, ...).
 */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int expected[] = {ENOENT, EEXIST,  ENOTDIR, EISDIR,     ENOTEMPTY,    EBADF,
			       EINVAL, EACCES,  EPERM,   ENOSPC,     EBUSY,        ELOOP,
			       ENXIO,  ENODATA, ETXTBSY, ESPIPE,     EAGAIN,       EXDEV,
			       EFBIG,  ERANGE,  ENODEV,  EOPNOTSUPP, ENAMETOOLONG, EMLINK};

static bool is_expected(int64_t result)
{
	if (result >= 0)
		return true;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		if (expected[i] == -result)
			return true;
	}
	return false;
}

/* Another process may truncate what this one has mapped. */
static sigjmp_buf on_bus;

static void bus(int number)
{
	siglongjmp(on_bus, number);
}

static int work(unsigned number, uint64_t seed, time_t end, int root)
{
	volatile uint64_t count = 0; /* across siglongjmp */
	uint64_t random = seed * 1000 + number;
	MdKnown known = {0};
	MdWorker worker;

	memset(&worker, -1, sizeof(worker));
	worker.root[0] = root;
	worker.cwd[0] = dup(root);
	worker.cwd[1] = worker.cwd[0]; /* it is asked for free space */
	signal(SIGBUS, bus);
	while (time(NULL) < end) {
		MdOutcome outcome;
		MdOperation op;

		md_operation_make(&op, &known, &random);
		op.worker = 0; /* the table of open files is this process's alone */
		if (strcmp(md_kind_name(op.kind), "chdir") == 0)
			continue;
		if (sigsetjmp(on_bus, 1))
			continue;
		md_operation_run(&worker, &op, 0, &outcome);
		md_learn(&known, &op, outcome.result, &random);
		count++;
		if (!is_expected(outcome.result)) {
			printf("# worker %u, operation %llu: %s: ", number,
			       (unsigned long long)count, strerrorname_np((int)-outcome.result));
			md_operation_print(&op);
			return 1;
		}
	}
	printf("# worker %u: %llu operations\n", number, (unsigned long long)count);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned workers, failed = 0;
	time_t end;
	int root, status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 5 || (root = open(argv[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		fputs("usage: stress SECONDS WORKERS SEED DIRECTORY\n", stderr);
		return 2;
	}
	end = time(NULL) + atol(argv[1]);
	workers = (unsigned)atoi(argv[2]);
	for (unsigned i = 0; i < workers; i++) {
		pid_t child = fork();

		if (child < 0)
			return 2;
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(work(i, strtoull(argv[3], NULL, 10), end, root));
		}
	}
	while (wait(&status) > 0)
		failed += status != 0;
	return failed > 0;
}
