#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:mariadbd:mariadb-server
# long
# limit: 180
. "${0%/*}/lib"

as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(--user=root)
mariadb-install-db --no-defaults --datadir=/tmp/data --auth-root-authentication-method=normal \
	--skip-test-db "${as_root[@]}" >install.log 2>&1 || { tail -20 install.log; fail install; }
mariadbd --no-defaults --datadir=/tmp/data --socket=/tmp/my.sock --skip-networking \
	--innodb-buffer-pool-size=16M --pid-file=/tmp/my.pid "${as_root[@]}" >server.log 2>&1 &
server=$!
client() { mariadb --no-defaults --socket=/tmp/my.sock -uroot -N -B "$@"; }
becomes client -e 'select 1'
client -e 'create database d; create table d.t (id int primary key auto_increment, w varchar(200)) engine=innodb;
	create table d.m (id int primary key, w text) engine=myisam; create table d.a (id int) engine=aria;'
for i in 1 2 3; do
	for k in $(seq 40); do echo "insert into d.t(w) values (repeat('x', $k));"; done | client &
done
wait $(jobs -p | grep -vx $server)
client -e 'insert into d.m select id, w from d.t; insert into d.a select id from d.t;'
equal rows "$(client -e 'select count(*), sum(length(w)) from d.t' | xargs)" '120 2460'
client -e 'set tmp_memory_table_size=0; select a.w, count(*) from d.t a, d.t b group by a.w order by 2' >/dev/null
client -e 'check table d.t, d.m, d.a' | awk '$NF != "OK"{exit 1}' || fail 'check table'
mariadb-admin --no-defaults --socket=/tmp/my.sock -uroot shutdown
wait $server
[ ! -e my.sock ] || fail 'the socket is still there'
