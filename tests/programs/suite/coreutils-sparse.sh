#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:cp:coreutils command:fallocate:util-linux
. "${0%/*}/lib"

truncate -s 50M sparse
for at in 0 17 49; do printf "data at $at" | dd of=sparse bs=1 seek=$((at * 1000000)) conv=notrunc status=none; done
blocks() { stat -c %b "$1"; }
cp --sparse=auto sparse auto
cp --sparse=always sparse always
cp --reflink=auto sparse reflinked
for f in auto always reflinked; do
	cmp sparse $f
	[ "$(blocks $f)" -lt 200 ] || fail "$f has $(blocks $f) blocks"
done
head -c 300000 /dev/zero >zeros
cp --sparse=never zeros full
cp --sparse=always zeros hollow
cmp zeros hollow
[ "$(blocks hollow)" -lt "$(blocks full)" ] || fail 'no hole'
noise 65536 >punched
before=$(blocks punched)
fallocate -p -o 16384 -l 32768 punched
[ $((before - $(blocks punched))) -ge 64 ] || fail 'nothing was given back'
equal size "$(stat -c %s punched)" 65536
[ "$(dd if=punched bs=16384 skip=1 count=2 status=none | tr -d '\0' | wc -c)" -eq 0 ]
fallocate -l 1M reserved
equal 'reserved size' "$(stat -c %s reserved)" 1048576
[ "$(blocks reserved)" -ge 2048 ] || fail 'nothing was reserved'
fallocate -n -l 2M reserved
equal 'size kept' "$(stat -c %s reserved)" 1048576
fallocate -d zeros
[ "$(blocks zeros)" -lt 100 ] || fail 'not dug'
truncate -s 10 punched
equal 'cut' "$(stat -c %s punched)" 10
shred -n 1 -u punched
[ ! -e punched ]
