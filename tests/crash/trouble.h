/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the programs share that trouble a worker while operations run. */
#pragma once

#include "kill-file.h"

#include <sys/statvfs.h>

/* Maps the file at path, which has its size. NULL, with errno, when that fails. */
KillFile *trouble_map(const char *path);

/*
 * Is as much free in the present directory's file system as at_start says? Deleted files are
 * given back when the kernel forgets them, which takes a moment: it waits for that. NULL, or what
 * is missing.
 */
const char *trouble_check_account(const struct statvfs *at_start);
