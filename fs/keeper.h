/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The keeper: owns the namespaces, the listening sockets and every descriptor that must
 * outlive a worker; makes mounts on the worker's request; starts, watches and replaces the
 * worker. Single-threaded, reads no content, parses nothing that a sandbox wrote.
 */
#pragma once

#include "data-path.h"
#include "paths.h"
#include "worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TnKeeperConfig {
	TnPaths paths;
	uid_t store_uid; /* whom the store's directories belong to: us, or a user for nothing else
			  */
	unsigned n_threads;
	uint64_t idle_timeout; /* seconds; TN_UNLIMITED: never */
	bool use_peer_pidfd;
	bool use_resend; /* FUSE_NOTIFY_RESEND, where the kernel has it */
	TnHidePassthrough hide_passthrough;
	const char *program; /* absolute path of this one, and its arguments, for an upgrade */
	char *const *argv;
	const char *notify_socket; /* of the service manager that stores descriptors; or NULL */
	int resume;                /* descriptor of the state of a keeper before; 0: none */
	bool has_namespaces;       /* that keeper was this process */
	bool log_to_file;          /* stderr and stdout go to RUNTIME/tmpnestd.log */

	int (*worker)(TnWorkerEnv *env); /* a worker's whole life; returns its exit status */
	/* Called once: the sockets listen and the first worker serves. */
	void (*ready)(void *data);
	void *data;
} TnKeeperConfig;

/*
 * The daemon's whole life, in this process. 0 after a clean stop, or -errno with one line
 * in why when it could not start (as tn_keeper_dirs_open() and tn_namespaces_enter(), or
 * -EIO: the first worker ended before it served).
 */
int tn_keeper_run(const TnKeeperConfig *config, char *why, size_t why_size);
