#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:tail:coreutils
. "${0%/*}/lib"

: >log
tail -n +1 -F log >out 2>error &
follower=$!
for i in $(seq 20); do echo "line $i" >>log; done
becomes grep -qx 'line 20' out
mv log log.1
echo 'after the rotation' >log
becomes grep -qx 'after the rotation' out
: >log
becomes grep -q 'truncated' error # it sees the size only: not before
echo 'after the truncation' >>log
becomes grep -qx 'after the truncation' out
tail --pid=$follower -f log >/dev/null &
waiter=$!
kill $follower
becomes gone $waiter
equal lines "$(grep -c line out)" 20
