/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tmpnest run --run-as NAME`: root becomes another user, for good.
 */
#pragma once

/*
 * Takes over the group, supplementary groups and user id of NAME, and the variables that
 * would otherwise lead to the home and the daemon of root: HOME, USER, LOGNAME and
 * XDG_RUNTIME_DIR (when there is one) are NAME's, the other XDG directories are unset.
 * 0, or -errno with the failure said.
 */
int tn_run_as(const char *name);
