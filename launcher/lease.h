/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A lease says that a sandbox lives: a FIFO RUNTIME/leases/ID whose write end the first
 * process of the sandbox holds, as bwrap's --sync-fd. Whoever has the read end sees
 * end-of-file when the sandbox is gone, however it went.
 *
 * The name stays when all went well, so that the daemon can open it anew after a restart;
 * the daemon removes it at the end.
 */
#pragma once

#include "paths.h"

#include <stdint.h>

typedef struct TnLease {
	char path[TN_SOCKET_PATH_MAX + 40]; /* "" when there is none to remove */
	int read_end;
	int write_end;
} TnLease;

#define TN_LEASE_NONE ((TnLease){.read_end = -1, .write_end = -1})

/*
 * Makes one named after id. A directory that is not there, or not ours to write, gives a
 * nameless pipe: it serves as well until the daemon is restarted. 0, or -errno, said.
 */
int tn_lease_new(TnLease *ret, const char *leases_dir, const uint8_t id[16]);

/* Closes both ends and removes the name: no sandbox has come of it. */
void tn_lease_abandon(TnLease *lease);
