#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:ccache:ccache command:gcc:gcc
# long
. "${0%/*}/lib"

export CCACHE_DIR=/tmp/cache
echo 'int f(void) { return 1; }' >f.c
for i in 1 2 3; do ccache gcc -c f.c -o f$i.o & jobs+=($!); done
for pid in "${jobs[@]}"; do wait "$pid"; done
ccache gcc -c f.c -o f4.o
cmp f1.o f4.o
ccache --print-stats | awk '$1 ~ /cache_hit$/{n += $2} END{exit n < 1}' || fail 'no hit'
ccache --cleanup
ccache --clear
