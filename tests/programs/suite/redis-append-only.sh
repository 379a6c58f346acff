#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:redis-server:redis-server command:redis-cli:redis-tools
. "${0%/*}/lib"

start() {
	redis-server --port 0 --unixsocket /tmp/r.sock --dir /tmp --appendonly yes --appendfsync always \
		--save '' >>redis.log 2>&1 &
	server=$!
	becomes redis-cli -s r.sock ping
}
start
numbered 'set key# value#' 500 | redis-cli -s r.sock >/dev/null
redis-cli -s r.sock bgrewriteaof >/dev/null
rewritten() { redis-cli -s r.sock info persistence | grep -q 'aof_rewrite_in_progress:0'; }
becomes rewritten
redis-cli -s r.sock set last word >/dev/null
kill -9 $server
wait $server 2>/dev/null || true
rm -f r.sock
start
equal 'keys after a crash' "$(redis-cli -s r.sock dbsize)" 501
equal 'the last one' "$(redis-cli -s r.sock get last)" word
redis-cli -s r.sock shutdown || true
becomes gone $server
