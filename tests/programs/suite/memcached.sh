#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:memcached:memcached command:socat:socat
. "${0%/*}/lib"

as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(-u root)
memcached -s /tmp/m.sock -a 0700 "${as_root[@]}" &
server=$!
becomes test -S m.sock
equal mode "$(stat -c %a m.sock)" 700
talk() { printf '%b' "$1" | socat -t 1 - UNIX-CONNECT:/tmp/m.sock | tr -d '\r'; }
equal set "$(talk 'set bird 0 0 4\r\nwren\r\nquit\r\n')" STORED
equal get "$(talk 'get bird\r\nquit\r\n' | xargs)" 'VALUE bird 0 4 wren END'
kill $server
wait $server || true
