/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A nest's description on disk: nests/<id>/nest, one "KEY VALUE" line each, a value goes to
 * the end of its line. Written by the daemon only; read again after a restart.
 */
#pragma once

#include "nest-private.h"

#define TN_BOOT_ID_MAX 40

typedef struct TnDescription {
	uint64_t id;
	char name[TN_NAME_MAX + 1];
	uid_t uid;
	gid_t gid;
	bool ephemeral, keep, durable, no_xattrs, writeback, frozen;
	TnStoreKind store;
	uint64_t bytes, inodes, ttl, idle_ttl;
	int64_t created_ns, last_used_ns; /* the latter by the time of the file */
	char boot_id[TN_BOOT_ID_MAX];
	TnFrom from;      /* owned; no descriptor */
	TnPolicy *policy; /* owned */
} TnDescription;

void tn_description_clear(TnDescription *description);

/* Writes the nest's description into its home. Caller holds the life lock. 0 or -errno. */
int tn_describe_save(TnNest *nest);

/* Writes down when the nest was last used (CLOCK_REALTIME): the time of the description's file. */
void tn_describe_stamp(int home, int64_t used_ns);

/*
 * Reads the description in `home`. 0, -ENOENT when it has none, -EBADMSG when it is not one
 * (whatever the file holds), or another -errno.
 */
int tn_describe_load(int home, TnDescription *ret);

/* Parses its text; pure. 0, -EBADMSG or -ENOMEM. Changes text. */
int tn_describe_parse(char *text, TnDescription *ret);

/* The present boot (random/boot_id of proc(5)); "" when it cannot be read. */
void tn_boot_id(char ret[TN_BOOT_ID_MAX]);
