/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* attach-proto: round trips, and every way in which a message can be wrong. */
#include "attach-proto.h"

#include "macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A message in memory of exactly its size, so that a sanitizer sees a read past its end. */
typedef struct Message {
	uint8_t *bytes;
	size_t size;
} Message;

static uint8_t scratch[TN_ATTACH_MAX];

static Message take(TnAttachWriter *writer)
{
	int size = tn_attach_end(writer);
	Message message;

	assert_true(size > 0);
	message.size = (size_t)size;
	message.bytes = malloc(message.size);
	assert_non_null(message.bytes);
	memcpy(message.bytes, scratch, message.size);
	return message;
}

static void free_message(Message *message)
{
	free(message->bytes);
	*message = (Message){0};
}

static TnAttachRequest request_head(uint16_t verb, uint32_t flags)
{
	TnAttachRequest head = {
		.verb = verb,
		.flags = flags,
		.bytes = 1,
		.inodes = 2,
		.ttl = 3,
		.idle_ttl = TN_UNLIMITED,
		.store = TN_STORE_MEMORY,
	};

	for (size_t i = 0; i < sizeof(head.request_id); i++)
		head.request_id[i] = (uint8_t)(i + 1);
	return head;
}

static Message full_request(void)
{
	static const struct {
		TnAttachFrom from;
		char path[12];
	} from = {{11, 22}, "/a/b/claude"};
	TnAttachRequest head = request_head(TN_ATTACH_ATTACH, TN_ATTACH_HAS_LEASE);
	TnAttachWriter writer;

	tn_attach_begin_request(&writer, scratch, &head);
	tn_attach_add(&writer, TN_RECORD_FROM, &from, sizeof(from.from) + sizeof(from.path));
	tn_attach_add_string(&writer, TN_RECORD_DENY, "/tmp/deny");
	tn_attach_add_string(&writer, TN_RECORD_READ_ONLY, "");
	tn_attach_add_mount_point(&writer, TN_MOUNT_POINT_DIR, "/tmp/ws");
	tn_attach_add_mount_point(&writer, TN_MOUNT_POINT_FILE, "/tmp/s.sock");
	return take(&writer);
}

static void request_round_trip(void **state)
{
	Message message = full_request();
	TnAttachRequest head;
	TnAttachRecord record;
	TnMountPointKind kind;
	TnAttachFrom from;
	size_t offset = 0;

	assert_int_equal(tn_attach_check_request(message.bytes, message.size, &head), 0);
	assert_int_equal(head.magic, TN_ATTACH_MAGIC);
	assert_int_equal(head.version, TN_ATTACH_VERSION);
	assert_int_equal(head.size, message.size);
	assert_int_equal(message.size % 8, 0);
	assert_int_equal(head.verb, TN_ATTACH_ATTACH);
	assert_int_equal(head.bytes, 1);
	assert_int_equal(head.inodes, 2);
	assert_int_equal(head.ttl, 3);
	assert_true(head.idle_ttl == TN_UNLIMITED);
	assert_int_equal(head.store, TN_STORE_MEMORY);
	assert_int_equal(head.request_id[15], 16);

	assert_true(tn_attach_next(message.bytes, message.size, false, &offset, &record));
	assert_int_equal(record.type, TN_RECORD_FROM);
	assert_string_equal(tn_attach_from(&record, &from), "/a/b/claude");
	assert_int_equal(from.dev, 11);
	assert_int_equal(from.ino, 22);
	assert_true(tn_attach_next(message.bytes, message.size, false, &offset, &record));
	assert_int_equal(record.type, TN_RECORD_DENY);
	assert_string_equal(record.data, "/tmp/deny");
	assert_int_equal(record.length, sizeof("/tmp/deny"));
	assert_true(tn_attach_next(message.bytes, message.size, false, &offset, &record));
	assert_int_equal(record.type, TN_RECORD_READ_ONLY);
	assert_string_equal(record.data, "");
	assert_true(tn_attach_next(message.bytes, message.size, false, &offset, &record));
	assert_string_equal(tn_attach_mount_point(&record, &kind), "/tmp/ws");
	assert_int_equal(kind, TN_MOUNT_POINT_DIR);
	assert_true(tn_attach_next(message.bytes, message.size, false, &offset, &record));
	assert_string_equal(tn_attach_mount_point(&record, &kind), "/tmp/s.sock");
	assert_int_equal(kind, TN_MOUNT_POINT_FILE);
	assert_false(tn_attach_next(message.bytes, message.size, false, &offset, &record));
	assert_false(tn_attach_next(message.bytes, message.size, false, &offset, &record));
	free_message(&message);
}

