/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which kernel is this? Features that cannot be tried without side effects are told by
 * its version. Any thread.
 */
#pragma once

#include <stdbool.h>

/* Compares the start of a release ("6.9.0-rc2-generic") with major.minor. Pure. */
bool tn_release_at_least(const char *release, unsigned major, unsigned minor);

/* The same for the running kernel (uname(2)). */
bool tn_kernel_at_least(unsigned major, unsigned minor);
