#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:savelog:debianutils
# long
. "${0%/*}/lib"

for i in 1 2 3 4; do
	echo "log $i" >app.log
	savelog -q -c 3 app.log
done
[ -e app.log.0 ] && [ -e app.log.1.gz ]
equal 'the oldest' "$(zcat app.log.1.gz)" 'log 3'