static Message full_reply(void)
{
	const TnAttachReply head = {
		.status = EACCES,
		.flags = TN_ATTACHED_CREATED,
		.nest_id = 1,
		.attachment_id = 2,
		.instance_id = 3,
		.store_dev = 4,
		.store_ino = 5,
		.runtime_dev = 6,
		.runtime_ino = 7,
	};
	uint32_t point_state = TN_POINT_READ_ONLY;
	TnAttachWriter writer;

	tn_attach_begin_reply(&writer, scratch, &head);
	tn_attach_add_string(&writer, TN_RECORD_TEXT, "another's nest");
	tn_attach_add_string(&writer, TN_RECORD_DENIED, "/tmp/claude");
	tn_attach_add(&writer, TN_RECORD_POINT_STATE, &point_state, sizeof(point_state));
	return take(&writer);
}

static void reply_round_trip(void **state)
{
	Message message = full_reply();
	TnAttachReply head;
	TnAttachRecord record;
	size_t offset = 0;
	uint32_t point_state;

	assert_int_equal(tn_attach_check_reply(message.bytes, message.size, &head), 0);
	assert_int_equal(head.status, EACCES);
	assert_int_equal(head.flags, TN_ATTACHED_CREATED);
	assert_int_equal(head.attachment_id, 2);
	assert_int_equal(head.runtime_ino, 7);
	assert_true(tn_attach_next(message.bytes, message.size, true, &offset, &record));
	assert_int_equal(record.type, TN_RECORD_TEXT);
	assert_string_equal(record.data, "another's nest");
	assert_true(tn_attach_next(message.bytes, message.size, true, &offset, &record));
	assert_int_equal(record.type, TN_RECORD_DENIED);
	assert_true(tn_attach_next(message.bytes, message.size, true, &offset, &record));
	assert_int_equal(record.type, TN_RECORD_POINT_STATE);
	memcpy(&point_state, record.data, sizeof(point_state));
	assert_int_equal(point_state, TN_POINT_READ_ONLY);
	assert_false(tn_attach_next(message.bytes, message.size, true, &offset, &record));
	free_message(&message);
}

/* A request of one name, then the change, then the judgement. */
static int check_changed(size_t offset, size_t width, uint64_t value)
{
	TnAttachRequest head = request_head(TN_ATTACH_ATTACH, 0);
	TnAttachWriter writer;
	Message message;
	int r;

	tn_attach_begin_request(&writer, scratch, &head);
	tn_attach_add_string(&writer, TN_RECORD_NAME, "box");
	message = take(&writer);
	assert_true(offset + width <= message.size);
	memcpy(message.bytes + offset, &value, width);
	r = tn_attach_check_request(message.bytes, message.size, &head);
	free_message(&message);
	return r;
}

#define FIELD(type, name) offsetof(type, name), sizeof(((type *)NULL)->name)

