/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The name of a nest that is named after a directory (a FROM record). Pure; any thread.
 */
#pragma once

#include "units.h"

#include <stdint.h>

/*
 * The directory's own name, as far as a nest's name may hold it, "-" and 8 hex digits that
 * stand for device, inode and path. Always a valid name. The digits are no proof: who finds
 * a nest of that name compares the three.
 */
void tn_from_name(const char *path, uint64_t dev, uint64_t ino, char ret[TN_NAME_MAX + 1]);
