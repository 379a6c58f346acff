/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two directories of a view, /tmp and /var/tmp, as each start finds them. */
#pragma once

#include "nest.h"

/* Mode 1777 and the nest's owner again, whatever an earlier command made of them. The life lock is
 * held. 0 or -errno. */
int tn_nest_restore_roots(TnNest *nest);
