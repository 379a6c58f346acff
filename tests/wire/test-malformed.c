/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whatever arrives: an error or nothing, and the nest stays whole. */
#include "harness.h"

#include "macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define OPCODES 70

typedef struct Fixture {
	TnWire wire;
	uint64_t nodes[8]; /* of every kind, and some that are none */
} Fixture;

static int set_up(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));
	TnWire *w = &f->wire;

	tn_wire_open(w, &(TnWireSpec){.bytes = 2 << 20, .inodes = 500, .deny = {"no"}});
	f->nodes[0] = 1;
	f->nodes[1] = w->tmp;
	assert_int_equal(tn_wire_mkdir(w, w->tmp, "d", 0755), 0);
	f->nodes[2] = w->entry.nodeid;
	assert_int_equal(tn_wire_mknod(w, w->tmp, "f", S_IFREG | 0644), 0);
	f->nodes[3] = w->entry.nodeid;
	assert_int_equal(tn_wire_symlink(w, w->tmp, "l", "f"), 0);
	f->nodes[4] = w->entry.nodeid;
	assert_int_equal(tn_wire_mknod(w, f->nodes[2], "p", S_IFIFO | 0644), 0);
	f->nodes[5] = w->entry.nodeid;
	f->nodes[6] = 0;
	f->nodes[7] = UINT64_MAX;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	tn_wire_close(&f->wire);
	free(f);
	return 0;
}

/* A header, the arguments that the opcode may have, two names. */
typedef struct Message {
	struct fuse_in_header in;
	uint8_t rest[512];
} Message;

/* Bytes of its fixed arguments when they are as the kernel sends them. */
static size_t fixed_size(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_FORGET:
		return sizeof(struct fuse_forget_in);
	case FUSE_GETATTR:
		return sizeof(struct fuse_getattr_in);
	case FUSE_SETATTR:
		return sizeof(struct fuse_setattr_in);
	case FUSE_MKNOD:
		return sizeof(struct fuse_mknod_in);
	case FUSE_MKDIR:
		return sizeof(struct fuse_mkdir_in);
	case FUSE_RENAME:
		return sizeof(struct fuse_rename_in);
	case FUSE_RENAME2:
		return sizeof(struct fuse_rename2_in);
	case FUSE_LINK:
		return sizeof(struct fuse_link_in);
	case FUSE_READ:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
		return sizeof(struct fuse_read_in);
	case FUSE_WRITE:
		return sizeof(struct fuse_write_in);
	case FUSE_FSYNC:
		return sizeof(struct fuse_fsync_in);
	case FUSE_SETXATTR:
		return sizeof(struct fuse_setxattr_in);
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
		return sizeof(struct fuse_getxattr_in);
	case FUSE_INIT:
		return 16;
	case FUSE_BATCH_FORGET:
		return sizeof(struct fuse_batch_forget_in);
	case FUSE_FALLOCATE:
		return sizeof(struct fuse_fallocate_in);
	case FUSE_LSEEK:
		return sizeof(struct fuse_lseek_in);
	case FUSE_TMPFILE:
		return sizeof(struct fuse_create_in);
	default:
		return 0;
	}
}

static size_t names_of(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_SYMLINK:
	case FUSE_RENAME:
	case FUSE_RENAME2:
		return 2;
	case FUSE_LOOKUP:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
	case FUSE_LINK:
	case FUSE_SETXATTR:
	case FUSE_GETXATTR:
	case FUSE_REMOVEXATTR:
		return 1;
	default:
		return 0;
	}
}

static bool is_silent(uint32_t opcode)
{
	return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT ||
	       opcode == FUSE_NOTIFY_REPLY;
}

