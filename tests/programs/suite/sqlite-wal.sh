#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:sqlite3:sqlite3
. "${0%/*}/lib"

sqlite3 db 'pragma journal_mode=wal; create table t(id integer primary key, n int);' >/dev/null
writers=()
for i in 1 2 3; do
	for k in $(seq 60); do
		echo "pragma busy_timeout=30000; insert into t(n) values ($k);"
	done | sqlite3 db >/dev/null &
	writers+=($!)
done
for pid in "${writers[@]}"; do wait "$pid"; done
equal rows "$(sqlite3 db 'select count(*), sum(n) from t; pragma integrity_check;' | xargs)" '180|5490 ok'
sqlite3 db 'pragma wal_checkpoint(truncate); vacuum;' >/dev/null
[ ! -s db-wal ] || fail 'the log was not truncated'
