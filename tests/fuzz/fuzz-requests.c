/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any sequence of FUSE requests to a nest on a scratch directory. Every answer has the form that
 * the kernel takes, and in the end the account is what a count of the store says and nothing is
 * left open. The first byte chooses the kind of nest; then come records of
 *
 *   opcode, node id (255: the highest), flags, length, and that many bytes after the header.
 */
#include "harness.h"
#include "promise.h"

#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { /* flags of a record */
       UNDELIVERED = 1 << 0,
       WRONG_LENGTH = 1 << 1, /* in the header */
       OTHER_USER = 1 << 2,
       LONG = 1 << 3, /* the last byte many times more */
};
#define RECORDS_MOST 200
#define LONGER 5000U

typedef struct Message {
	struct fuse_in_header in;
	uint8_t rest[256 + LONGER];
} Message;

static void check_reply(const TnWire *wire, size_t n, const Message *message)
{
	const struct fuse_out_header *out = (const void *)wire->reply;

	if (n == 0)
		return;
	PROMISE(n >= sizeof(*out) && out->len == n && out->unique == message->in.unique);
	PROMISE(out->error <= 0 && out->error > -512);
	PROMISE(out->error == 0 || n == sizeof(*out));
}

static size_t fill(Message *message, const uint8_t *record, size_t length, uint64_t unique)
{
	uint8_t flags = record[2];

	message->in = (struct fuse_in_header){
		.opcode = record[0],
		.unique = unique,
		.nodeid = record[1] == 255 ? UINT64_MAX : record[1],
		.uid = flags & OTHER_USER ? 4242 : geteuid(),
		.gid = flags & OTHER_USER ? 4242 : getegid(),
		.pid = 1,
	};
	memcpy(message->rest, record + 4, length);
	if (flags & LONG && length > 0) {
		memset(message->rest + length, message->rest[length - 1], LONGER);
		length += LONGER;
	}
	length += sizeof(message->in);
	message->in.len = (uint32_t)(length + (flags & WRONG_LENGTH ? 1 : 0));
	return length;
}

static void play(TnWire *wire, const uint8_t *data, size_t size)
{
	static Message message;
	size_t at = 0;

	for (unsigned i = 0; i < RECORDS_MOST && size - at >= 4; i++) {
		const uint8_t *record = data + at;
		size_t length = record[3] < size - at - 4 ? record[3] : size - at - 4;
		size_t n = fill(&message, record, length, wire->unique += 2);

		n = tn_wire_raw(wire, &message, n);
		check_reply(wire, n, &message);
		if (n > 0 && record[2] & UNDELIVERED)
			tn_dispatch_undelivered(wire->nest, (const uint8_t *)&message, wire->reply);
		at += 4 + length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t reply[TN_REPLY_SIZE]; /* the sanitizer takes its time over large ones */
	TnWireSpec spec = {
		.reply = reply,
		.base = tn_scratch_tmpfs(),
		.bytes = 2 << 20,
		.inodes = 100,
		.deny = {"no", "d/deep/no*"},
		.read_only = {"ro"},
	};
	TnWire wire;

	if (size < 5 || size > 4096)
		return 0;
	spec.many_owners = data[0] & 1;
	spec.durable = data[0] & 2;
	tn_wire_open(&wire, &spec);
	play(&wire, data + 1, size - 1);
	setfsgid(getegid());
	setfsuid(geteuid());
	tn_wire_close(&wire);
	return 0;
}
