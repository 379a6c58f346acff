/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random operations, as the VFS would send them, near both limits: after every change the
 * account equals what a recount of the store finds, and stays within its limits.
 */
#include "harness.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define PAGE 4096U
#define LIMIT (64 * PAGE)
#define INODES 40
#define NAMES 12
#define STEPS 1000 /* or TN_TEST_STEPS */

/* What the kernel knows: how often it was given each node. */
typedef struct Known {
	uint64_t id, lookups;
	bool directory, removed;
	uint32_t type;
} Known;

typedef struct Walk {
	TnWire *w;
	TnDice dice;
	Known known[256];
	size_t n;
	size_t succeeded;
} Walk;

static Known *find_known(Walk *walk, uint64_t id)
{
	for (size_t i = 0; i < walk->n; i++)
		if (walk->known[i].id == id)
			return &walk->known[i];
	return NULL;
}

/* The kernel was handed wire->entry. */
static void note_entry(Walk *walk)
{
	const struct fuse_entry_out *entry = &walk->w->entry;
	Known *known = find_known(walk, entry->nodeid);

	if (!known) {
		assert_true(walk->n < TN_ARRAY_LEN(walk->known));
		known = &walk->known[walk->n++];
		*known = (Known){
			.id = entry->nodeid,
			.directory = S_ISDIR(entry->attr.mode),
			.type = entry->attr.mode & S_IFMT,
		};
	}
	assert_int_equal(known->type, entry->attr.mode & S_IFMT); /* no inode changes its kind */
	assert_false(known->removed);
	known->lookups++;
}

static uint64_t any_node(Walk *walk)
{
	return walk->known[tn_dice(&walk->dice, walk->n)].id;
}

static uint64_t any_directory(Walk *walk)
{
	for (int i = 0; i < 50; i++) {
		const Known *known = &walk->known[tn_dice(&walk->dice, walk->n)];

		if (known->directory && !known->removed)
			return known->id;
	}
	return walk->w->tmp;
}

static const char *any_name(Walk *walk)
{
	static char names[NAMES][200];
	size_t i = tn_dice(&walk->dice, NAMES);

	/* Long ones, so that directories grow. */
	if (!names[i][0]) {
		memset(names[i], 'n', i < 4 ? 3 : 180);
		names[i][0] = (char)('a' + i);
	}
	return names[i];
}

static uint64_t any_size(Walk *walk)
{
	switch (tn_dice(&walk->dice, 4)) {
	case 0:
		return tn_dice(&walk->dice, 20) * PAGE;
	case 1:
		return tn_dice(&walk->dice, 20 * PAGE);
	case 2:
		return tn_dice(&walk->dice, 100 * PAGE);
	default:
		return tn_dice(&walk->dice, PAGE);
	}
}

static int change_data(Walk *walk)
{
	static const uint32_t modes[] = {
		0,
		FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_COLLAPSE_RANGE,
		FALLOC_FL_INSERT_RANGE,
	};
	static const uint8_t data[20 * PAGE];
	uint64_t node = any_node(walk), at = any_size(walk), size = 1 + any_size(walk);
	int64_t n;

	/* Full most of the time, but not all of it. */
	if (tn_wire_bytes(walk->w) > LIMIT / 10 * 9 && tn_dice(&walk->dice, 3) == 0)
		return tn_wire_truncate(walk->w, node, tn_dice(&walk->dice, 2) ? 0 : at);
	switch (tn_dice(&walk->dice, 5)) {
	case 0:
		return tn_wire_truncate(walk->w, node, at);
	case 1:
		return tn_wire_fallocate(walk->w, node,
					 modes[tn_dice(&walk->dice, TN_ARRAY_LEN(modes))],
					 tn_dice(&walk->dice, 2) ? at : at / PAGE * PAGE,
					 tn_dice(&walk->dice, 2) ? size : (size / PAGE + 1) * PAGE);
	default:
		n = tn_wire_write(walk->w, node, at, data,
				  size < sizeof(data) ? size : sizeof(data));
		return n < 0 ? (int)n : 0;
	}
}

static int change_attributes(Walk *walk)
{
	static const uint8_t value[3000];
	char name[16];
	uint64_t node = any_node(walk);

	snprintf(name, sizeof(name), "user.%u", (unsigned)tn_dice(&walk->dice, 3));
	if (tn_dice(&walk->dice, 3) == 0)
		return tn_wire_removexattr(walk->w, node, name);
	return tn_wire_setxattr(walk->w, node, name, value, tn_dice(&walk->dice, sizeof(value)), 0);
}

static int make_some(Walk *walk)
{
	static const char target[1000] = "some/where";
	uint64_t dir = any_directory(walk);
	const char *name = any_name(walk);
	char text[300];
	int r;

	switch (tn_dice(&walk->dice, 6)) {
	case 0:
		r = tn_wire_mkdir(walk->w, dir, name, 0755);
		break;
	case 1:
		memset(text, 't', sizeof(text));
		text[1 + tn_dice(&walk->dice, sizeof(text) - 1)] = '\0';
		text[sizeof(text) - 1] = '\0';
		r = tn_wire_symlink(walk->w, dir, name, text[0] ? text : target);
		break;
	case 2:
		r = tn_wire_link(walk->w, any_node(walk), dir, name);
		break;
	case 3:
		r = tn_wire_mknod(walk->w, dir, name, S_IFSOCK | 0600);
		break;
	default:
		r = tn_wire_mknod(walk->w, dir, name, S_IFREG | 0644);
	}
	if (r == 0)
		note_entry(walk);
	return r;
}

