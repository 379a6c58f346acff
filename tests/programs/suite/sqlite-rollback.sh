#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:sqlite3:sqlite3
. "${0%/*}/lib"

# A killed writer leaves a hot journal: the next one rolls back.
sqlite3 db 'pragma journal_mode=delete; create table t(n); insert into t values (1);' >/dev/null
mkfifo commands
sqlite3 db <commands &
writer=$!
exec 7>commands
echo 'pragma cache_size=1; begin; insert into t with recursive c(x) as
	(select 1 union all select x+1 from c where x < 20000) select hex(randomblob(40)) from c;' >&7
becomes test -s db-journal
grown() { [ "$(stat -c %s db)" -gt 100000 ]; }
becomes grown
kill -9 $writer
wait $writer 2>/dev/null || true
[ -s db-journal ] || fail 'no hot journal'
equal 'after the rollback' "$(sqlite3 db 'select count(*) from t; pragma integrity_check' | xargs)" '1 ok'
[ ! -e db-journal ] || fail 'the journal is still there'
for mode in truncate persist memory off; do
	sqlite3 db "pragma journal_mode=$mode; begin; insert into t values (2); commit;" >/dev/null
done
equal 'in four journal modes' "$(sqlite3 db 'select count(*) from t')" 5
