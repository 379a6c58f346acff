/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One FUSE request from its bytes to its reply: checks the form, finds the nodes, calls
 * the operation, replies once. The protocol is that of linux/fuse.h, version 7.31 or later
 * (kernel 5.6; the floor of the product is 6.1), spoken without libfuse.
 *
 * An operation reads its arguments from the request, fills the reply and returns 0, a
 * negative errno, or TN_NO_REPLY. It never replies itself.
 *
 * Any thread; a TnRequest belongs to the thread that serves it.
 */
#pragma once

#include "nest-private.h"
#include "request-size.h"

#include <linux/fuse.h>
#include <stddef.h>

/* Protocol 7.39, newer than the oldest headers we build with: statx(2) with the birth time. */
#define TN_FUSE_STATX 52

typedef struct TnStatxIn {
	uint32_t getattr_flags, reserved;
	uint64_t fh;
	uint32_t sx_flags, sx_mask;
} TnStatxIn;

typedef struct TnStatxTime {
	int64_t sec;
	uint32_t nsec;
	int32_t reserved;
} TnStatxTime;

typedef struct TnStatxOut {
	uint64_t attr_valid;
	uint32_t attr_valid_nsec, flags;
	uint64_t spare[2];
	struct {
		uint32_t mask, blksize;
		uint64_t attributes;
		uint32_t nlink, uid, gid;
		uint16_t mode, spare0;
		uint64_t ino, size, blocks, attributes_mask;
		TnStatxTime atime, btime, ctime, mtime;
		uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
		uint64_t spare2[14];
	} stat;
} TnStatxOut;

/* Linux 6.9: a request that a dead daemon had read comes again, marked so in `unique`. */
#define TN_FUSE_HAS_RESEND (1ULL << 39)
#define TN_FUSE_NOTIFY_RESEND 7
#define TN_FUSE_UNIQUE_RESEND (1ULL << 63)

/* Linux 6.9, protocol 7.40: open files that the kernel reads and writes by itself. */
#define TN_FUSE_PASSTHROUGH (1ULL << 37)
#define TN_FOPEN_PASSTHROUGH (1U << 7)

#define TN_NO_REPLY 1 /* outcome of an operation that the kernel expects no answer to */

/* How long the kernel may keep what it was told: the daemon is the store's only user. */
#define TN_VALID_SECONDS 86400U

typedef struct TnRequest {
	TnNest *nest;
	const struct fuse_in_header *in;
	const uint8_t *arg; /* after the header; at least what the opcode's table row says */
	size_t arg_size;
	const char *name; /* first and second name, checked; or NULL */
	const char *name2;
	uint32_t node; /* index of in->nodeid */
	bool again;    /* it was begun before, by a worker that was killed: see journal.h */

	uint8_t *reply;    /* room for TN_REPLY_SIZE - sizeof(struct fuse_out_header) bytes */
	size_t reply_size; /* bytes the operation filled in */
	struct TnIdentity *identity;
} TnRequest;

/* The file-system ids of the serving thread (setfsuid(2)), changed only when they differ. */
typedef struct TnIdentity {
	uid_t uid;
	gid_t gid;
} TnIdentity;

/* The operation acts with the ids of the request's process: files it makes belong to it. */
void tn_request_become_caller(TnRequest *request);

/* The operations of ops-*.c, by opcode. */
typedef int (*TnOperation)(TnRequest *request);

/*
 * Serves the request of `size` bytes at `message`. The reply lies at reply_buffer
 * (TN_REPLY_SIZE bytes) then. Returns its size, or 0 when there is nothing to send.
 * A malformed request is answered EINVAL (or dropped when not even its header is whole).
 */
size_t tn_dispatch(TnNest *nest, TnIdentity *identity, const uint8_t *message, size_t size,
		   uint8_t *reply_buffer);

/*
 * The kernel did not take the reply (ENOENT: the request was interrupted): takes back the
 * reference that an entry in it would have given.
 */
void tn_dispatch_undelivered(TnNest *nest, const uint8_t *message, const uint8_t *reply);

/* "LOOKUP" for FUSE_LOOKUP; NULL for an opcode this daemon has no name for. */
const char *tn_opcode_name(uint32_t opcode);
