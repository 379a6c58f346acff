#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:7z:p7zip-full
# long
. "${0%/*}/lib"

make_tree tree
rm tree/dangling 'tree/with space/symbolic'
7z a -bd -mx1 -mmt1 a.7z tree >/dev/null
echo more >tree/more
7z u -bd -mx1 -mmt1 a.7z tree >/dev/null
7z t -bd a.7z >/dev/null
7z x -bd -oout a.7z >/dev/null
diff -r tree out/tree
7z a -bd -v20k -mx0 split.7z tree >/dev/null
[ -e split.7z.002 ]
7z t -bd split.7z.001 >/dev/null
