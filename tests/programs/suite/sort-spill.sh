#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:sort:coreutils
. "${0%/*}/lib"

seq 120000 | awk '{print ($1 * 7919) % 120001, "padding of some length to fill the buffer"}' >in
sort -S 1M -T /tmp --parallel=2 -n in >out
equal lines "$(wc -l <out)" 120000
sort -c -n out
equal 'first and last' "$(sed -n '1p;$p' out | cut -d' ' -f1 | xargs)" '1 120000'
sort -S 1M -T /tmp --compress-program=gzip --batch-size=4 in | cmp - <(LC_ALL=$LC_ALL sort in)
equal 'left in /tmp' "$(ls /tmp | grep -c '^sort' || true)" 0
sort -o in in # onto itself
sort -c in
