/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several threads at once, as the kernel lets them: changes of one directory one after the
 * other, lookups beside each other, data of one file at any time, renames of directories
 * between directories one at a time. Meant for the thread sanitizer, too.
 */
#include "harness.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#define PAGE 4096U
#define THREADS 4
#define STEPS 1500 /* or TN_TEST_STEPS */
#define DIRS 6
#define NAMES 5
#define REFS 12

/* Directories that are there all the time; they move. */
typedef struct Shared {
	uint64_t dirs[DIRS];
	unsigned parents[DIRS];           /* DIRS: the subtree's own; changed under moves */
	pthread_rwlock_t locks[DIRS + 1]; /* as the kernel's inode locks */
	pthread_mutex_t moves;            /* as the kernel's lock of a superblock's renames */
	uint64_t tmp;
} Shared;

typedef struct Ref {
	uint64_t id;
	uint32_t type;
} Ref;

typedef struct Worker {
	pthread_t thread;
	Shared *shared;
	TnWire wire;
	TnDice dice;
	Ref refs[REFS]; /* one lookup each */
	size_t n_refs;
	unsigned steps, bad;
	uint64_t written;
} Worker;

static uint64_t dice(Worker *worker, uint64_t sides)
{
	return tn_dice(&worker->dice, sides);
}

static void drop_ref(Worker *worker, size_t i)
{
	tn_wire_forget(&worker->wire, worker->refs[i].id, 1);
	worker->refs[i] = worker->refs[--worker->n_refs];
}

/* The kernel has got one more entry. */
static void keep_ref(Worker *worker)
{
	if (worker->n_refs == REFS)
		drop_ref(worker, dice(worker, REFS));
	worker->refs[worker->n_refs++] = (Ref){
		.id = worker->wire.entry.nodeid,
		.type = worker->wire.entry.attr.mode & S_IFMT,
	};
}

static uint64_t dir_id(const Shared *shared, unsigned i)
{
	return i == DIRS ? shared->tmp : shared->dirs[i];
}

static void any_name(Worker *worker, char name[32])
{
	snprintf(name, 32, "name-%u", (unsigned)dice(worker, NAMES));
}

/* --- names ----------------------------------------------------------------------------------- */

static void look(Worker *worker, unsigned dir)
{
	char name[32];

	any_name(worker, name);
	pthread_rwlock_rdlock(&worker->shared->locks[dir]);
	if (tn_wire_lookup(&worker->wire, dir_id(worker->shared, dir), name) == 0)
		keep_ref(worker);
	pthread_rwlock_unlock(&worker->shared->locks[dir]);
}

static void list(Worker *worker, unsigned dir)
{
	TnWire *w = &worker->wire;
	uint64_t ids[64];
	size_t n = 0;

	pthread_rwlock_rdlock(&worker->shared->locks[dir]);
	if (tn_wire_readdir(w, FUSE_READDIRPLUS, dir_id(worker->shared, dir), 0, 4096) == 0) {
		for (size_t at = 0; at < w->out_size && n < TN_ARRAY_LEN(ids);) {
			const struct fuse_direntplus *entry = (const void *)(w->out + at);

			if (entry->entry_out.nodeid)
				ids[n++] = entry->entry_out.nodeid;
			at += FUSE_DIRENTPLUS_SIZE(entry);
		}
	}
	pthread_rwlock_unlock(&worker->shared->locks[dir]);
	while (n > 0)
		tn_wire_forget(w, ids[--n], 1);
}

static void make(Worker *worker, unsigned dir)
{
	uint64_t parent = dir_id(worker->shared, dir);
	TnWire *w = &worker->wire;
	char name[32];
	int r;

	any_name(worker, name);
	pthread_rwlock_wrlock(&worker->shared->locks[dir]);
	switch (dice(worker, 6)) {
	case 0:
		r = tn_wire_mkdir(w, parent, name, 0755);
		break;
	case 1:
		r = tn_wire_symlink(w, parent, name, "some/target");
		break;
	case 2:
		r = worker->n_refs ? tn_wire_link(w, worker->refs[dice(worker, worker->n_refs)].id,
						  parent, name)
				   : -ENOENT;
		break;
	default:
		r = tn_wire_mknod(w, parent, name, S_IFREG | 0644);
	}
	if (r == 0)
		keep_ref(worker);
	pthread_rwlock_unlock(&worker->shared->locks[dir]);
}

