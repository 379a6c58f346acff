#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:tchmgr:tokyocabinet-bin
# long
. "${0%/*}/lib"

seq 1000 | awk '{print "key" $1 "\tvalue" $1}' >pairs
for kind in tch tcb; do
	"${kind}mgr" create db.$kind
	"${kind}mgr" importtsv db.$kind pairs >/dev/null
	equal "$kind" "$("${kind}mgr" get db.$kind key500)" value500
	"${kind}mgr" optimize db.$kind
	equal "$kind keys" "$("${kind}mgr" list db.$kind | wc -l)" 1000
done
tchtest write -mt other 20000 20000 >/dev/null
tchtest read -mt other >/dev/null
