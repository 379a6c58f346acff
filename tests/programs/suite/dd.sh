#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:dd:coreutils
. "${0%/*}/lib"

noise 1000000 >data
dd if=data of=a bs=64k conv=fsync status=none
dd if=data of=b bs=4k oflag=dsync count=20 status=none
dd if=data of=c bs=128k oflag=direct conv=notrunc iflag=fullblock count=7 status=none
dd if=data of=d bs=333 conv=fdatasync status=none
dd if=data of=e bs=1M oflag=append conv=notrunc status=none
dd if=data of=e bs=1M oflag=append conv=notrunc status=none
cmp data a
cmp data d
cmp -n 81920 data b
cmp -n 917504 data c
equal appended "$(stat -c %s e)" 2000000
dd if=data of=f bs=1000 skip=500 seek=100 count=100 status=none
equal 'at an offset' "$(stat -c %s f)" 200000
cmp <(tail -c 100000 f) <(tail -c +500001 data | head -c 100000)
! dd if=/dev/zero of=data conv=excl status=none 2>/dev/null || fail 'excl over a file'
dd if=data of=/dev/null iflag=nofollow,noatime status=none
sync -f data
sync data
