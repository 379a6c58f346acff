#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:dbench:dbench
# long
. "${0%/*}/lib"

load=$(ls /usr/share/dbench/client.txt /usr/share/dbench*/client*.txt 2>/dev/null | head -1)
dbench -D /tmp -c "$load" -t 4 2 >log 2>&1 || { tail -20 log; fail dbench; }
grep -q Throughput log
# the barrier of its start is System V's and beside the point
! grep -v semaphore log | grep -iE 'failed|error' || fail 'an error in the log'
