#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Times the start of a sandbox that runs `true`: bwrap alone with the same namespaces and
# host mounts, `tmpnest run` in a nest that is there, and `tmpnest run` with a new one; and
# `create` and `evict`.  bench/launch.sh [N], a fifth of the measurements of each.
exec "$(dirname "$0")/run.sh" --only launch --rounds "${1:-10}" "${@:2}"
