#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:dotlockfile:liblockfile-bin
# long
. "${0%/*}/lib"

dotlockfile -l -p box.lock
dotlockfile -c box.lock
! dotlockfile -l -p -r 0 box.lock || fail 'two holders'
dotlockfile -u box.lock
[ ! -e box.lock ]
echo 999999 >box.lock # of a process that is not there: stale
dotlockfile -l -p -r 1 box.lock
rm box.lock
echo 0 >counter
add() {
	for i in 1 2 3; do
		dotlockfile -l -r 30 -i 1 /tmp/c.lock
		n=$(cat counter)
		echo $((n + 1)) >counter
		dotlockfile -u /tmp/c.lock
	done
}
for k in 1 2; do add & adders+=($!); done
for pid in "${adders[@]}"; do wait "$pid"; done
equal 'the counter' "$(cat counter)" 6
