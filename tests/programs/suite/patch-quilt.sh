#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:patch:patch command:quilt:quilt
# long
. "${0%/*}/lib"

mkdir src
cd src
seq 100 >file
export QUILT_PATCHES=patches
quilt new first.patch >/dev/null
quilt add file >/dev/null
sed -i s/^50$/fifty/ file
quilt refresh >/dev/null
quilt new second.patch >/dev/null
quilt add file >/dev/null
sed -i s/^51$/fiftyone/ file
quilt refresh >/dev/null
quilt pop -a >/dev/null
cmp file <(seq 100)
quilt push -a >/dev/null
equal changed "$(grep -c fifty file)" 2
seq 100 >again
patch -s again <patches/first.patch
grep -qx fifty again
patch -s -R again <patches/first.patch
cmp again <(seq 100)
! patch -s -b again <<<'garbage' >/dev/null 2>&1 || fail 'garbage was applied'
