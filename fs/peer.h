/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who is at the other end of a socket, and may it talk to this daemon?
 *
 * A sandboxed process must never get through, even when a socket is bound into its
 * sandbox. So the first message of a connection carries a descriptor of the peer's own
 * /proc/self/ns/user, which must be the namespace that the daemon was started in: a
 * process in a namespace below cannot open that one. Where the kernel has SO_PEERPIDFD
 * (6.5), a root daemon also looks itself, so that a descriptor handed into a sandbox by
 * an accomplice does not help. Any thread of the worker.
 */
#pragma once

#include "worker.h"

#include <stddef.h>

typedef struct TnPeer {
	uid_t uid; /* effective, when it connected */
	gid_t gid;
	pid_t pid;
} TnPeer;

/* SO_PEERCRED of a connected socket. 0 or -errno. */
int tn_peer_get(int sock, TnPeer *ret);

/*
 * Checks the peer of sock, which sent userns (-1: none came). 0, or with one line in why:
 * -EPERM another user namespace or no proof of it, -EACCES another uid (user daemon).
 */
int tn_peer_check(const TnWorkerEnv *env, int sock, const TnPeer *peer, int userns, char *why,
		  size_t why_size);

/*
 * A user daemon's mounts serve one gid only: a peer with another effective gid could not
 * use them. 0, or -EACCES with both gids in why. For attaches only.
 */
int tn_peer_check_group(const TnWorkerEnv *env, const TnPeer *peer, char *why, size_t why_size);
