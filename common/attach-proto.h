/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The attach protocol: how a launcher asks the daemon for a view of a nest.
 *
 * One SOCK_SEQPACKET request, one reply, on RUNTIME/attach.sock. Both ends run on one
 * machine, so integers are in host byte order. A message is a fixed head followed by
 * records {type, length, bytes} that are padded with zeros to 8 bytes; `size` counts
 * the whole message. Strings carry their terminating NUL inside `length`.
 *
 * Descriptors of a request, in this order: the caller's /proc/self/ns/user; the read
 * end of its lease when TN_ATTACH_HAS_LEASE is set; an O_PATH descriptor of the
 * directory that the nest is named after when a FROM record is present. The reply
 * carries one descriptor, the detached mount, when status is 0 and verb was ATTACH.
 *
 * Who asks comes from SO_PEERCRED, never from the message. An unknown record, trailing
 * bytes, a bad length or a surplus descriptor is EPROTO; another version is
 * EPROTONOSUPPORT, and the reply's head still says the daemon's version.
 *
 * The codec below is pure: no I/O, no allocation, any thread.
 */
#pragma once

#include "units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_ATTACH_MAGIC 0x4e54414dU /* "MATN" */
#define TN_ATTACH_VERSION 1
#define TN_ATTACH_MAX (192 * 1024) /* bytes of one message; the kernel sends 208 KiB at most */
/* DENY, READ_ONLY and MOUNT_POINT records together: bwrap takes no more than 3,000 mounts. */
#define TN_ATTACH_RULES_MAX 4096

typedef enum TnAttachVerb {
	TN_ATTACH_ATTACH = 1, /* make the nest if missing, mount it, send the mount */
	TN_ATTACH_CREATE = 2, /* make a named nest, no mount; EEXIST when it is there */
	TN_ATTACH_PING = 3,   /* who are you: ids and directories only */
} TnAttachVerb;

enum {
	TN_ATTACH_EPHEMERAL = 1 << 0, /* no NAME record: the daemon invents one */
	TN_ATTACH_KEEP = 1 << 1,      /* an ephemeral nest that outlives its sandbox */
	TN_ATTACH_DURABLE = 1 << 2,
	TN_ATTACH_NO_VAR_TMP = 1 << 3,
	TN_ATTACH_HAS_LEASE = 1 << 4,
	TN_ATTACH_NO_XATTRS = 1 << 5,
	TN_ATTACH_WRITEBACK = 1 << 6,
};

typedef enum TnStoreKind {
	TN_STORE_DEFAULT = 0,
	TN_STORE_DIR = 1,
	TN_STORE_MEMORY = 2,
	TN_STORE_IMAGE = 3,
} TnStoreKind;

/* "dir", "memory" or "image"; "dir" for any other value. */
const char *tn_store_kind_name(TnStoreKind kind);
/* False, *ret unchanged: none of them. */
bool tn_store_kind_parse(const char *text, TnStoreKind *ret);

typedef enum TnAttachRecordType {
	/* request */
	TN_RECORD_NAME = 1,        /* string */
	TN_RECORD_FROM = 2,        /* TnAttachFrom, then the path as a string */
	TN_RECORD_DENY = 3,        /* string: pattern below /tmp or /var/tmp */
	TN_RECORD_READ_ONLY = 4,   /* string, likewise */
	TN_RECORD_MOUNT_POINT = 5, /* uint32_t TnMountPointKind, uint32_t 0, then a string */
	/* reply */
	TN_RECORD_TEXT = 16,        /* string: one line for the user */
	TN_RECORD_DENIED = 17,      /* string: the path of a deny rule, normal, with its subtree */
	TN_RECORD_POINT_STATE = 18, /* uint32_t TnMountPointState, one per MOUNT_POINT, in order */
} TnAttachRecordType;

typedef enum TnMountPointKind {
	TN_MOUNT_POINT_FILE = 1,
	TN_MOUNT_POINT_DIR = 2,
} TnMountPointKind;

