#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:sed:sed command:gawk:gawk command:split:coreutils
# long
. "${0%/*}/lib"

seq 5000 >n
sed -i.bak 's/^1$/one/;w copy' n
cmp copy n
equal first "$(head -1 n)" one
gawk -i inplace '{print $0 * 2}' n
equal last "$(tail -1 n)" 10000
gawk '{print > ("out" $1 % 40)} END {"date" | getline d; print d > "/dev/stderr"}' n 2>date
equal files "$(ls out* | wc -l)" 20
split -n l/7 n part.
cat part.* | cmp - n
split -b 1000 --filter='gzip >$FILE.gz' n z.
zcat z.*.gz | cmp - n
csplit -s -n3 n '/^2000$/' '{0}' 2>/dev/null
cat xx* | cmp - n
tac n >r
tac r | cmp - n
shuf n -o n
sort -n n | uniq | wc -l | grep -qx 5000
join <(sort n) <(sort n) | wc -l | grep -qx 5000
comm -3 <(sort n) <(sort -u n) | wc -l | grep -qx 0