/* Sends it; checks that there is a whole reply to it, or none where none is due. */
static int deliver(Fixture *f, Message *message, size_t size)
{
	const struct fuse_out_header *out = (const void *)f->wire.reply;
	size_t n;

	message->in.unique = f->wire.unique += 2;
	n = tn_wire_raw(&f->wire, message, size);
	if (size < sizeof(message->in) || is_silent(message->in.opcode)) {
		assert_int_equal(n, 0);
		return 0;
	}
	assert_true(n >= sizeof(*out));
	assert_int_equal(out->len, n);
	assert_int_equal(out->unique, message->in.unique);
	assert_true(out->error <= 0 && out->error > -512);
	assert_true(out->error == 0 || n == sizeof(*out));
	return out->error;
}

/* A request in order: names "a" and "b" in the directory, zeros besides. Its size. */
static size_t build(Fixture *f, uint32_t opcode, uint64_t node, Message *ret)
{
	size_t at = fixed_size(opcode);

	memset(ret, 0, sizeof(*ret));
	ret->in.opcode = opcode;
	ret->in.nodeid = node;
	for (size_t i = 0; i < names_of(opcode); i++) {
		ret->rest[at] = (uint8_t)('a' + i);
		at += 2;
	}
	(void)f;
	ret->in.len = (uint32_t)(sizeof(ret->in) + at);
	return ret->in.len;
}

/* Cut short anywhere, told to be so or not. */
static void test_truncated(void **state)
{
	Fixture *f = *state;
	size_t nodes = tn_node_count(f->wire.nest->table);

	for (uint32_t opcode = 0; opcode < OPCODES; opcode++) {
		Message message;
		size_t whole = build(f, opcode, f->nodes[2], &message);

		for (size_t size = 0; size < whole; size++) {
			int r;

			message.in.len = (uint32_t)size;
			r = deliver(f, &message, size);
			if (size >= sizeof(message.in) && !is_silent(opcode) && r != -EINVAL)
				fail_msg("opcode %u of %zu bytes: %d", opcode, size, r);
			message.in.len = (uint32_t)whole;
			r = deliver(f, &message, size);
			if (size >= sizeof(message.in) && !is_silent(opcode))
				assert_int_equal(r, -EINVAL);
		}
	}
	assert_int_equal(tn_node_count(f->wire.nest->table), nodes);
	assert_int_equal(tn_wire_inodes(&f->wire), 4);
	tn_wire_check_account(&f->wire);
}

static void test_wrong_length(void **state)
{
	static const uint32_t lengths[] = {0, 1, 39, 40, 41, UINT32_MAX, INT32_MAX};
	Fixture *f = *state;

	for (uint32_t opcode = 0; opcode < OPCODES; opcode++) {
		Message message;
		size_t whole = build(f, opcode, f->nodes[2], &message);

		for (size_t i = 0; i < TN_ARRAY_LEN(lengths); i++) {
			if (lengths[i] == whole)
				continue;
			message.in.len = lengths[i];
			(void)deliver(f, &message, whole);
		}
	}
	assert_int_equal(tn_wire_inodes(&f->wire), 4);
}

static void test_unknown_nodes(void **state)
{
	static const uint64_t ids[] = {0, 999999, UINT64_MAX, UINT32_MAX};
	Fixture *f = *state;

	for (uint32_t opcode = 0; opcode < OPCODES; opcode++) {
		for (size_t i = 0; i < TN_ARRAY_LEN(ids); i++) {
			Message message;
			size_t size = build(f, opcode, ids[i], &message);
			int r = deliver(f, &message, size);

			if (names_of(opcode) || opcode == FUSE_GETATTR || opcode == FUSE_READ)
				assert_int_equal(r, -ESTALE);
		}
	}
	tn_wire_check_account(&f->wire);
}

