#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:hg:mercurial
# long
# limit: 120
. "${0%/*}/lib"

export HGUSER=bird HGRCPATH=/dev/null
hg init repo
cd repo
make_tree tree
rm -f tree/with\ space/new*
hg add -q
hg commit -m one
echo more >>tree/a/text1
hg commit -m two
hg clone -q . ../clone
cd ../clone
hg mv -q tree/a/text2 tree/moved
hg commit -m three
hg push -q
hg -R ../repo update -q
[ -e ../repo/tree/moved ]
hg -R ../repo verify -q
equal revisions "$(hg -R ../repo log -q | wc -l)" 3
hg -R ../repo bundle -q -a ../all.hg
