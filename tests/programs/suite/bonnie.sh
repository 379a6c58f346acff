#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:bonnie++:bonnie++
# long
# limit: 180
. "${0%/*}/lib"

export PATH=$PATH:/usr/sbin
as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(-u root)
bonnie++ -f -d /tmp -s 16M -r 8 -n 1:2000:10:4 -q "${as_root[@]}" >out 2>log || { cat log; fail bonnie; }
[ -s out ]
[ -z "$(ls -d Bonnie* 2>/dev/null)" ]
