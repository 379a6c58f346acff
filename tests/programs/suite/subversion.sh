#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:svn:subversion command:svnadmin:subversion
# long
. "${0%/*}/lib"

svnadmin create repo
url=file:///tmp/repo
svn mkdir -q -m start $url/trunk $url/branches
svn checkout -q $url/trunk work
cd work
make_tree tree
rm -r tree/a/b/c 'tree/with space/new
line'
svn add -q tree
svn commit -q -m 'a tree'
svn copy -q -m branch $url/trunk $url/branches/b
echo more >>tree/a/text1
svn propset -q svn:executable on tree/nothing
svn commit -q -m 'and more'
svn move -q tree/a/text2 tree/moved
svn revert -q -R .
svn update -q
equal log "$(svn log -q $url | grep -c '^r')" 4
svnadmin verify -q ../repo
svnadmin dump -q ../repo >../dump
svnadmin create ../copy
svnadmin load -q ../copy <../dump
equal youngest "$(svnlook youngest ../copy)" 4
svn cleanup
