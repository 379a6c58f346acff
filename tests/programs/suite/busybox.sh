#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:busybox:busybox
# long
. "${0%/*}/lib"

make_tree tree
b() { busybox "$@"; }
b tar -cf a.tar tree
mkdir out
b tar -C out -xf a.tar
diff -r --no-dereference tree out/tree
b cp -a tree again
diff -r --no-dereference tree again
b find tree -type f ! -name 'new*' -exec busybox md5sum {} + | sort >sums
(cd again/.. && b md5sum -c -s sums)
echo old >f
b sed -i s/old/new/ f
equal sed "$(cat f)" new
b sh -c 'for i in 1 2 3; do echo $i; done >n; while read x; do echo "$x$x"; done <n | busybox sort -r >m'
equal shell "$(xargs <m)" '33 22 11'
b mkfifo fifo
b cat fifo >through &
b echo wren >fifo
wait $!
equal fifo "$(cat through)" wren
b gzip <a.tar | b gunzip | cmp - a.tar
b rm -rf tree again out
