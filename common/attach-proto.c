/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-proto.h"

#include "macros.h"

#include <errno.h>
#include <string.h>

#define RECORD_ALIGN 8

typedef struct RecordHead {
	uint32_t type;
	uint32_t length; /* bytes that follow, without the padding */
} RecordHead;

/* What both heads begin with, so that another version's message can still be told apart. */
typedef struct CommonHead {
	uint32_t magic;
	uint16_t version;
	uint16_t verb_or_reserved;
	uint32_t size;
} CommonHead;

typedef struct MountPointHead {
	uint32_t kind;
	uint32_t reserved;
} MountPointHead;

_Static_assert(offsetof(TnAttachRequest, version) == offsetof(CommonHead, version), "common head");
_Static_assert(offsetof(TnAttachReply, version) == offsetof(CommonHead, version), "common head");
_Static_assert(offsetof(TnAttachRequest, size) == offsetof(CommonHead, size), "common head");
_Static_assert(offsetof(TnAttachReply, size) == offsetof(CommonHead, size), "common head");
_Static_assert(sizeof(TnAttachRequest) % RECORD_ALIGN == 0, "records are aligned");
_Static_assert(sizeof(TnAttachReply) % RECORD_ALIGN == 0, "records are aligned");

#define REQUEST_FLAGS \
	(TN_ATTACH_EPHEMERAL | TN_ATTACH_KEEP | TN_ATTACH_DURABLE | TN_ATTACH_NO_VAR_TMP | \
	 TN_ATTACH_HAS_LEASE | TN_ATTACH_NO_XATTRS | TN_ATTACH_WRITEBACK)
#define REPLY_FLAGS (TN_ATTACHED_CREATED | TN_ATTACHED_FROZEN)