static void wrong_request_heads(void **state)
{
	size_t record = sizeof(TnAttachRequest);

	/* what is changed to its own value stays right */
	assert_int_equal(check_changed(FIELD(TnAttachRequest, magic), TN_ATTACH_MAGIC), 0);
	assert_int_equal(check_changed(record + 8, 1, 'B'), 0);

	assert_int_equal(check_changed(FIELD(TnAttachRequest, magic), TN_ATTACH_MAGIC ^ 1),
			 -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, version), 0), -EPROTONOSUPPORT);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, version), 2), -EPROTONOSUPPORT);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, verb), 0), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, verb), 4), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, size), 0), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, size), record), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, size), record + 24), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, flags), 1 << 7), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, flags), 1U << 31), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, store), 4), -EPROTO);
	assert_int_equal(check_changed(FIELD(TnAttachRequest, reserved), 1), -EPROTO);
	/* a name and yet no name */
	assert_int_equal(check_changed(FIELD(TnAttachRequest, flags), TN_ATTACH_EPHEMERAL),
			 -EPROTO);

	/* the record's type, length, content, padding */
	assert_int_equal(check_changed(record, 4, 0), -EPROTO);
	assert_int_equal(check_changed(record, 4, 6), -EPROTO);
	assert_int_equal(check_changed(record, 4, TN_RECORD_TEXT), -EPROTO);
	assert_int_equal(check_changed(record, 4, TN_RECORD_FROM), -EPROTO);
	assert_int_equal(check_changed(record, 4, TN_RECORD_MOUNT_POINT), -EPROTO);
	assert_int_equal(check_changed(record + 4, 4, 0), -EPROTO);
	assert_int_equal(check_changed(record + 4, 4, 3), -EPROTO);
	assert_int_equal(check_changed(record + 4, 4, 5), -EPROTO);
	assert_int_equal(check_changed(record + 4, 4, 9), -EPROTO);
	assert_int_equal(check_changed(record + 4, 4, 1U << 31), -EPROTO);
	assert_int_equal(check_changed(record + 4, 4, UINT32_MAX), -EPROTO);
	assert_int_equal(check_changed(record + 4, 4, UINT32_MAX - 7), -EPROTO);
	assert_int_equal(check_changed(record + 9, 1, 0), -EPROTO);
	assert_int_equal(check_changed(record + 11, 1, 'x'), -EPROTO);
	assert_int_equal(check_changed(record + 12, 1, 1), -EPROTO);
	assert_int_equal(check_changed(record + 15, 1, 1), -EPROTO);
}

static int check_reply_changed(size_t offset, size_t width, uint64_t value)
{
	Message message = full_reply();
	TnAttachReply head;
	int r;

	memcpy(message.bytes + offset, &value, width);
	r = tn_attach_check_reply(message.bytes, message.size, &head);
	if (r == -EPROTONOSUPPORT)
		assert_int_equal(head.version, value);
	free_message(&message);
	return r;
}

static void wrong_replies(void **state)
{
	size_t record = sizeof(TnAttachReply);

	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, status), 0), 0);
	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, magic), 0), -EPROTO);
	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, version), 7), -EPROTONOSUPPORT);
	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, reserved), 1), -EPROTO);
	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, size), 1), -EPROTO);
	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, status), (uint32_t)-EACCES),
			 -EPROTO);
	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, flags), 4), -EPROTO);
	assert_int_equal(check_reply_changed(FIELD(TnAttachReply, reserved2), 1), -EPROTO);
	assert_int_equal(check_reply_changed(record, 4, TN_RECORD_NAME), -EPROTO);
	assert_int_equal(check_reply_changed(record, 4, TN_RECORD_POINT_STATE), -EPROTO);
	/* the third record is the point's state; a text of 15 and a path of 12 bytes before it */
	assert_int_equal(check_reply_changed(record + 24 + 24 + 8, 4, 0), -EPROTO);
	assert_int_equal(check_reply_changed(record + 24 + 24 + 8, 4, 4), -EPROTO);
	assert_int_equal(check_reply_changed(record + 24 + 24 + 4, 4, 8), -EPROTO);
	/* the second becomes a second text */
	assert_int_equal(check_reply_changed(record + 24, 4, TN_RECORD_TEXT), -EPROTO);
}

/* Any prefix of a message is wrong, and is never read past its end. */
static void cut_short(void **state)
{
	Message request = full_request();
	Message reply = full_reply();
	TnAttachRequest request_copy;
	TnAttachReply reply_copy;

	assert_int_equal(tn_attach_check_request(request.bytes, request.size, &request_copy), 0);
	assert_int_equal(tn_attach_check_reply(reply.bytes, reply.size, &reply_copy), 0);

	for (size_t size = 0; size < request.size; size++) {
		uint8_t *part = malloc(size ? size : 1);

		memcpy(part, request.bytes, size);
		assert_int_equal(tn_attach_check_request(part, size, &request_copy), -EPROTO);
		free(part);
	}
	for (size_t size = 0; size < reply.size; size++) {
		uint8_t *part = malloc(size ? size : 1);

		memcpy(part, reply.bytes, size);
		assert_int_equal(tn_attach_check_reply(part, size, &reply_copy), -EPROTO);
		free(part);
	}
	free_message(&request);
	free_message(&reply);
}