static void take_away(Worker *worker, unsigned dir)
{
	uint64_t parent = dir_id(worker->shared, dir);
	TnWire *w = &worker->wire;
	char name[32];

	any_name(worker, name);
	pthread_rwlock_wrlock(&worker->shared->locks[dir]);
	if (tn_wire_lookup(w, parent, name) == 0) {
		int r = S_ISDIR(w->entry.attr.mode) ? tn_wire_rmdir(w, parent, name)
						    : tn_wire_unlink(w, parent, name);

		worker->bad += r != 0; /* nothing is made in those directories */
		keep_ref(worker);
	}
	pthread_rwlock_unlock(&worker->shared->locks[dir]);
}

/* Exclusively both, in one order for all. */
static void lock_two(Shared *shared, unsigned a, unsigned b)
{
	pthread_rwlock_wrlock(&shared->locks[a < b ? a : b]);
	if (a != b)
		pthread_rwlock_wrlock(&shared->locks[a < b ? b : a]);
}

static void unlock_two(Shared *shared, unsigned a, unsigned b)
{
	pthread_rwlock_unlock(&shared->locks[a]);
	if (a != b)
		pthread_rwlock_unlock(&shared->locks[b]);
}

static void move(Worker *worker, unsigned from, unsigned to)
{
	static const uint32_t flags[] = {0, RENAME_NOREPLACE, RENAME_EXCHANGE};
	uint32_t flag = flags[dice(worker, TN_ARRAY_LEN(flags))];
	Shared *shared = worker->shared;
	TnWire *w = &worker->wire;
	char name[32], name2[32];

	any_name(worker, name);
	any_name(worker, name2);
	pthread_mutex_lock(&shared->moves);
	lock_two(shared, from, to);
	if (tn_wire_lookup(w, dir_id(shared, from), name) == 0) {
		keep_ref(worker);
		if (tn_wire_lookup(w, dir_id(shared, to), name2) == 0)
			keep_ref(worker);
		(void)tn_wire_rename(w, dir_id(shared, from), name, dir_id(shared, to), name2,
				     flag);
	}
	unlock_two(shared, from, to);
	pthread_mutex_unlock(&shared->moves);
}

/* One of the lasting directories goes into another one. */
static void move_directory(Worker *worker, unsigned which, unsigned to)
{
	Shared *shared = worker->shared;
	unsigned from;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "dir-%u", which);
	pthread_mutex_lock(&shared->moves);
	from = shared->parents[which];
	lock_two(shared, from, to);
	r = tn_wire_rename(&worker->wire, dir_id(shared, from), name, dir_id(shared, to), name, 0);
	if (r == 0)
		shared->parents[which] = to;
	else
		worker->bad += r != -EINVAL; /* into itself */
	unlock_two(shared, from, to);
	pthread_mutex_unlock(&shared->moves);
}

/* --- data ------------------------------------------------------------------------------------- */

static void change_file(Worker *worker, uint64_t id)
{
	static const uint8_t data[8 * PAGE];
	TnWire *w = &worker->wire;
	struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 04755};
	uint64_t offset = dice(worker, 10) * PAGE + dice(worker, 2) * 100;
	uint8_t byte;
	int64_t n;

	switch (dice(worker, 7)) {
	case 0:
		(void)tn_wire_truncate(w, id, offset);
		break;
	case 1:
		(void)tn_wire_fallocate(
			w, id, dice(worker, 2) ? 0 : FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			offset, 3 * PAGE);
		break;
	case 2:
		(void)tn_wire_setattr(w, id, &in);
		break;
	case 3:
		(void)tn_wire_setxattr(w, id, "user.x", data, dice(worker, 200), 0);
		break;
	case 4:
		(void)tn_wire_read(w, id, offset, &byte, 1);
		break;
	default:
		n = tn_wire_write(w, id, offset, data, 1 + dice(worker, sizeof(data)));
		worker->written += n > 0 ? (uint64_t)n : 0;
	}
}

static void use_ref(Worker *worker)
{
	size_t i = dice(worker, worker->n_refs + 1);
	struct fuse_attr attr;
	int r;

	if (i == worker->n_refs)
		return;
	if (worker->refs[i].type == S_IFREG && dice(worker, 4)) {
		change_file(worker, worker->refs[i].id);
		return;
	}
	/* What the kernel refers to is always there, whatever became of its names. */
	r = tn_wire_getattr(&worker->wire, worker->refs[i].id, &attr);
	worker->bad += r != 0 || (attr.mode & S_IFMT) != worker->refs[i].type;
}

