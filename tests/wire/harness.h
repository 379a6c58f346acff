/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest on a scratch directory, driven with raw FUSE requests (linux/fuse.h): no mount, no
 * kernel, no root. Every reply is checked for its form; the account is compared with a
 * recount of the store when asked.
 */
#pragma once

#include "dispatch.h"
#include "ops.h"
#include "scratch.h"

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_WIRE_SILENT 1 /* outcome of a call: no reply */

typedef struct TnWireSpec {
	const char *base;       /* directory for the scratch, or NULL */
	uint64_t bytes, inodes; /* 0: unlimited */
	TnStoreKind kind;       /* the store's operations; TN_STORE_DEFAULT: dir */
	bool many_owners, durable;
	const char *deny[8], *read_only[8]; /* up to the first NULL */
	uint8_t *reply; /* TN_REPLY_SIZE bytes that stay the caller's, or NULL */
} TnWireSpec;

typedef struct TnWire {
	TnScratch scratch;
	TnNest *nest;
	TnFdCache *dirs, *files;
	TnIdentity identity;
	uint32_t uid, gid; /* in the requests' headers */
	uint64_t unique;
	uint64_t tmp, var; /* nodeids of the subtrees, looked up once */
	uint8_t *reply;    /* the last one, header and payload */
	bool borrows_reply;
	const uint8_t *out;
	size_t out_size;
	struct fuse_entry_out entry; /* of the last entry-returning helper that succeeded */
	size_t fds;
} TnWire;

void tn_wire_open(TnWire *wire, const TnWireSpec *spec);
/* Ends it as the daemon does: every reference of the kernel goes. Checks account and leaks. */
void tn_wire_close(TnWire *wire);
/* One more user of the same nest, for another thread; give it back with tn_wire_leave(). */
void tn_wire_join(TnWire *wire, const TnWire *of);
void tn_wire_leave(TnWire *wire);

/* The account equals a recount of the store, and was never refunded below zero. */
void tn_wire_check_account(TnWire *wire);
uint64_t tn_wire_bytes(TnWire *wire);
uint64_t tn_wire_inodes(TnWire *wire);

/* A request of two parts after the header. 0, -errno or TN_WIRE_SILENT; checks the reply. */
int tn_wire_call(TnWire *wire, uint32_t opcode, uint64_t node, const void *arg, size_t arg_size,
		 const void *more, size_t more_size);
/* The bytes as they are. Size of the reply, which may be nothing (0). */
size_t tn_wire_raw(TnWire *wire, const void *message, size_t size);

/* As the kernel sends them; 0 or -errno. Entries land in wire->entry. */
int tn_wire_lookup(TnWire *wire, uint64_t dir, const char *name); /* a negative entry is -ENOENT */
void tn_wire_forget(TnWire *wire, uint64_t node, uint64_t count);
int tn_wire_mknod(TnWire *wire, uint64_t dir, const char *name, uint32_t mode);
int tn_wire_mkdir(TnWire *wire, uint64_t dir, const char *name, uint32_t mode);
int tn_wire_symlink(TnWire *wire, uint64_t dir, const char *name, const char *target);
int tn_wire_link(TnWire *wire, uint64_t node, uint64_t dir, const char *name);
int tn_wire_unlink(TnWire *wire, uint64_t dir, const char *name);
int tn_wire_rmdir(TnWire *wire, uint64_t dir, const char *name);
int tn_wire_rename(TnWire *wire, uint64_t from, const char *name, uint64_t to, const char *name2,
		   uint32_t flags); /* RENAME2 */
int tn_wire_getattr(TnWire *wire, uint64_t node, struct fuse_attr *ret);
int tn_wire_setattr(TnWire *wire, uint64_t node, const struct fuse_setattr_in *in);
int tn_wire_truncate(TnWire *wire, uint64_t node, uint64_t size);
int64_t tn_wire_write(TnWire *wire, uint64_t node, uint64_t offset, const void *data, size_t size);
int64_t tn_wire_read(TnWire *wire, uint64_t node, uint64_t offset, void *data, size_t size);
int tn_wire_fallocate(TnWire *wire, uint64_t node, uint32_t mode, uint64_t offset, uint64_t size);
int tn_wire_setxattr(TnWire *wire, uint64_t node, const char *name, const void *value, size_t size,
		     uint32_t flags);
int tn_wire_getxattr(TnWire *wire, uint64_t node, const char *name, uint32_t room);
int tn_wire_listxattr(TnWire *wire, uint64_t node, uint32_t room);
int tn_wire_removexattr(TnWire *wire, uint64_t node, const char *name);
/* READDIR or READDIRPLUS of `size` bytes at most; the payload is in wire->out. */
int tn_wire_readdir(TnWire *wire, uint32_t opcode, uint64_t node, uint64_t offset, uint32_t size);
