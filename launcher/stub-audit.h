/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the deny mounts of a running sandbox with a profile, so that an upgrade of the
 * runtime that denies one path more is noticed. Pure but for reading the mount table.
 *
 * A deny mount is a read-only mount on a place that would be writable without it.
 */
#pragma once

#include "stub-mountinfo.h"
#include "stub-paths.h"

typedef struct TnAudit {
	char **writable; /* places that are mounted writable, for the profile's project set */
	size_t n_writable;
	struct TnAuditMount *mounts;
	size_t n_mounts;
} TnAudit;

/* 0 or -errno. */
int tn_audit_read(const char *mountinfo, TnAudit *ret);
void tn_audit_clear(TnAudit *audit);

/*
 * Deny mounts that neither paths nor also name, and paths that could be written in the sandbox:
 * each path is given to the callback that fits. Returns how many differences there are.
 */
size_t tn_audit_compare(const TnAudit *audit, const TnStubPaths *paths, const TnStubPaths *also,
			void (*denied_only)(void *data, const char *path),
			void (*profile_only)(void *data, const char *path), void *data);