static void look_from_outside(Worker *worker)
{
	uint64_t bytes, inodes;
	TnNestInfo info;

	if (dice(worker, 8) == 0)
		worker->bad += tn_nest_recount(worker->wire.nest, &bytes, &inodes) != 0;
	else
		tn_nest_info(worker->wire.nest, &info);
}

static void step(Worker *worker)
{
	unsigned dir = (unsigned)dice(worker, DIRS), other = (unsigned)dice(worker, DIRS);

	switch (dice(worker, 12)) {
	case 0:
		look(worker, dir);
		break;
	case 1:
		list(worker, dir);
		break;
	case 2:
	case 3:
		make(worker, dir);
		break;
	case 4:
		take_away(worker, dir);
		break;
	case 5:
		move(worker, dir, other);
		break;
	case 6:
		if (dice(worker, 4) == 0)
			move_directory(worker, dir, (unsigned)dice(worker, DIRS + 1));
		break;
	case 7:
		if (worker->n_refs)
			drop_ref(worker, dice(worker, worker->n_refs));
		break;
	case 8:
		if (dice(worker, 8) == 0)
			look_from_outside(worker);
		break;
	default:
		use_ref(worker);
	}
}

static void *work(void *data)
{
	Worker *worker = data;

	for (unsigned i = 0; i < worker->steps; i++)
		step(worker);
	while (worker->n_refs)
		drop_ref(worker, 0);
	return NULL;
}

/* --- all together --------------------------------------------------------------------------------
 */

static void start_shared(Shared *shared, TnWire *wire)
{
	char name[32];

	*shared = (Shared){.tmp = wire->tmp};
	pthread_mutex_init(&shared->moves, NULL);
	for (unsigned i = 0; i <= DIRS; i++)
		pthread_rwlock_init(&shared->locks[i], NULL);
	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "dir-%u", i);
		assert_int_equal(tn_wire_mkdir(wire, wire->tmp, name, 0755), 0);
		shared->dirs[i] = wire->entry.nodeid;
		shared->parents[i] = DIRS;
	}
}

static void run(const TnWireSpec *spec)
{
	const char *text = getenv("TN_TEST_STEPS");
	Worker workers[THREADS];
	uint64_t seed = tn_test_seed(), written = 0;
	Shared shared;
	TnWire wire;

	tn_wire_open(&wire, spec);
	start_shared(&shared, &wire);
	for (size_t i = 0; i < THREADS; i++) {
		workers[i] = (Worker){
			.shared = &shared,
			.dice = {seed + i},
			.steps = text ? (unsigned)atoi(text) : STEPS,
		};
		tn_wire_join(&workers[i].wire, &wire);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		tn_wire_leave(&workers[i].wire);
		assert_int_equal(workers[i].bad, 0);
		written += workers[i].written;
	}
	/* It was not all in vain. */
	assert_true(tn_wire_inodes(&wire) > DIRS);
	assert_true(written > 100 * PAGE);
	tn_wire_check_account(&wire);
	assert_int_equal(atomic_load(&wire.nest->arena.header->orphans), 0);
	tn_wire_close(&wire);
}

static void test_dir(void **state)
{
	(void)state;
	run(&(TnWireSpec){.bytes = 2 << 20, .inodes = 100});
}

static void test_memory(void **state)
{
	const char *base = tn_scratch_tmpfs();

	(void)state;
	if (!base) {
		print_message("no tmpfs to write to (/dev/shm or /run)\n");
		skip();
	}
	run(&(TnWireSpec){.base = base, .bytes = 2 << 20, .inodes = 100, .kind = TN_STORE_MEMORY});
}

/* --- readers without a pause -------------------------------------------------------------------
 */

typedef struct Reader {
	pthread_t thread;
	TnWire wire;
	_Atomic bool *stop;
} Reader;

static void *read_on(void *data)
{
	Reader *reader = data;
	struct fuse_attr attr;

	while (!atomic_load(reader->stop)) {
		(void)tn_wire_getattr(&reader->wire, reader->wire.tmp, &attr);
		(void)tn_wire_readdir(&reader->wire, FUSE_READDIR, reader->wire.tmp, 0, 4096);
	}
	return NULL;
}

