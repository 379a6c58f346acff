/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one namespace level that the launcher puts around bwrap, so that the view and the
 * covers are mounted nowhere else. The process must be single-threaded.
 */
#pragma once

/*
 * A mount namespace of our own that still receives the host's mounts; for a caller other
 * than root below a user namespace of our own, in which every id maps to itself (bwrap
 * refuses to start with capabilities under another uid). 0, or -errno with the failure
 * and its cure said.
 */
int tn_namespaces_enter(void);
