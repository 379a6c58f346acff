/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts tmpnestd when there is none. It detaches by itself and its first process ends
 * with 0 once it serves; it gets none of our descriptors and only the part of our
 * environment that means something to it, as it outlives us.
 */
#pragma once

#include "paths.h"

#include <stdbool.h>

/*
 * Is somebody listening on that socket (AF_UNIX, SOCK_SEQPACKET)? The connected,
 * close-on-exec socket, or -errno: -ENOENT and -ECONNREFUSED mean no daemon.
 */
int tn_daemon_connect(const char *socket_path);

/*
 * Makes sure that a daemon serves paths. Two starters at once get one daemon: a lock in
 * the runtime directory decides. 0, or -errno with the failure said.
 */
int tn_daemon_start(const TnPaths *paths);