/* A rename gets its turn all the same. */
static void test_no_starvation(void **state)
{
	Reader readers[THREADS];
	_Atomic bool stop = false;
	struct timespec start, end;
	double seconds;
	TnWire wire;

	(void)state;
	tn_wire_open(&wire, &(TnWireSpec){.base = tn_scratch_tmpfs()});
	assert_int_equal(tn_wire_mknod(&wire, wire.tmp, "a", S_IFREG | 0644), 0);
	for (size_t i = 0; i < THREADS; i++) {
		readers[i] = (Reader){.stop = &stop};
		tn_wire_join(&readers[i].wire, &wire);
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(tn_wire_rename(&wire, wire.tmp, "a", wire.tmp, "b", 0), 0);
		assert_int_equal(tn_wire_rename(&wire, wire.tmp, "b", wire.tmp, "a", 0), 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	atomic_store(&stop, true);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(readers[i].thread, NULL);
		tn_wire_leave(&readers[i].wire);
	}
	seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	printf("%.3f s for 200 renames\n", seconds);
	assert_true(seconds < 3);
	tn_wire_close(&wire);
}

/* --- a directory that moves while names are made in it -------------------------------------------
 */

typedef struct Maker {
	pthread_t thread;
	TnWire wire;
	uint64_t dir, file; /* file: "f" in dir */
	unsigned made;
	_Atomic bool *stop;
} Maker;

static int make_by_route(Maker *maker, unsigned route)
{
	TnWire *w = &maker->wire;

	switch (route) {
	case 0:
		return tn_wire_mkdir(w, maker->dir, "hidden", 0755);
	case 1:
		return tn_wire_mknod(w, maker->dir, "hidden", S_IFREG | 0644);
	case 2:
		return tn_wire_symlink(w, maker->dir, "hidden", "f");
	case 3:
		return tn_wire_link(w, maker->file, maker->dir, "hidden");
	default:
		return tn_wire_rename(w, maker->dir, "f", maker->dir, "hidden", 0);
	}
}

static void *make_on(void *data)
{
	Maker *maker = data;
	TnWire *w = &maker->wire;

	for (unsigned i = 0; !atomic_load(maker->stop); i++) {
		unsigned route = i % 5;

		if (make_by_route(maker, route) < 0)
			continue;
		maker->made++;
		if (route < 4)
			tn_wire_forget(w, w->entry.nodeid, 1);
		/* Not while it is denied; the mover brings it back. */
		while ((route == 0  ? tn_wire_rmdir(w, maker->dir, "hidden")
			: route < 4 ? tn_wire_unlink(w, maker->dir, "hidden")
				    : tn_wire_rename(w, maker->dir, "hidden", maker->dir, "f", 0)) <
			       0 &&
		       !atomic_load(maker->stop))
			;
	}
	return NULL;
}

/* A rule is judged by where the directory is when the name comes to be, not shortly before. */
static void test_rule_and_move(void **state)
{
	const char *text = getenv("TN_TEST_STEPS");
	unsigned steps = text ? (unsigned)atoi(text) : 4 * STEPS, trapped = 0;
	_Atomic bool stop = false;
	Maker maker = {.stop = &stop};
	TnWire wire;

	(void)state;
	tn_wire_open(&wire, &(TnWireSpec){.deny = {"/tmp/d/hidden"}});
	assert_int_equal(tn_wire_mkdir(&wire, wire.tmp, "x", 0755), 0);
	maker.dir = wire.entry.nodeid;
	assert_int_equal(tn_wire_mknod(&wire, maker.dir, "f", S_IFREG | 0644), 0);
	maker.file = wire.entry.nodeid;
	tn_wire_join(&maker.wire, &wire);
	assert_int_equal(pthread_create(&maker.thread, NULL, make_on, &maker), 0);
	for (unsigned i = 0; i < steps && !trapped; i++) {
		int r = tn_wire_rename(&wire, wire.tmp, "x", wire.tmp, "d", 0);

		if (r < 0)
			assert_int_equal(r, -EACCES); /* it holds the name */
		else                                  /* it cannot hold it, so it may leave */
			trapped += tn_wire_rename(&wire, wire.tmp, "d", wire.tmp, "x", 0) < 0;
	}
	atomic_store(&stop, true);
	pthread_join(maker.thread, NULL);
	tn_wire_leave(&maker.wire);
	assert_int_equal(trapped, 0);
	assert_true(maker.made > 0);
	tn_wire_close(&wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dir),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_no_starvation),
		cmocka_unit_test(test_rule_and_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
