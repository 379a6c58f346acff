#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:beanstalkd:beanstalkd command:socat:socat
# long
. "${0%/*}/lib"

mkdir log
start() {
	beanstalkd -l unix:/tmp/b.sock -b /tmp/log -f 0 &
	server=$!
	becomes test -S b.sock
}
talk() { printf '%b' "$1" | socat -t 1 - UNIX-CONNECT:/tmp/b.sock | tr -d '\r'; }
start
equal put "$(talk 'put 1 0 60 4\r\nwren\r\n')" 'INSERTED 1'
kill -9 $server
wait $server 2>/dev/null || true
rm -f b.sock
start
equal 'the job of the log' "$(talk 'reserve\r\n' | xargs)" 'RESERVED 1 4 wren'
