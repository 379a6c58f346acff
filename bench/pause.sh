#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# How long a client waits when the daemon's worker is killed while it has the client's request
# in hand, and how long otherwise; with so many others at work in the nest.  bench/pause.sh [N [OTHERS]]
. "$(dirname "$0")/lib.sh"
N=${1:-200} OTHERS=${2:-0}
bench_begin
tmpnest daemon stop >/dev/null
head -c 128 /dev/zero >kill-file
TMPNEST_KILL_FILE=$PWD/kill-file "$BUILD/tests/crash/tmpnestd-killable" \
	--runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR" || exit 1
tmpnest create pause >/dev/null || exit 1
if [ "$OTHERS" -gt 0 ]; then
	tmpnest run --nest pause -- "$BUILD/tests/crash/clients" /tmp "$OTHERS" "$PWD/stop" >/dev/null &
	sleep 1
fi
tmpnest run --nest pause -- "$BUILD/bench/pause" kill-file /tmp "$N"
touch stop
wait || { echo 'the others noticed' >&2 && exit 1; }
