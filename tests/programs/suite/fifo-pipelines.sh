#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:mkfifo:coreutils
. "${0%/*}/lib"

mkfifo -m 600 a b c
noise 2000000 >data
tee b c <a >/dev/null &
gzip <b | gunzip >one &
sha256sum <c >two &
cat data >a
wait
cmp data one
equal sum "$(cut -d' ' -f1 two)" "$(sha256sum <data | cut -d' ' -f1)"
# many writers of short lines to one reader
cat a >lines &
reader=$!
exec 9>a
for k in 1 2 3 4; do
	(for i in $(seq 100); do echo "writer $k line $i" >&9; done) & writers+=($!)
done
for pid in "${writers[@]}"; do wait "$pid"; done
exec 9>&-
wait $reader
equal 'whole lines' "$(grep -cxE 'writer [1-4] line [0-9]+' lines)" 400
rm b
mv a b && [ -p b ]
timeout 0.2 cat b || equal 'a reader without a writer waits' $? 124
