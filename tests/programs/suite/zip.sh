#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:zip:zip command:unzip:unzip
# long
. "${0%/*}/lib"

make_tree tree
rm -r 'tree/with space/new
line' tree/a/b/c
zip -qry -b /tmp a.zip tree
zip -q a.zip -d tree/nothing
echo again >tree/nothing
zip -qu a.zip tree/nothing
unzip -tq a.zip >/dev/null
mkdir out
unzip -q a.zip -d out
diff -r --no-dereference tree out/tree
[ -x out/tree/run.sh ]
