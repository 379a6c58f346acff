/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Puts the view where bwrap finds it, and covers what no sandbox may see: runtime
 * directory and store of the daemon that answered and of the others that a caller may
 * have, under every path that leads to them. In the launcher's own mount namespace, after
 * tn_namespaces_enter() and before anything is executed.
 */
#pragma once

#include "attach-client.h"
#include "words.h"

#include <limits.h>

/* In the covered runtime directory. */
#define TN_VIEW_NAME "view"
#define TN_EMPTY_NAME "empty" /* what a sandbox sees in place of that directory */

typedef struct TnPlace {
	char view[PATH_MAX];    /* where the view is: below the covered runtime directory */
	char empty[PATH_MAX];   /* beside it: an empty directory that cannot be written to */
	char runtime[PATH_MAX]; /* that directory, resolved: to be covered again inside */
	char store[PATH_MAX];   /* the store, resolved */
} TnPlace;

/*
 * writable: real paths of the host's directories that the sandbox may write to; what lies
 * above a runtime directory or store in one of them is kept from being renamed (anchor.h).
 * Consumes attached->mount. Refuses when the runtime directory or the store is not the
 * one that the daemon has: a payload may have moved it away and put another in its place.
 * 0, or -errno with the failure said; then nothing may be executed.
 */
int tn_cover(TnAttached *attached, const TnWords *writable, TnPlace *ret);