/* The kernel looks a name up before it does anything with it; 0 when there is none. */
static uint64_t look_up(Walk *walk, uint64_t dir, const char *name)
{
	if (tn_wire_lookup(walk->w, dir, name) < 0)
		return 0;
	note_entry(walk);
	return walk->w->entry.nodeid;
}

static void note_removed(Walk *walk, uint64_t id)
{
	Known *known = id ? find_known(walk, id) : NULL;

	if (known && known->directory)
		known->removed = true;
}

static int remove_some(Walk *walk)
{
	uint64_t dir = any_directory(walk), node;
	const char *name = any_name(walk);
	const Known *known;
	int r;

	node = look_up(walk, dir, name);
	known = node ? find_known(walk, node) : NULL;
	if (known && known->directory)
		r = tn_wire_rmdir(walk->w, dir, name);
	else
		r = tn_wire_unlink(walk->w, dir, name);
	if (r == 0)
		note_removed(walk, node);
	return r;
}

static int move_some(Walk *walk)
{
	static const uint32_t flags[] = {0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
	uint64_t from = any_directory(walk), to = any_directory(walk), replaced;
	const char *name = any_name(walk), *name2 = any_name(walk);
	uint32_t flag = flags[tn_dice(&walk->dice, TN_ARRAY_LEN(flags))];
	uint64_t node = look_up(walk, from, name);
	int r;

	replaced = look_up(walk, to, name2);
	r = tn_wire_rename(walk->w, from, name, to, name2, flag);
	if (r == 0 && replaced != node && !(flag & RENAME_EXCHANGE))
		note_removed(walk, replaced);
	return r;
}

/* The kernel forgets some node that it does not need: never a directory above a known one. */
static int forget_some(Walk *walk)
{
	size_t i = 3 + tn_dice(&walk->dice, walk->n);
	Known *known;

	if (i >= walk->n)
		return -ENOENT;
	known = &walk->known[i];
	if (known->directory && !known->removed)
		return -EBUSY;
	tn_wire_forget(walk->w, known->id, known->lookups);
	*known = walk->known[--walk->n];
	return 0;
}

static void step(Walk *walk)
{
	uint64_t bytes = tn_wire_bytes(walk->w), now;
	int r;

	switch (tn_dice(&walk->dice, 10)) {
	case 0:
	case 1:
		r = make_some(walk);
		break;
	case 2:
		r = remove_some(walk);
		break;
	case 3:
		r = move_some(walk);
		break;
	case 4:
		r = forget_some(walk);
		break;
	case 5:
		r = change_attributes(walk);
		break;
	default:
		r = change_data(walk);
	}
	walk->succeeded += r == 0;
	now = tn_wire_bytes(walk->w);
	/* A directory's block that came with a name cannot be given back: only that may pass. */
	assert_true(now <= LIMIT || now <= bytes || now - bytes <= 2 * PAGE);
	assert_true(tn_wire_inodes(walk->w) <= INODES);
	tn_wire_check_account(walk->w);
}

static void walk_seeded(const TnWireSpec *spec, uint64_t seed)
{
	TnWire wire;
	Walk walk = {.w = &wire, .dice = {seed}};
	const char *text = getenv("TN_TEST_STEPS");
	unsigned steps = text ? (unsigned)atoi(text) : STEPS;

	tn_wire_open(&wire, spec);
	walk.known[walk.n++] =
		(Known){.id = 1, .lookups = 1, .directory = true, .removed = true, .type = S_IFDIR};
	walk.known[walk.n++] =
		(Known){.id = wire.tmp, .lookups = 1, .directory = true, .type = S_IFDIR};
	walk.known[walk.n++] =
		(Known){.id = wire.var, .lookups = 1, .directory = true, .type = S_IFDIR};
	for (unsigned i = 0; i < steps; i++)
		step(&walk);
	assert_true(walk.succeeded > steps / 10);                    /* it did something */
	assert_true(atomic_load(&wire.nest->account->refusals) > 0); /* and met the limits */
	tn_wire_close(&wire);
}

static void walk_store(const TnWireSpec *spec)
{
	walk_seeded(spec, tn_test_seed());
}

static void test_dir(void **state)
{
	(void)state;
	walk_store(&(TnWireSpec){.bytes = LIMIT, .inodes = INODES});
}

/* A directory on a file system without extents. */
static void test_dir_on_tmpfs(void **state)
{
	const char *base = tn_scratch_tmpfs();

	(void)state;
	if (!base) {
		print_message("no tmpfs to write to (/dev/shm or /run)\n");
		skip();
	}
	walk_store(&(TnWireSpec){.base = base, .bytes = LIMIT, .inodes = INODES});
	/* A write that did not fit was undone, and with it what was preallocated past the end. */
	walk_seeded(&(TnWireSpec){.base = base, .bytes = LIMIT, .inodes = INODES},
		    UINT64_C(14653012722911257976));
}

static void test_memory(void **state)
{
	const char *base = tn_scratch_tmpfs();

	(void)state;
	if (!base) {
		print_message("no tmpfs to write to (/dev/shm or /run)\n");
		skip();
	}
	walk_store(&(TnWireSpec){
		.base = base, .bytes = LIMIT, .inodes = INODES, .kind = TN_STORE_MEMORY});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dir),
		cmocka_unit_test(test_dir_on_tmpfs),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
