/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the sandbox of `tmpnest run` will be made of: the options, turned into real paths
 * of this host and checked. Looks at files, changes nothing.
 */
#pragma once

#include "attach-client.h"
#include "run-options.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct TnRunMount {
	char *source; /* real path on the host */
	char *target; /* inside; below the view's directories by their real path */
	bool read_only;
	bool is_dir;
	size_t point; /* index into points, or SIZE_MAX: not in the view */
	bool dropped; /* the nest denies the name */
} TnRunMount;

/* What shows at a path inside, in the order of mounting; for the covers. */
typedef struct TnShown {
	char *source; /* a bind of this directory; NULL: nothing of the host */
	char *target;
} TnShown;

typedef struct TnRunPlan {
	char *cwd;
	char *tmp;          /* real path of /tmp */
	char *var_tmp;      /* of /var/tmp; NULL: not mounted */
	TnRunMount *mounts; /* workspaces, then binds, in the order given */
	size_t n_mounts;
	TnMountPoint *points; /* those of the mounts that lie in the view */
	size_t n_points;
	TnShown *passed; /* mounts among the --bwrap-arg words */
	size_t n_passed;
	bool lease;       /* the first process of the sandbox can hold one */
	bool own_seccomp; /* the --bwrap-arg words bring a filter */
} TnRunPlan;

/* 0, or -errno with the failure said. *ret is to be cleared either way. */
int tn_run_plan(TnRunPlan *ret, const TnRunOptions *options);

/*
 * Takes the daemon's word on the mount points: what lies on a denied name is dropped, and
 * said. 0, or -EACCES, said, when the cwd goes with it.
 */
int tn_run_plan_settle(TnRunPlan *plan, const TnAttached *attached);

/*
 * Is none of the host paths in the daemon's runtime directory or store? They are covered,
 * and would be empty inside. 0, or -EINVAL, said.
 */
int tn_run_plan_check_sources(const TnRunPlan *plan, const char *runtime, const char *store);

void tn_run_plan_clear(TnRunPlan *plan);
