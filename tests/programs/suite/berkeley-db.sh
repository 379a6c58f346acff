#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:db_load:db-util
# long
. "${0%/*}/lib"

seq 2000 | awk '{print "key" $1; print "value" $1}' >pairs
mkdir env
for kind in btree hash; do
	db_load -h env -T -t $kind -f pairs $kind.db
	db_verify -h env $kind.db >/dev/null
	equal "$kind keys" "$(db_dump -h env -p $kind.db | grep -c '^ key')" 2000
	db_stat -h env -d $kind.db | grep -q '2000.*keys' || fail "statistics of $kind"
done
db_dump -h env -p btree.db | db_load -h env again.db
db_dump -h env -p again.db | cmp - <(db_dump -h env -p btree.db)