/* Names that the VFS never sends. */
static void test_bad_names(void **state)
{
	static const struct {
		const char *name;
		size_t size;
		int error;
	} rows[] = {
		{"", 1, -EINVAL},   {".", 2, -EINVAL},
		{"..", 3, -EINVAL}, {"a/b", 4, -EINVAL},
		{"/", 2, -EINVAL},  {"a", 1, -EINVAL}, /* no end */
		{"", 0, -EINVAL},   {"x/../../../y", 13, -EINVAL},
	};
	Fixture *f = *state;
	char longest[256];

	memset(longest, 'n', sizeof(longest));
	for (uint32_t opcode = 0; opcode < OPCODES; opcode++) {
		bool xattr = opcode == FUSE_SETXATTR || opcode == FUSE_GETXATTR ||
			     opcode == FUSE_REMOVEXATTR;
		size_t fixed = fixed_size(opcode);
		Message message;
		int r;

		if (names_of(opcode) == 0 || xattr)
			continue;
		for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
			build(f, opcode, f->nodes[1], &message);
			memset(message.rest + fixed, 0, sizeof(message.rest) - fixed);
			memcpy(message.rest + fixed, rows[i].name, rows[i].size);
			message.in.len = (uint32_t)(sizeof(message.in) + fixed + rows[i].size);
			if (names_of(opcode) == 2 && rows[i].size &&
			    rows[i].name[rows[i].size - 1] == 0) {
				message.rest[fixed + rows[i].size] = 'b';
				message.in.len += 2;
			}
			r = deliver(f, &message, message.in.len);
			if (r != rows[i].error)
				fail_msg("opcode %u, name \"%s\": %d", opcode, rows[i].name, r);
		}
		build(f, opcode, f->nodes[1], &message);
		memcpy(message.rest + fixed, longest, sizeof(longest));
		memcpy(message.rest + fixed + sizeof(longest), "\0b", 3);
		message.in.len = (uint32_t)(sizeof(message.in) + fixed + sizeof(longest) +
					    (names_of(opcode) == 2 ? 3 : 1));
		assert_int_equal(deliver(f, &message, message.in.len), -ENAMETOOLONG);
	}
	assert_int_equal(tn_wire_inodes(&f->wire), 4);
	tn_wire_check_account(&f->wire);
}

static void test_bad_second_name(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;
	char name[257];

	memset(name, 'n', 256);
	name[256] = '\0';
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "", 0), -EINVAL);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "..", 0), -EINVAL);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, "a/b", 0), -EINVAL);
	assert_int_equal(tn_wire_rename(w, w->tmp, "f", w->tmp, name, 0), -ENAMETOOLONG);
	assert_int_equal(tn_wire_lookup(w, w->tmp, "f"), 0);
}

static void test_sizes(void **state)
{
	Fixture *f = *state;
	TnWire *w = &f->wire;
	struct fuse_write_in write_in = {.size = UINT32_MAX};
	struct fuse_read_in read_in = {.size = UINT32_MAX};
	struct fuse_setxattr_in setxattr_in = {.size = UINT32_MAX};
	TN_AUTOFREE uint8_t *data = calloc(1, TN_MAX_WRITE);

	assert_int_equal(tn_wire_write(w, f->nodes[3], 0, data, TN_MAX_WRITE), TN_MAX_WRITE);
	assert_int_equal(
		tn_wire_call(w, FUSE_WRITE, f->nodes[3], &write_in, sizeof(write_in), "x", 1),
		-EINVAL);
	write_in.size = 2;
	assert_int_equal(
		tn_wire_call(w, FUSE_WRITE, f->nodes[3], &write_in, sizeof(write_in), "x", 1),
		-EINVAL);
	assert_int_equal(
		tn_wire_call(w, FUSE_READ, f->nodes[3], &read_in, sizeof(read_in), NULL, 0), 0);
	assert_int_equal(w->out_size, TN_MAX_WRITE);
	assert_int_equal(tn_wire_call(w, FUSE_SETXATTR, f->nodes[3], &setxattr_in,
				      sizeof(setxattr_in), "user.x\0v", 8),
			 -EINVAL);
	setxattr_in.size = 2;
	assert_int_equal(tn_wire_call(w, FUSE_SETXATTR, f->nodes[3], &setxattr_in,
				      sizeof(setxattr_in), "user.x\0v", 8),
			 -EINVAL);
	assert_int_equal(tn_wire_call(w, FUSE_SETXATTR, f->nodes[3], &setxattr_in,
				      sizeof(setxattr_in), "user.x", 6),
			 -EINVAL);
	assert_int_equal(tn_wire_getxattr(w, f->nodes[3], "user.x", UINT32_MAX), -ENODATA);
	assert_int_equal(tn_wire_listxattr(w, f->nodes[3], UINT32_MAX), 0);
	tn_wire_check_account(w);
}

