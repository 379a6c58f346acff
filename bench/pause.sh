#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# How long a client waits when the daemon's worker is killed while it has the client's request
# in hand, and how long otherwise.  bench/pause.sh [N]
. "$(dirname "$0")/lib.sh"
N=${1:-200}
bench_begin
tmpnest daemon stop >/dev/null
head -c 128 /dev/zero >kill-file
TMPNEST_KILL_FILE=$PWD/kill-file "$BUILD/tests/crash/tmpnestd-killable" \
	--runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR" || exit 1
tmpnest run -- "$BUILD/bench/pause" kill-file /tmp "$N"
