#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:git:git
# long
. "${0%/*}/lib"

git config --global user.email bird@nest.example
git config --global user.name Bird
git config --global init.defaultBranch main
git init -q repo
cd repo
for i in $(seq 15); do
	mkdir -p d$((i % 5))
	seq $((i * 50)) >d$((i % 5))/f$i
	git add . && git commit -qm "number $i"
	[ $((i % 5)) -ne 0 ] || git tag -a v$i -m "tag $i"
done
git repack -q -d -f --depth=5 --window=5
git gc -q --prune=now --aggressive
git count-objects -v | grep -qx 'count: 0'
git fsck --full --strict 2>&1 | grep -v notice || true
git commit-graph write 2>/dev/null
git bundle create -q ../bundle --all
git clone -q ../bundle ../clone
equal commits "$(git -C ../clone rev-list --count HEAD)" 15
git archive --format=tar HEAD | tar -t | grep -qx d0/f5
git clone -q --shared . ../borrower
git clone -q --local . ../local
git -C ../local repack -q -a -d
equal 'the clones agree' "$(git -C ../local rev-parse HEAD)" "$(git rev-parse HEAD)"
git -C ../local push -q ../repo HEAD:refs/heads/pushed
git rev-parse -q --verify pushed >/dev/null
