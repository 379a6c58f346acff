#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:ldb:rocksdb-tools
# long
. "${0%/*}/lib"

seq 4000 | awk '{printf "k%06d ==> v%06d\n", $1, $1}' >load
ldb --db=/tmp/db --create_if_missing load <load >/dev/null
equal 'one key' "$(ldb --db=/tmp/db get k000777)" v000777
ldb --db=/tmp/db put bird wren >/dev/null
ldb --db=/tmp/db delete k000001 >/dev/null
ldb --db=/tmp/db compact
equal keys "$(ldb --db=/tmp/db scan | grep -c ' : ')" 4000
ldb --db=/tmp/db checkpoint --checkpoint_dir=/tmp/copy >/dev/null
equal 'the copy, of hard links' "$(ldb --db=/tmp/copy get bird)" wren
sst_dump --file=/tmp/db --command=verify | grep -qi 'ok\|verif\|process' || fail 'no table was verified'