static size_t padded(size_t length)
{
	return (length + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

static size_t head_size(bool reply)
{
	return reply ? sizeof(TnAttachReply) : sizeof(TnAttachRequest);
}

void tn_attach_begin_request(TnAttachWriter *writer, uint8_t *buffer, const TnAttachRequest *head)
{
	TnAttachRequest copy = *head;

	copy.magic = TN_ATTACH_MAGIC;
	copy.version = TN_ATTACH_VERSION;
	memcpy(buffer, &copy, sizeof(copy));
	*writer = (TnAttachWriter){.buffer = buffer, .used = sizeof(copy)};
}

void tn_attach_begin_reply(TnAttachWriter *writer, uint8_t *buffer, const TnAttachReply *head)
{
	TnAttachReply copy = *head;

	copy.magic = TN_ATTACH_MAGIC;
	copy.version = TN_ATTACH_VERSION;
	memcpy(buffer, &copy, sizeof(copy));
	*writer = (TnAttachWriter){.buffer = buffer, .used = sizeof(copy)};
}

/* Reserves a zeroed record of length bytes; NULL when it does not fit. */
static uint8_t *reserve(TnAttachWriter *writer, TnAttachRecordType type, size_t length)
{
	RecordHead head = {.type = type};
	size_t room = TN_ATTACH_MAX - writer->used;
	uint8_t *start = writer->buffer + writer->used;

	if (writer->overflow || length > TN_ATTACH_MAX || sizeof(head) + padded(length) > room) {
		writer->overflow = true;
		return NULL;
	}
	head.length = (uint32_t)length;
	memcpy(start, &head, sizeof(head));
	memset(start + sizeof(head), 0, padded(length));
	writer->used += sizeof(head) + padded(length);
	return start + sizeof(head);
}

void tn_attach_add(TnAttachWriter *writer, TnAttachRecordType type, const void *data,
		   uint32_t length)
{
	uint8_t *start = reserve(writer, type, length);

	if (start && length > 0)
		memcpy(start, data, length);
}

void tn_attach_add_string(TnAttachWriter *writer, TnAttachRecordType type, const char *text)
{
	size_t length = strlen(text) + 1;
	uint8_t *start = reserve(writer, type, length);

	if (start)
		memcpy(start, text, length);
}

void tn_attach_add_mount_point(TnAttachWriter *writer, TnMountPointKind kind, const char *path)
{
	MountPointHead head = {.kind = kind};
	size_t length = strlen(path) + 1;
	uint8_t *start = reserve(writer, TN_RECORD_MOUNT_POINT, sizeof(head) + length);

	if (start) {
		memcpy(start, &head, sizeof(head));
		memcpy(start + sizeof(head), path, length);
	}
}

static const char *const store_kinds[] = {
	[TN_STORE_DIR] = "dir",
	[TN_STORE_MEMORY] = "memory",
	[TN_STORE_IMAGE] = "image",
};

const char *tn_store_kind_name(TnStoreKind kind)
{
	return kind < TN_ARRAY_LEN(store_kinds) && store_kinds[kind] ? store_kinds[kind] : "dir";
}

bool tn_store_kind_parse(const char *text, TnStoreKind *ret)
{
	for (size_t kind = 0; kind < TN_ARRAY_LEN(store_kinds); kind++) {
		if (store_kinds[kind] && strcmp(store_kinds[kind], text) == 0) {
			*ret = (TnStoreKind)kind;
			return true;
		}
	}
	return false;
}

int tn_attach_end(TnAttachWriter *writer)
{
	uint32_t size = (uint32_t)writer->used;

	if (writer->overflow)
		return -EMSGSIZE;
	memcpy(writer->buffer + offsetof(CommonHead, size), &size, sizeof(size));
	return (int)size;
}

/* A string record: NUL at its end and nowhere else. */
static bool is_string(const void *data, size_t length)
{
	return length > 0 && memchr(data, '\0', length) == (const char *)data + length - 1;
}

static bool request_record_is_valid(const TnAttachRecord *record)
{
	switch (record->type) {
	case TN_RECORD_NAME:
	case TN_RECORD_DENY:
	case TN_RECORD_READ_ONLY:
		return is_string(record->data, record->length);
	case TN_RECORD_FROM:
		return record->length > sizeof(TnAttachFrom) &&
		       is_string((const char *)record->data + sizeof(TnAttachFrom),
				 record->length - sizeof(TnAttachFrom));
	case TN_RECORD_MOUNT_POINT: {
		MountPointHead head;

		if (record->length <= sizeof(head))
			return false;
		memcpy(&head, record->data, sizeof(head));
		if (head.reserved != 0)
			return false;
		if (head.kind != TN_MOUNT_POINT_FILE && head.kind != TN_MOUNT_POINT_DIR)
			return false;
		return is_string((const char *)record->data + sizeof(head),
				 record->length - sizeof(head));
	}
	default:
		return false;
	}
}

static bool reply_record_is_valid(const TnAttachRecord *record)
{
	switch (record->type) {
	case TN_RECORD_TEXT:
	case TN_RECORD_DENIED:
		return is_string(record->data, record->length);
	case TN_RECORD_POINT_STATE: {
		uint32_t state;

		if (record->length != sizeof(state))
			return false;
		memcpy(&state, record->data, sizeof(state));
		return state >= TN_POINT_PINNED && state <= TN_POINT_READ_ONLY;
	}
	default:
		return false;
	}
}

/* How many records of each kind a message holds. */
typedef struct Tally {
	size_t names, froms, rules, texts;
} Tally;

static void count(Tally *tally, TnAttachRecordType type)
{
	switch (type) {
	case TN_RECORD_NAME:
		tally->names++;
		break;
	case TN_RECORD_FROM:
		tally->froms++;
		break;
	case TN_RECORD_DENY:
	case TN_RECORD_READ_ONLY:
	case TN_RECORD_MOUNT_POINT:
		tally->rules++;
		break;
	case TN_RECORD_TEXT:
		tally->texts++;
		break;
	default:
		break;
	}
}

/* The record at offset in *ret, and the offset behind it; -EPROTO when it is cut or padded wrongly.
 */
static int read_record(const uint8_t *message, size_t size, size_t offset, TnAttachRecord *ret,
		       size_t *ret_next)
{
	RecordHead head;
	const uint8_t *data;

	if (size - offset < sizeof(head))
		return -EPROTO;
	memcpy(&head, message + offset, sizeof(head));
	offset += sizeof(head);
	if (head.length > TN_ATTACH_MAX || padded(head.length) > size - offset)
		return -EPROTO;
	data = message + offset;
	for (size_t i = head.length; i < padded(head.length); i++)
		if (data[i] != 0)
			return -EPROTO;
	*ret = (TnAttachRecord){.type = head.type, .data = data, .length = head.length};
	*ret_next = offset + padded(head.length);
	return 0;
}

static int check_records(const void *message, size_t size, bool reply, Tally *ret_tally)
{
	Tally tally = {0};
	size_t offset = head_size(reply);

	while (offset < size) {
		TnAttachRecord record;
		int r = read_record(message, size, offset, &record, &offset);

		if (r < 0)
			return r;
		if (reply ? !reply_record_is_valid(&record) : !request_record_is_valid(&record))
			return -EPROTO;
		count(&tally, record.type);
	}
	*ret_tally = tally;
	return 0;
}

/* Magic, version and size; 0, -EPROTO or -EPROTONOSUPPORT with *ret_version set. */
static int check_common(const void *message, size_t size, bool reply, uint16_t *ret_version)
{
	CommonHead head;

	*ret_version = 0;
	if (size < sizeof(head) || size > TN_ATTACH_MAX)
		return -EPROTO;
	memcpy(&head, message, sizeof(head));
	if (head.magic != TN_ATTACH_MAGIC)
		return -EPROTO;
	*ret_version = head.version;
	if (head.version != TN_ATTACH_VERSION)
		return -EPROTONOSUPPORT;
	if (head.size != size || size < head_size(reply))
		return -EPROTO;
	return 0;
}

/* Exactly one word on which nest is meant, and none where no nest is meant. */
static bool names_fit_verb(const TnAttachRequest *head, const Tally *tally)
{
	size_t ephemeral = head->flags & TN_ATTACH_EPHEMERAL ? 1 : 0;
	size_t named = tally->names + tally->froms;

	switch (head->verb) {
	case TN_ATTACH_ATTACH:
		return named + ephemeral == 1;
	case TN_ATTACH_CREATE:
		return named == 1 && !ephemeral && !(head->flags & TN_ATTACH_HAS_LEASE);
	case TN_ATTACH_PING:
		return named == 0 && tally->rules == 0 && head->flags == 0;
	default:
		return false;
	}
}

int tn_attach_check_request(const void *message, size_t size, TnAttachRequest *ret_head)
{
	TnAttachRequest head;
	Tally tally;
	uint16_t version;
	int r;

	r = check_common(message, size, false, &version);
	if (r < 0) {
		*ret_head = (TnAttachRequest){.version = version};
		return r;
	}
	memcpy(&head, message, sizeof(head));
	*ret_head = head;
	if ((head.flags & ~(uint32_t)REQUEST_FLAGS) || head.store > TN_STORE_IMAGE ||
	    head.reserved != 0)
		return -EPROTO;
	r = check_records(message, size, false, &tally);
	if (r < 0)
		return r;
	if (tally.rules > TN_ATTACH_RULES_MAX || !names_fit_verb(&head, &tally))
		return -EPROTO;
	return 0;
}

int tn_attach_check_reply(const void *message, size_t size, TnAttachReply *ret_head)
{
	TnAttachReply head;
	Tally tally;
	uint16_t version;
	int r;

	r = check_common(message, size, true, &version);
	if (r < 0) {
		*ret_head = (TnAttachReply){.version = version};
		return r;
	}
	memcpy(&head, message, sizeof(head));
	*ret_head = head;
	if ((head.flags & ~(uint32_t)REPLY_FLAGS) || head.status < 0 || head.reserved != 0 ||
	    head.reserved2 != 0)
		return -EPROTO;
	r = check_records(message, size, true, &tally);
	if (r < 0)
		return r;
	return tally.texts > 1 ? -EPROTO : 0;
}

bool tn_attach_next(const void *message, size_t size, bool reply, size_t *offset,
		    TnAttachRecord *ret)
{
	size_t start = *offset == 0 ? head_size(reply) : *offset;

	if (start >= size)
		return false;
	return read_record(message, size, start, ret, offset) == 0;
}

const char *tn_attach_mount_point(const TnAttachRecord *record, TnMountPointKind *ret_kind)
{
	MountPointHead head;

	memcpy(&head, record->data, sizeof(head));
	*ret_kind = head.kind;
	return (const char *)record->data + sizeof(head);
}

const char *tn_attach_from(const TnAttachRecord *record, TnAttachFrom *ret)
{
	memcpy(ret, record->data, sizeof(*ret));
	return (const char *)record->data + sizeof(*ret);
}
