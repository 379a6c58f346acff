/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The names of leases, RUNTIME/leases/ID. Launchers make them, and the daemon removes them
 * when the sandbox has ended; a lease may also be a nameless pipe. Anybody may have put
 * anything into that directory. Any thread.
 */
#pragma once

/* Removes the name of an ended lease, if it has one there. */
void tn_lease_name_remove(int runtime, int lease);

/*
 * Removes the names of leases that ended while nobody watched them: nobody holds their
 * write end. One that a launcher may be about to open is spared, for a minute.
 */
void tn_lease_names_prune(int runtime);