/* One byte more than the message says, and a message one record short of what it says. */
static void surplus(void **state)
{
	Message message = full_request();
	uint8_t *longer = calloc(1, message.size + 8);
	TnAttachRequest head;
	uint32_t size = (uint32_t)message.size + 8;

	memcpy(longer, message.bytes, message.size);
	assert_int_equal(tn_attach_check_request(longer, message.size + 8, &head), -EPROTO);
	/* eight zero bytes are a record of type 0 */
	memcpy(longer + offsetof(TnAttachRequest, size), &size, sizeof(size));
	assert_int_equal(tn_attach_check_request(longer, message.size + 8, &head), -EPROTO);
	free(longer);
	free_message(&message);
}

/* Every single-bit error of a full request: judged, never followed out of bounds. */
static void flipped_bits(void **state)
{
	Message message = full_request();
	size_t n_taken = 0;

	for (size_t bit = 0; bit < message.size * 8; bit++) {
		TnAttachRequest head;
		TnAttachRecord record;
		size_t offset = 0;

		message.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (tn_attach_check_request(message.bytes, message.size, &head) == 0) {
			size_t n = 0;

			while (tn_attach_next(message.bytes, message.size, false, &offset,
					      &record)) {
				assert_true((const uint8_t *)record.data + record.length <=
					    message.bytes + message.size);
				n++;
			}
			assert_int_equal(n, 5);
			n_taken++;
		}
		message.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	/* at least the request id, the limits and the device and inode may be anything */
	assert_true(n_taken > 64 * 8);
	free_message(&message);
}

typedef struct VerbCase {
	uint16_t verb;
	uint32_t flags;
	int names, froms, rules;
	int result;
} VerbCase;

static void which_nest(void **state)
{
	static const VerbCase cases[] = {
		{TN_ATTACH_ATTACH, 0, 1, 0, 0, 0},
		{TN_ATTACH_ATTACH, 0, 0, 1, 0, 0},
		{TN_ATTACH_ATTACH, TN_ATTACH_EPHEMERAL, 0, 0, 0, 0},
		{TN_ATTACH_ATTACH, TN_ATTACH_EPHEMERAL | TN_ATTACH_KEEP, 0, 0, 3, 0},
		{TN_ATTACH_ATTACH, TN_ATTACH_DURABLE | TN_ATTACH_NO_VAR_TMP, 1, 0, 0, 0},
		{TN_ATTACH_ATTACH, 0, 0, 0, 0, -EPROTO},
		{TN_ATTACH_ATTACH, 0, 2, 0, 0, -EPROTO},
		{TN_ATTACH_ATTACH, 0, 1, 1, 0, -EPROTO},
		{TN_ATTACH_ATTACH, TN_ATTACH_EPHEMERAL, 0, 1, 0, -EPROTO},
		{TN_ATTACH_CREATE, 0, 1, 0, 2, 0},
		{TN_ATTACH_CREATE, 0, 0, 0, 0, -EPROTO},
		{TN_ATTACH_CREATE, TN_ATTACH_EPHEMERAL, 0, 0, 0, -EPROTO},
		{TN_ATTACH_CREATE, TN_ATTACH_HAS_LEASE, 1, 0, 0, -EPROTO},
		{TN_ATTACH_PING, 0, 0, 0, 0, 0},
		{TN_ATTACH_PING, 0, 1, 0, 0, -EPROTO},
		{TN_ATTACH_PING, 0, 0, 0, 1, -EPROTO},
		{TN_ATTACH_PING, TN_ATTACH_HAS_LEASE, 0, 0, 0, -EPROTO},
		{TN_ATTACH_ATTACH, 0, 1, 0, TN_ATTACH_RULES_MAX, 0},
		{TN_ATTACH_ATTACH, 0, 1, 0, TN_ATTACH_RULES_MAX + 1, -EPROTO},
	};
	static const uint8_t from[sizeof(TnAttachFrom) + 2] = {[sizeof(TnAttachFrom)] = '/'};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		const VerbCase *c = &cases[i];
		TnAttachRequest head = request_head(c->verb, c->flags);
		TnAttachWriter writer;
		Message message;
		int r;

		tn_attach_begin_request(&writer, scratch, &head);
		for (int j = 0; j < c->names; j++)
			tn_attach_add_string(&writer, TN_RECORD_NAME, "n");
		for (int j = 0; j < c->froms; j++)
			tn_attach_add(&writer, TN_RECORD_FROM, from, sizeof(from));
		for (int j = 0; j < c->rules; j++)
			tn_attach_add_string(&writer, TN_RECORD_DENY, "/tmp/x");
		message = take(&writer);
		r = tn_attach_check_request(message.bytes, message.size, &head);
		if (r != c->result)
			fail_msg("case %zu: %d", i, r);
		free_message(&message);
	}
}

