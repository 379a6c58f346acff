/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One nest: everything that belongs to a sandbox hangs off this object: its account,
 * rules, node table, store and its connection to the kernel.
 *
 * Reference counted; any thread of the worker. Its private parts are in nest-private.h,
 * for the file-system operations only.
 */
#pragma once

#include "registry.h"

typedef struct TnAttachment {
	uint64_t id;
	int mount; /* detached mount descriptor; the caller's to send and close */
	bool frozen;
} TnAttachment;

TnNest *tn_nest_ref(TnNest *nest);
void tn_nest_unref(TnNest *nest); /* takes NULL */

uint64_t tn_nest_id(const TnNest *nest);
uid_t tn_nest_owner(const TnNest *nest);
/* False when spec names the nest after a directory, and this one is not named after that. */
bool tn_nest_is_from(const TnNest *nest, const TnNestSpec *spec);

/*
 * One more mount for one more sandbox; makes a new superblock when none lives.
 * Counts the attachment. 0 or -errno: -ENOENT evicting, -EBUSY ephemeral and attached
 * before, or the keeper's error.
 */
int tn_nest_attach(TnNest *nest, TnAttachment *ret);

/* A place below /tmp or /var/tmp where the sandbox will mount something. */
typedef struct TnMountPoint {
	TnMountPointKind kind;
	const char *path;        /* "/tmp/x", "/private/tmp/x", "/var/tmp/x", or "x" below /tmp */
	TnMountPointState state; /* out: what the rules make of it */
} TnMountPoint;

/*
 * Registers the mount points of an attachment before its sandbox makes them. 0, -EINVAL (a
 * path that is no such place), -ELOOP (a symlink of the nest lies on the way), -EROFS (frozen, and
 * one is missing), -ENOENT or -ENOMEM; *ret_done says how many were registered before the one that
 * failed.
 */
int tn_nest_pin(TnNest *nest, uint64_t attachment_id, TnMountPoint *points, size_t n,
		size_t *ret_done);

/*
 * The attachment, and its lease (-1: none), which the caller goes on to watch, is known to a
 * successor too from now on: to be called before the launcher is answered.
 */
void tn_nest_set_lease(TnNest *nest, uint64_t attachment_id, int lease);

/* Calls visit for each attachment that has a lease. */
typedef void (*TnLeaseVisit)(TnNest *nest, uint64_t attachment_id, int lease, void *data);
void tn_nest_each_lease(TnNest *nest, TnLeaseVisit visit, void *data);

/*
 * The attachment's lease ended (or its reply could not be delivered). Unknown and
 * repeated ids do nothing. The nest itself ends with its superblock, not here.
 */
void tn_nest_detach(TnNest *nest, uint64_t attachment_id);

void tn_nest_info(TnNest *nest, TnNestInfo *ret);

/* 0 keeps the old value, TN_UNLIMITED lifts it. A limit below the present use is allowed. 0 or
 * -errno. */
int tn_nest_set_limits(TnNest *nest, uint64_t bytes, uint64_t inodes, uint64_t ttl,
		       uint64_t idle_ttl);

/*
 * Refuses every change (EROFS) from now on, or no longer; what was written through shared
 * mappings before is in the store then. A frozen nest is not evicted by itself. 0 or -errno:
 * -ENOENT evicting. Not from a serving thread.
 */
int tn_nest_set_frozen(TnNest *nest, bool frozen);

/* Rules of one kind that come and go; arrays and strings are borrowed for the call. */
typedef struct TnRuleChange {
	bool deny; /* false: read-only rules */
	const char *const *add;
	size_t n_add;
	const char *const *remove;
	size_t n_remove;
} TnRuleChange;

/*
 * All of it, or nothing, from the next request on; what is open under a newly denied name is
 * refused (EACCES) from then on. 0, -EINVAL (a pattern, or none of it to remove), -EPERM (built
 * in), -EBUSY (a mount point of a running sandbox lies there), -ENOENT (evicting) or another
 * -errno; why may say more. Not from a serving thread.
 */
int tn_nest_change_rules(TnNest *nest, const TnRuleChange *change, char *why, size_t why_size);

/*
 * Calls visit for each rule until it returns false; strings are valid during the call.
 * A pattern is absolute, as a payload sees it: "/tmp/claude", "/var/tmp/x".
 */
typedef bool (*TnRuleVisit)(const char *pattern, bool deny, bool built_in, void *data);
void tn_nest_each_rule(TnNest *nest, TnRuleVisit visit, void *data);

/* Requests answered so far by FUSE opcode name ("LOOKUP", ...), those above zero. */
typedef void (*TnCountVisit)(const char *operation, uint64_t count, void *data);
void tn_nest_each_count(TnNest *nest, TnCountVisit visit, void *data);

/* Recounts bytes and inodes from the store, without the account. 0 or -errno. */
int tn_nest_recount(TnNest *nest, uint64_t *ret_bytes, uint64_t *ret_inodes);
