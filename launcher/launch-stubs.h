/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stubs of one launch: what its command line masks and the host lacks is made before
 * bwrap starts, and kept as long as the sandbox lives (docs/stubs.md).
 */
#pragma once

#include "attach-client.h"
#include "stubs.h"

/*
 * Holds stubs for the masks, with the sandbox's lease as their holder. Once the lease is
 * open, before the namespaces: the reaper has to stay outside. Nothing of it is fatal: what
 * cannot be held is bwrap's to manage, and said when `verbose`.
 */
void tn_launch_stubs(const TnAttached *attached, const TnStubMask *masks, size_t n, bool verbose);

/*
 * The masks among plain words for bwrap: "--ro-bind FROM TO" whose FROM is /dev/null, an
 * empty directory, or TO itself. At most n / 3; the paths point into words.
 */
size_t tn_launch_stub_masks(char *const *words, size_t n, TnStubMask *ret);
