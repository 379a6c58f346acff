#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:git:git
. "${0%/*}/lib"

git config --global user.email bird@nest.example
git config --global user.name Bird
git init -q -b main repo
cd repo
seq 30 >file
ln -s file link
git add . && git commit -qm one
echo local >>file
echo loose >loose
git stash -q -u
[ ! -e loose ]
git worktree add -q -b side ../side
(cd ../side && sed -i 1s/.*/side/ file && git commit -qam side)
git stash pop -q
equal loose "$(cat loose)" loose
git commit -qam local
git merge -q -m merged side
equal merged "$(sed -n '1p;$p' file | xargs)" 'side local'
git worktree remove ../side
git mv file renamed
git commit -qm renamed
git checkout -q HEAD~1 && [ -e file ]
git clean -qfdx
equal status "$(git status --porcelain)" ''
