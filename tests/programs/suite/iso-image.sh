#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:xorriso:xorriso
# long
. "${0%/*}/lib"

make_tree tree
xorriso -as mkisofs -quiet -r -J -o a.iso tree 2>/dev/null
xorriso -osirrox on -indev a.iso -extract / out >/dev/null 2>&1
chmod -R u+w out
diff -r --no-dereference tree out
