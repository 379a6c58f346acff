#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:rm:coreutils command:find:findutils
# long
. "${0%/*}/lib"

for d in $(seq 20); do
	mkdir -p t/$d/sub
	(cd t/$d && touch $(seq 60) sub/a sub/b && ln -s 1 l)
done
equal entries "$(find t | wc -l)" 1301
for k in 1 2 3; do rm -rf t & removers+=($!); done
for pid in "${removers[@]}"; do wait "$pid" || true; done
rm -rf t
[ ! -e t ]
mkdir u && (cd u && seq 3000 | xargs touch)
find u -type f -name '*7' -delete
equal left "$(ls -f u | wc -l)" 2702
find u -type f -newermt 2000-01-01 -print0 | xargs -0 rm
rmdir u
mkdir -p deep
(cd deep && for i in $(seq 100); do mkdir d; cd d; done; : >bottom)
rm -r deep
