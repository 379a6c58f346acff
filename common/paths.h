/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the runtime directory (sockets, leases) and the store of a daemon lie.
 * Reads the environment and passwd, no other I/O. Any thread.
 *
 * Order: explicit value (--runtime-dir, --store-dir), TMPNEST_RUNTIME_DIR and
 * TMPNEST_STORE_DIR, then the defaults: /run/tmpnest and /var/lib/tmpnest for the
 * system daemon; $XDG_RUNTIME_DIR/tmpnest and $XDG_STATE_HOME/tmpnest for a user's
 * (without XDG_RUNTIME_DIR: $XDG_STATE_HOME/tmpnest-run; XDG_STATE_HOME defaults to
 * ~/.local/state).
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum TnScope {
	TN_SCOPE_SYSTEM,
	TN_SCOPE_USER,
} TnScope;

#define TN_SOCKET_PATH_MAX 108 /* of sun_path, with the NUL */

typedef struct TnPaths {
	TnScope scope;
	char runtime_dir[TN_SOCKET_PATH_MAX];    /* absolute, no trailing slash, not resolved */
	char attach_socket[TN_SOCKET_PATH_MAX];  /* runtime_dir/attach.sock */
	char control_socket[TN_SOCKET_PATH_MAX]; /* runtime_dir/control.sock */
	char leases_dir[TN_SOCKET_PATH_MAX];     /* runtime_dir/leases */
	char store_dir[PATH_MAX];                /* as runtime_dir */
} TnPaths;

/*
 * Fills *ret for scope. With explicit directories or the TMPNEST_* variables set, the
 * scope decides only who may talk. 0 or -errno, with one line in why (what, where,
 * what to do): -EINVAL relative path, below /tmp or /var/tmp, one inside the other;
 * -ENAMETOOLONG a socket path past 107 bytes.
 */
int tn_paths_init(TnPaths *ret, TnScope scope, const char *runtime_dir, const char *store_dir,
		  char *why, size_t why_size);

/*
 * The places of scope when nobody chooses any: the environment's TMPNEST_* variables are
 * not read. False when there are none (no home directory, path too long).
 */
bool tn_paths_init_default(TnPaths *ret, TnScope scope);

/* True when the caller chose the directories (arguments or environment). */
bool tn_paths_are_explicit(const char *runtime_dir, const char *store_dir);

/* True when path equals dir or lies below it; both absolute and normal. */
bool tn_path_is_below(const char *path, const char *dir);

/*
 * Makes an absolute path normal ("//", "." and ".." taken out as text). False when
 * it does not fit or is not absolute.
 */
bool tn_path_normalize(const char *path, char *ret, size_t size);
