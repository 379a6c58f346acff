#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:tar:tar command:setfattr:attr
. "${0%/*}/lib"

make_tree tree
mkfifo tree/fifo
setfattr -n user.bird -v wren tree/nothing
truncate -s 40M tree/sparse
printf end | dd of=tree/sparse bs=1 seek=30000000 conv=notrunc status=none
tar --xattrs --sparse -cf a.tar tree
[ "$(stat -c %s a.tar)" -lt 2000000 ] || fail 'the hole is in the archive'
mkdir out
tar --xattrs --sparse -C out -xpf a.tar
equal attribute "$(getfattr --only-values -n user.bird out/tree/nothing)" wren
cmp tree/sparse out/tree/sparse
[ "$(stat -c %b out/tree/sparse)" -lt 2000 ] || fail 'the hole is filled'
[ -p out/tree/fifo ]
rm tree/fifo out/tree/fifo
same_tree tree out/tree
# incremental: only what has changed
tar -g snapshot -cf full.tar tree
sleep 0.02
echo new >tree/a/new
tar -g snapshot -cf more.tar tree
equal 'in the increment' "$(tar -tf more.tar | grep -v '/$')" tree/a/new
tar --remove-files -cf gone.tar out
[ ! -e out ]
