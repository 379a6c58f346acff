#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: path:/usr/lib/postgresql/*/bin/initdb:postgresql command:psql:postgresql-client
# long
# only: user
# limit: 180
. "${0%/*}/lib"

# It refuses to run as root. The load of pgbench; stopped in the middle as by a crash.
bin=$(dirname "$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -1)")
"$bin/initdb" -D /tmp/data -U tester --auth trust >initdb.log
start() {
	"$bin/postgres" -D /tmp/data -k /tmp -c listen_addresses= -c wal_sync_method=fdatasync >>server.log 2>&1 &
	server=$!
	becomes query -c 'select 1'
}
query() { psql -h /tmp -U tester -d postgres -At "$@"; }
start
"$bin/pgbench" -h /tmp -U tester -i -s 1 -q postgres >bench.log 2>&1
"$bin/pgbench" -h /tmp -U tester -c 4 -j 2 -t 25 postgres >>bench.log 2>&1
before=$(query -c 'select count(*), sum(delta) from pgbench_history')
"$bin/pgbench" -h /tmp -U tester -n -c 2 -T 20 postgres >>bench.log 2>&1 &
sleep 1
"$bin/pg_ctl" -D /tmp/data -m immediate stop >>server.log
wait || true
start # recovers from the log
[ "$(query -c 'select count(*) from pgbench_history')" -ge "${before%|*}" ] || fail 'rows that were committed are gone'
equal 'sums' "$(query -c 'select sum(abalance) from pgbench_accounts')" "$(query -c 'select sum(delta) from pgbench_history')"
query -c 'set work_mem = 64' -c 'set enable_hashagg = off' \
	-c 'select count(distinct md5(aid::text)) from pgbench_accounts' | tail -1 | grep -qx 100000 || fail 'a sort on disk'
query -c 'vacuum full' -c 'reindex table pgbench_accounts' >/dev/null
kill -INT "$server"
wait "$server" || true
[ ! -e /tmp/.s.PGSQL.5432 ] || fail 'the socket is still there'
