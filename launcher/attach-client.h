/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asks a daemon for a view of a nest: finds the daemon, starts one when there is none,
 * sends the request with the descriptors it needs, and asks again when the daemon's
 * worker dies meanwhile.
 */
#pragma once

#include "attach-proto.h"
#include "daemon-choice.h"
#include "lease.h"
#include "words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place below /tmp or /var/tmp where bwrap will mount something. */
typedef struct TnMountPoint {
	TnMountPointKind kind;
	char *path; /* as the payload sees it: "/tmp/..." or "/var/tmp/..." */
} TnMountPoint;

typedef struct TnAttachSpec {
	/* at most one of the two; neither: an ephemeral nest */
	const char *name;
	const char *from_path; /* the nest named after this directory, open as from_fd */
	int from_fd;

	uint32_t flags; /* KEEP, DURABLE, NO_VAR_TMP, NO_XATTRS, WRITEBACK; the others follow from
			   the rest */
	uint64_t bytes, inodes, ttl, idle_ttl;
	TnStoreKind store;
	const TnWords *deny, *read_only; /* NULL: none */
	const TnMountPoint *points;
	size_t n_points;
	bool lease; /* the sandbox will hold one */
} TnAttachSpec;

typedef struct TnAttached {
	TnPaths paths;      /* of the daemon that answered */
	TnAttachReply head; /* checked, status 0 */
	int mount;          /* the view, attached nowhere */
	TnLease lease;      /* the read end is closed already */
	uint8_t *reply;     /* the whole message, for tn_attach_next() */
	size_t reply_size;
} TnAttached;

#define TN_ATTACHED_NONE ((TnAttached){.mount = -1, .lease = TN_LEASE_NONE})

/* 0, or -errno with the failure said. *ret is to be cleared after success only. */
int tn_attach(TnAttached *ret, const TnDaemonChoice *choice, const TnAttachSpec *spec);

/* The state of mount point i as the daemon said it; PINNED when it said nothing. */
TnMountPointState tn_attached_point_state(const TnAttached *attached, size_t i);

/* Closes everything; a lease that no sandbox holds is removed with its name. */
void tn_attached_clear(TnAttached *attached);
