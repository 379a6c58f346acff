/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model [--verbose] SEED OPERATIONS VIEW TMPFS
 *
 * --verbose prints each operation and compares the trees after each, to find where it began.
 *
 * Both directories are empty; the second's file system has one page less, and no inode limit
 * that matters. Prints nothing but "held" when all has been done and was alike; the files
 * are then still open, and it goes on (closing them, comparing once more, leaving the trees)
 * when a line comes on standard input. Status 1 and the reasons when something differed.
 */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMPARE_EACH = 100 };

/* What the parent asks of a worker besides operations. */
enum { ASK_COMPARE_SLOTS = 1000, ASK_CLOSE_SLOTS, ASK_GO_HOME };

typedef struct Link { /* the parent's end of a worker */
	int to, from;
	pid_t pid;
} Link;

static void die(const char *what)
{
	printf("# model: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* --- a worker ----------------------------------------------------------------------------- */

/* Where this process is root of several uids, the workers are different users. */
static void become(unsigned number)
{
	static const gid_t groups[] = {2346};

	if (number == 0 || geteuid() != 0 || setgroups(1, groups) < 0)
		return;
	if (setresgid(2345, 2345, 2345) < 0 ||
	    setresuid(1233 + number, 1233 + number, 1233 + number) < 0)
		return;
}

/* Until the clock of the stamps is past the present time, which a stamp may show already. */
static void tick(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_REALTIME, &start);
	do {
		usleep(500);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec < start.tv_sec ||
		 (now.tv_sec == start.tv_sec && now.tv_nsec <= start.tv_nsec));
}

/* The stamps of the operation's file and directory, where they can be looked at. */
typedef struct Stamps {
	ino_t file;
	struct timespec times[4];
} Stamps;

static void take_stamps(const MdWorker *worker, const MdOperation *op, int side, Stamps *ret)
{
	char parent[MD_PATH];
	struct stat st;
	char *slash;

	*ret = (Stamps){0};
	if (fstatat(worker->cwd[side], op->path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISFIFO(st.st_mode)) {
		ret->file = st.st_ino;
		ret->times[0] = st.st_mtim;
		ret->times[1] = st.st_ctim;
	}
	strcpy(parent, op->path);
	slash = strrchr(parent, '/');
	strcpy(slash ? slash : parent, slash ? "" : ".");
	if (fstatat(worker->cwd[side], parent, &st, 0) == 0) {
		ret->times[2] = st.st_mtim;
		ret->times[3] = st.st_ctim;
	}
}

static uint32_t moved(const Stamps *before, const Stamps *after)
{
	/* Another file by that name: its stamps may happen to be the same. */
	uint32_t bits = before->file != after->file ? 3 : 0;

	for (int i = 0; i < 4; i++) {
		if (before->times[i].tv_sec != after->times[i].tv_sec ||
		    before->times[i].tv_nsec != after->times[i].tv_nsec)
			bits |= 1U << i;
	}
	return bits;
}

static void run_both(MdWorker *worker, const MdOperation *op, MdOutcome outcomes[MD_SIDES])
{
	Stamps before[MD_SIDES], after;

	for (int side = 0; op->tick && side < MD_SIDES; side++)
		take_stamps(worker, op, side, &before[side]);
	if (op->tick)
		tick();
	for (int side = 0; side < MD_SIDES; side++) {
		md_operation_run(worker, op, side, &outcomes[side]);
		/* A write that failed for want of space may or may not have moved them. */
		if (!op->tick || outcomes[side].result < 0)
			continue;
		take_stamps(worker, op, side, &after);
		outcomes[side].moved = moved(&before[side], &after);
	}
}

static bool compare_slots(const MdWorker *worker, unsigned number)
{
	for (unsigned i = 0; i < MD_SLOTS; i++) {
		char what[64];

		snprintf(what, sizeof(what), "worker %u, open file %u", number, i);
		if (!md_files_equal(worker->slots[i], what))
			return false;
	}
	return true;
}

static void close_slots(MdWorker *worker)
{
	for (unsigned i = 0; i < MD_SLOTS; i++) {
		for (int side = 0; side < MD_SIDES; side++) {
			if (worker->slots[i][side] >= 0)
				close(worker->slots[i][side]);
			worker->slots[i][side] = -1;
		}
	}
}

static void go_home(MdWorker *worker)
{
	for (int side = 0; side < MD_SIDES; side++) {
		close(worker->cwd[side]);
		worker->cwd[side] = dup(worker->root[side]);
	}
	if (chdir("/") < 0)
		die("chdir");
}

static void work(unsigned number, int from, int to, const int root[MD_SIDES])
{
	MdWorker worker;
	MdOperation op;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(&worker, -1, sizeof(worker));
	become(number);
	umask(number == 2 ? 022 : 0);
	for (int side = 0; side < MD_SIDES; side++) {
		worker.root[side] = root[side];
		worker.cwd[side] = dup(root[side]);
	}
	while (read(from, &op, sizeof(op)) == (ssize_t)sizeof(op)) {
		MdOutcome outcomes[MD_SIDES] = {0};

		if (op.kind == ASK_COMPARE_SLOTS)
			outcomes[0].result = compare_slots(&worker, number) ? 0 : -1;
		else if (op.kind == ASK_CLOSE_SLOTS)
			close_slots(&worker);
		else if (op.kind == ASK_GO_HOME)
			go_home(&worker);
		else
			run_both(&worker, &op, outcomes);
		fflush(stdout);
		if (write(to, outcomes, sizeof(outcomes)) != (ssize_t)sizeof(outcomes))
			break;
	}
	_exit(0);
}

/* --- the parent --------------------------------------------------------------------------- */

static Link start_worker(unsigned number, const int root[MD_SIDES])
{
	int down[2], up[2];
	Link link;

	if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
		die("pipe");
	fflush(stdout);
	link = (Link){.to = down[1], .from = up[0], .pid = fork()};
	if (link.pid < 0)
		die("fork");
	if (link.pid == 0) {
		close(down[1]);
		close(up[0]);
		work(number, down[0], up[1], root);
	}
	close(down[0]);
	close(up[1]);
	return link;
}

static void ask(const Link *link, const MdOperation *op, MdOutcome outcomes[MD_SIDES])
{
	if (write(link->to, op, sizeof(*op)) != (ssize_t)sizeof(*op) ||
	    read(link->from, outcomes, MD_SIDES * sizeof(*outcomes)) !=
		    (ssize_t)(MD_SIDES * sizeof(*outcomes)))
		die("worker");
}

static bool ask_all(const Link *workers, uint32_t kind)
{
	MdOutcome outcomes[MD_SIDES];

	for (unsigned i = 0; i < MD_WORKERS; i++) {
		ask(&workers[i], &(MdOperation){.kind = kind}, outcomes);
		if (outcomes[0].result != 0)
			return false;
	}
	return true;
}

static void print_outcome(const char *where, const MdOutcome *outcome)
{
	printf("#   %s: %lld%s%s, data %016llx, moved %x\n", where, (long long)outcome->result,
	       outcome->result < 0 ? " " : "",
	       outcome->result < 0 ? strerrorname_np((int)-outcome->result) : "",
	       (unsigned long long)outcome->data, outcome->moved);
}

static bool everything_equal(const int root[MD_SIDES], const Link *workers)
{
	return md_trees_equal(root) && ask_all(workers, ASK_COMPARE_SLOTS) && md_free_equal(root);
}

static bool run(uint64_t seed, unsigned long n, const int root[MD_SIDES], const Link *workers,
		bool verbose)
{
	/* Mixed, or the next seed would have the same numbers one draw later. */
	uint64_t random = md_random(&seed);
	MdKnown known = {0};

	for (unsigned long i = 0; i < n; i++) {
		MdOutcome outcomes[MD_SIDES];
		MdOperation op;

		md_operation_make(&op, &known, &random);
		ask(&workers[op.worker], &op, outcomes);
		md_learn(&known, &op, outcomes[0].result, &random);
		if (verbose) {
			printf("# %lu: ", i);
			md_operation_print(&op);
			print_outcome("view", &outcomes[0]);
		}
		if (memcmp(&outcomes[0], &outcomes[1], sizeof(outcomes[0])) != 0) {
			printf("# operation %lu: ", i);
			md_operation_print(&op);
			print_outcome("view ", &outcomes[0]);
			print_outcome("tmpfs", &outcomes[1]);
			return false;
		}
		if (((i + 1) % COMPARE_EACH == 0 || verbose) && !everything_equal(root, workers)) {
			printf("# after operation %lu\n", i);
			return false;
		}
	}
	return everything_equal(root, workers);
}

/* A byte that is charged on the view alone: from then on both have the same free pages. */
static void prepare(const int root[MD_SIDES])
{
	for (int side = 0; side < MD_SIDES; side++) {
		if (symlinkat("x", root[side], "always-there") < 0)
			die("symlink");
	}
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && strcmp(argv[1], "--verbose") == 0, same;
	Link workers[MD_WORKERS];
	int root[MD_SIDES];
	uint64_t seed;
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	argv += verbose;
	if (argc - verbose != 5) {
		fputs("usage: model [--verbose] SEED OPERATIONS VIEW TMPFS\n", stderr);
		return 2;
	}
	seed = strtoull(argv[1], NULL, 10);
	for (int side = 0; side < MD_SIDES; side++) {
		root[side] = open(argv[3 + side], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (root[side] < 0)
			die(argv[3 + side]);
	}
	prepare(root);
	for (unsigned i = 0; i < MD_WORKERS; i++)
		workers[i] = start_worker(i, root);
	same = run(seed, strtoul(argv[2], NULL, 10), root, workers, verbose);
	if (same) {
		puts("held");
		if (!fgets(line, sizeof(line), stdin))
			return 2;
		ask_all(workers, ASK_CLOSE_SLOTS);
		ask_all(workers, ASK_GO_HOME);
		same = everything_equal(root, workers);
	}
	for (unsigned i = 0; i < MD_WORKERS; i++) {
		/* later workers hold its pipe as well, so it would see no end of it */
		kill(workers[i].pid, SIGKILL);
		waitpid(workers[i].pid, NULL, 0);
	}
	return !same;
}
