#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:mkfs.ext4:e2fsprogs command:debugfs:e2fsprogs command:mcopy:mtools
# long
. "${0%/*}/lib"

export PATH=$PATH:/usr/sbin:/sbin
make_tree tree
truncate -s 32M ext4
mkfs.ext4 -q -F -E lazy_itable_init=1 -d tree ext4
e2fsck -fn ext4 >/dev/null 2>&1
debugfs -R 'dump /a/text7 got' ext4 2>/dev/null
cmp got tree/a/text7
[ "$(du -k ext4 | cut -f1)" -lt 20000 ] || fail 'the image is not sparse'
resize2fs ext4 64M >/dev/null 2>&1
e2fsck -fn ext4 >/dev/null 2>&1
mformat -C -i dos -f 1440 ::
mcopy -i dos tree/a/text1 ::/text1
mmd -i dos ::/d
mcopy -s -i dos tree/a ::/d
mcopy -i dos ::/text1 - | cmp - tree/a/text1
