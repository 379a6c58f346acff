#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:mksquashfs:squashfs-tools command:unsquashfs:squashfs-tools
# long
. "${0%/*}/lib"

make_tree tree
mksquashfs tree a.sqfs -quiet -no-progress -processors 1 -all-root >/dev/null
unsquashfs -no-progress -quiet -processors 1 -d out a.sqfs >/dev/null
same_tree tree out
echo more >more
mksquashfs more a.sqfs -quiet -no-progress -processors 1 >/dev/null
unsquashfs -l a.sqfs | grep -q more