/* --- noise ----------------------------------------------------------------------------------- */

static void scramble(Message *message, size_t size, TnDice *dice)
{
	uint64_t n = tn_dice(dice, 6);

	while (n-- > 0 && size > sizeof(message->in)) {
		size_t at = tn_dice(dice, size - sizeof(message->in));

		message->rest[at] = tn_dice(dice, 3) ? (uint8_t)tn_dice(dice, 256)
						     : (uint8_t)(tn_dice(dice, 2) * 0xff);
	}
}

static uint64_t pick_node(Fixture *f, TnDice *dice)
{
	if (tn_dice(dice, 3))
		return f->nodes[tn_dice(dice, TN_ARRAY_LEN(f->nodes))];
	return tn_dice(dice, 64);
}

/* Requests that are right but for some bytes: of names that exist, on nodes that exist. */
static void test_noise(void **state)
{
	static const char *const names[] = {"d", "f", "l", "p", "a", "b", "no", "user.x", "tmp"};
	Fixture *f = *state;
	TnDice dice = {tn_test_seed()};

	for (int round = 0; round < 30000; round++) {
		uint32_t opcode = (uint32_t)tn_dice(&dice, OPCODES);
		size_t fixed = fixed_size(opcode), at = fixed;
		Message message;

		build(f, opcode, pick_node(f, &dice), &message);
		for (size_t i = 0; i < names_of(opcode); i++) {
			strcpy((char *)message.rest + at,
			       names[tn_dice(&dice, TN_ARRAY_LEN(names))]);
			at += strlen((char *)message.rest + at) + 1;
		}
		if (fixed >= 8 && tn_dice(&dice, 2)) { /* newdir, oldnodeid, mode or valid */
			uint64_t word = tn_dice(&dice, 2) ? pick_node(f, &dice) : S_IFREG | 0644;

			memcpy(message.rest, &word, sizeof(word));
		}
		at += tn_dice(&dice, 4) ? 0 : tn_dice(&dice, sizeof(message.rest) - at);
		message.in.len = (uint32_t)(sizeof(message.in) + at);
		scramble(&message, message.in.len, &dice);
		(void)deliver(f, &message, message.in.len);
		if (round % 100 == 0)
			tn_wire_check_account(&f->wire);
	}
	tn_wire_check_account(&f->wire);
	assert_true(tn_count_fds() < f->wire.fds + 600);
}

/* Nothing but noise after the header. */
static void test_pure_noise(void **state)
{
	Fixture *f = *state;
	TnDice dice = {tn_test_seed()};

	for (int round = 0; round < 30000; round++) {
		Message message = {.in = {.opcode = (uint32_t)tn_dice(&dice, OPCODES)}};
		size_t size = sizeof(message.in) + tn_dice(&dice, sizeof(message.rest));

		message.in.nodeid = pick_node(f, &dice);
		message.in.len = (uint32_t)size;
		for (size_t i = 0; i < sizeof(message.rest); i++)
			message.rest[i] = (uint8_t)(tn_dice(&dice, 3) ? tn_dice(&dice, 256) : 0);
		(void)deliver(f, &message, size);
	}
	tn_wire_check_account(&f->wire);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_truncated), TEST(test_wrong_length),    TEST(test_unknown_nodes),
		TEST(test_bad_names), TEST(test_bad_second_name), TEST(test_sizes),
		TEST(test_noise),     TEST(test_pure_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
