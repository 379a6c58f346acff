/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a nest's rules say about the mount points that a launcher announces. Pure; any thread.
 */
#pragma once

#include "attach-proto.h"
#include "policy.h"

/*
 * The state of one path: "/tmp/x", "/var/tmp/x", "/private/tmp/x", or below /tmp "/x" and
 * "x". TnMountPointState, or -EPROTO: ".." in it, or no name below the subtree.
 */
int tn_attach_point_state(const TnPolicy *policy, const char *path);
