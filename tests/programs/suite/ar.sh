#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:ar:binutils command:gcc:gcc
# long
. "${0%/*}/lib"

for i in 1 2 3; do
	echo "int f$i(void) { return $i; }" | gcc -x c -c -o f$i.o -
done
ar rcs lib.a f1.o f2.o
ar rs lib.a f3.o
ar d lib.a f1.o
equal members "$(ar t lib.a | xargs)" 'f2.o f3.o'
mkdir out
(cd out && ar x ../lib.a)
cmp f3.o out/f3.o
strip -g f2.o
objcopy --rename-section .text=.nest f2.o
readelf -S f2.o | grep -q .nest
