/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as a message of the attach socket, as a request and as a reply. What the check lets
 * through can be walked: every record lies inside, its text ends in it, and written again it
 * is the same message.
 */
#include "attach-proto.h"
#include "promise.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const TnAttachRecord *record, const char *text)
{
	const char *end = (const char *)record->data + record->length;

	PROMISE(text >= (const char *)record->data && text < end);
	PROMISE(text + strlen(text) + 1 == end);
}

static void add(TnAttachWriter *writer, const TnAttachRecord *record)
{
	TnMountPointKind kind;
	TnAttachFrom from;
	const char *text;

	switch (record->type) {
	case TN_RECORD_MOUNT_POINT:
		text = tn_attach_mount_point(record, &kind);
		PROMISE(kind == TN_MOUNT_POINT_FILE || kind == TN_MOUNT_POINT_DIR);
		check_text(record, text);
		tn_attach_add_mount_point(writer, kind, text);
		break;
	case TN_RECORD_FROM:
		check_text(record, tn_attach_from(record, &from));
		tn_attach_add(writer, record->type, record->data, record->length);
		break;
	case TN_RECORD_POINT_STATE:
		tn_attach_add(writer, record->type, record->data, record->length);
		break;
	default:
		check_text(record, record->data);
		tn_attach_add_string(writer, record->type, record->data);
	}
}

static void check_again(const uint8_t *data, size_t size, bool reply, TnAttachWriter *writer)
{
	TnAttachRecord record;
	size_t offset = 0, n = 0;
	int written;

	while (tn_attach_next(data, size, reply, &offset, &record)) {
		PROMISE((const uint8_t *)record.data >= data &&
			(const uint8_t *)record.data + record.length <= data + size);
		add(writer, &record);
		PROMISE(n++ < size);
	}
	written = tn_attach_end(writer);
	PROMISE(written == (int)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t buffer[TN_ATTACH_MAX];
	TnAttachRequest request;
	TnAttachReply reply;
	TnAttachWriter writer;
	uint8_t *copy = malloc(size ? size : 1); /* exactly this long */
	int r;

	if (size)
		memcpy(copy, data, size);
	r = tn_attach_check_request(copy, size, &request);
	PROMISE(r == 0 || r == -EPROTO || r == -EPROTONOSUPPORT);
	if (r == 0) {
		tn_attach_begin_request(&writer, buffer, &request);
		check_again(copy, size, false, &writer);
		PROMISE(tn_attach_check_request(buffer, size, &request) == 0);
	}
	r = tn_attach_check_reply(copy, size, &reply);
	PROMISE(r == 0 || r == -EPROTO || r == -EPROTONOSUPPORT);
	if (r == 0) {
		tn_attach_begin_reply(&writer, buffer, &reply);
		check_again(copy, size, true, &writer);
	}
	free(copy);
	return 0;
}
