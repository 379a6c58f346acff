/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The nest's side of pins (pins.h): for nest.c and the operations that take names away. */
#pragma once

#include "nest-private.h"

/* The attachment has ended. Caller holds the life lock, no other. */
void tn_nest_release_pins(TnNest *nest, TnLiveAttachment *attachment);

/* -EBUSY when parent/name is pinned; with above also when it is a directory above a pin. */
int tn_check_pinned(TnNest *nest, uint32_t parent, const char *name, bool above);
