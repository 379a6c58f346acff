/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the other programs are: beside this one in the build folder (launcher/, fs/),
 * else where they are installed; bwrap in PATH or where TMPNEST_BWRAP says.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/*
 * The path of one of ours ("tmpnest-ctl", "tmpnestd", "tmpnest-shim"). 0, or -ENOENT
 * with the failure said.
 */
int tn_locate(const char *program, char ret[PATH_MAX]);

/*
 * The real bwrap: a front that stands in for it under the same name is passed over, so
 * that it never executes itself. 0, or -ENOENT with the failure said.
 */
int tn_locate_bwrap(char ret[PATH_MAX]);
