#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:flock:util-linux
. "${0%/*}/lib"

echo 0 >counter
add() {
	local i
	for i in $(seq 12); do
		flock /tmp/lock sh -c 'n=$(cat /tmp/counter); echo $((n + 1)) >/tmp/counter'
	done
}
for k in 1 2 3; do add & adders+=($!); done
for pid in "${adders[@]}"; do wait "$pid"; done
equal 'the counter' "$(cat counter)" 36
flock --no-fork lock sleep 30 &
holder=$!
held() { ! flock -n lock true; }
becomes held
! flock -w 0.2 lock true || fail 'two holders'
flock -s -n other flock -s -n other true || fail 'two shared holders'
! flock -s -n other flock -n other true || fail 'exclusive beside shared'
kill $holder
becomes flock -n lock true
