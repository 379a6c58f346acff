#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:mdb_load:lmdb-utils
. "${0%/*}/lib"

seq 5000 | awk '{print "key" $1; print "value" $1 * 7}' >pairs
mkdir db
mdb_load -T -f pairs db
mdb_stat -e db >stat
equal entries "$(awk '/Entries:/{print $2}' stat)" 5000
mdb_dump -p db >dump
mkdir copy compacted
mdb_copy db copy && mdb_copy -c db compacted
mdb_dump -p compacted | cmp - dump
mdb_dump -p copy | cmp - dump
# many readers while a writer goes on: they share lock.mdb through a mapping
for i in 1 2 3; do mdb_dump -p db | grep -c '^ key' >count$i & done
seq 5001 6000 | awk '{print "key" $1; print "new"}' | mdb_load -T db
wait
for i in 1 2 3; do grep -qxE '5000|6000' count$i || fail "a reader saw $(cat count$i)"; done
equal 'entries at the end' "$(mdb_stat db | awk '/Entries:/{print $2}')" 6000