typedef enum TnMountPointState {
	TN_POINT_PINNED = 1,
	TN_POINT_DENIED = 2,
	TN_POINT_READ_ONLY = 3,
} TnMountPointState;

typedef struct TnAttachFrom {
	uint64_t dev;
	uint64_t ino;
} TnAttachFrom;

typedef struct TnAttachRequest {
	uint32_t magic;
	uint16_t version;
	uint16_t verb; /* TnAttachVerb */
	uint32_t size; /* bytes of the whole message */
	uint32_t flags;
	uint8_t request_id[16]; /* random; the same again after an end-of-file */
	uint64_t bytes;         /* 0 = default, TN_UNLIMITED = none */
	uint64_t inodes;        /* likewise */
	uint64_t ttl;           /* seconds; likewise */
	uint64_t idle_ttl;      /* seconds; likewise */
	uint32_t store;         /* TnStoreKind */
	uint32_t reserved;      /* 0 */
} TnAttachRequest;

enum {
	TN_ATTACHED_CREATED = 1 << 0, /* the nest was made by this request */
	TN_ATTACHED_FROZEN = 1 << 1,
};

typedef struct TnAttachReply {
	uint32_t magic;
	uint16_t version;
	uint16_t reserved;
	uint32_t size;
	int32_t status; /* 0 or a positive errno */
	uint32_t flags;
	uint32_t reserved2;
	uint64_t nest_id;
	uint64_t attachment_id;
	uint64_t instance_id; /* of the daemon: another one means that it was restarted */
	uint64_t store_dev, store_ino;
	uint64_t runtime_dev, runtime_ino;
} TnAttachReply;

typedef struct TnAttachRecord {
	TnAttachRecordType type;
	const void *data;
	uint32_t length;
} TnAttachRecord;

/* Builds one message in buffer (TN_ATTACH_MAX bytes). Not thread-safe per object. */
typedef struct TnAttachWriter {
	uint8_t *buffer;
	size_t used;
	bool overflow; /* sticky: one more record did not fit */
} TnAttachWriter;

/* Starts a message with a copy of the head (request or reply); magic, version and size are set. */
void tn_attach_begin_request(TnAttachWriter *writer, uint8_t *buffer, const TnAttachRequest *head);
void tn_attach_begin_reply(TnAttachWriter *writer, uint8_t *buffer, const TnAttachReply *head);
void tn_attach_add(TnAttachWriter *writer, TnAttachRecordType type, const void *data,
		   uint32_t length);
void tn_attach_add_string(TnAttachWriter *writer, TnAttachRecordType type, const char *text);
void tn_attach_add_mount_point(TnAttachWriter *writer, TnMountPointKind kind, const char *path);
/* Bytes of the finished message, or -EMSGSIZE when something did not fit. */
int tn_attach_end(TnAttachWriter *writer);

/*
 * Checks a whole message: head, size, every record's type, bounds and form (strings
 * end in NUL and hold no other), that a name fits the verb, and the number of rules.
 * 0, -EPROTO or -EPROTONOSUPPORT. *ret_head is a copy; for another version, or what is
 * no message at all, only its version (0: none) is set.
 */
int tn_attach_check_request(const void *message, size_t size, TnAttachRequest *ret_head);
int tn_attach_check_reply(const void *message, size_t size, TnAttachReply *ret_head);

/*
 * Walks the records of a *checked* message; *offset starts at 0. False at the end.
 * For TN_RECORD_MOUNT_POINT and TN_RECORD_FROM use the accessors.
 */
bool tn_attach_next(const void *message, size_t size, bool reply, size_t *offset,
		    TnAttachRecord *ret);
const char *tn_attach_mount_point(const TnAttachRecord *record, TnMountPointKind *ret_kind);
const char *tn_attach_from(const TnAttachRecord *record, TnAttachFrom *ret);
