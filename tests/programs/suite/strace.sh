#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:strace:strace
# long
. "${0%/*}/lib"

strace -f -ff -o /tmp/trace sh -c 'echo a >f; cat f' >/dev/null 2>&1 || exit 1
[ "$(ls trace.* | wc -l)" -ge 2 ] || fail 'not a file for each process'
grep -q 'exited with 0' trace.*
