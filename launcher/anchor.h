/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps the directories above a daemon's own where they are: a payload that may write to
 * one of them could rename it, and the next launcher would find no daemon, start another,
 * and leave the real store uncovered. A directory that is a mount point cannot be renamed,
 * by any path (rename(2), EBUSY). In the launcher's own mount namespace.
 */
#pragma once

#include "words.h"

/*
 * Binds onto itself each directory above `path` (resolved) that lies below one of the
 * writable directories (resolved), outermost first. Before anything is opened there. 0, or
 * -errno with the failure said.
 */
int tn_anchor_ancestors(const char *path, const TnWords *writable);
