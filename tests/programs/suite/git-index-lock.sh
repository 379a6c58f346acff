#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:git:git
# long
. "${0%/*}/lib"

git init -q repo
cd repo
git config user.email bird@nest.example
git config user.name Bird
# many committers: index.lock lets one in at a time, the others try again
commit() {
	local k
	for k in $(seq 6); do
		echo "$1 $k" >"file-$1-$k"
		until git add "file-$1-$k" 2>/dev/null && git commit -qm "$1 $k" -- "file-$1-$k" 2>/dev/null; do
			git diff --quiet HEAD -- "file-$1-$k" 2>/dev/null && git ls-files --error-unmatch "file-$1-$k" >/dev/null 2>&1 && break
			sleep 0.05
		done
	done
}
for i in 1 2 3; do commit $i & committers+=($!); done
for pid in "${committers[@]}"; do wait "$pid"; done
equal 'files' "$(git ls-tree --name-only HEAD | wc -l)" 18
[ ! -e .git/index.lock ]
git fsck --full --strict 2>&1 | grep -v notice || true
equal status "$(git status --porcelain)" ''