static void wrong_mount_points(void **state)
{
	static const struct {
		uint32_t kind, reserved;
		const char *path;
		uint32_t length; /* of the whole record */
		int result;
	} cases[] = {
		{TN_MOUNT_POINT_DIR, 0, "/a", 11, 0},
		{0, 0, "/a", 11, -EPROTO},
		{3, 0, "/a", 11, -EPROTO},
		{TN_MOUNT_POINT_DIR, 1, "/a", 11, -EPROTO},
		{TN_MOUNT_POINT_DIR, 0, "/a", 10, -EPROTO},
		{TN_MOUNT_POINT_DIR, 0, "/a", 12, -EPROTO},
		{TN_MOUNT_POINT_DIR, 0, "", 8, -EPROTO},
		{TN_MOUNT_POINT_DIR, 0, "", 4, -EPROTO},
		{TN_MOUNT_POINT_DIR, 0, "", 0, -EPROTO},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		uint8_t bytes[16] = {0};
		TnAttachRequest head = request_head(TN_ATTACH_ATTACH, TN_ATTACH_EPHEMERAL);
		TnAttachWriter writer;
		Message message;

		memcpy(bytes, &cases[i].kind, 4);
		memcpy(bytes + 4, &cases[i].reserved, 4);
		memcpy(bytes + 8, cases[i].path, strlen(cases[i].path));
		tn_attach_begin_request(&writer, scratch, &head);
		tn_attach_add(&writer, TN_RECORD_MOUNT_POINT, bytes, cases[i].length);
		message = take(&writer);
		assert_int_equal(tn_attach_check_request(message.bytes, message.size, &head),
				 cases[i].result);
		free_message(&message);
	}
}

/* A full message is said to be full, exactly when it is, and stays so. */
static void overflow(void **state)
{
	TnAttachRequest head = request_head(TN_ATTACH_ATTACH, 0);
	size_t room = TN_ATTACH_MAX - sizeof(head) - 2 * 8;
	static uint8_t bytes[TN_ATTACH_MAX];
	TnAttachWriter writer;

	tn_attach_begin_request(&writer, scratch, &head);
	tn_attach_add(&writer, TN_RECORD_NAME, bytes, (uint32_t)room);
	tn_attach_add(&writer, TN_RECORD_NAME, bytes, 0);
	assert_int_equal(tn_attach_end(&writer), TN_ATTACH_MAX);
	tn_attach_add(&writer, TN_RECORD_NAME, bytes, 0);
	assert_int_equal(tn_attach_end(&writer), -EMSGSIZE);

	tn_attach_begin_request(&writer, scratch, &head);
	tn_attach_add(&writer, TN_RECORD_NAME, bytes, (uint32_t)room + 9);
	assert_int_equal(tn_attach_end(&writer), -EMSGSIZE);
	tn_attach_add_string(&writer, TN_RECORD_NAME, "a");
	assert_int_equal(tn_attach_end(&writer), -EMSGSIZE);

	tn_attach_begin_request(&writer, scratch, &head);
	tn_attach_add(&writer, TN_RECORD_NAME, bytes, UINT32_MAX);
	assert_int_equal(tn_attach_end(&writer), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_round_trip),  cmocka_unit_test(reply_round_trip),
		cmocka_unit_test(wrong_request_heads), cmocka_unit_test(wrong_replies),
		cmocka_unit_test(cut_short),           cmocka_unit_test(surplus),
		cmocka_unit_test(flipped_bits),        cmocka_unit_test(which_nest),
		cmocka_unit_test(wrong_mount_points),  cmocka_unit_test(overflow),
	};

	return cmocka_run_group_tests_name("attach-proto", tests, NULL, NULL);
}
