#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:socat:socat
. "${0%/*}/lib"

noise 500000 >data
socat -u UNIX-LISTEN:/tmp/s,mode=600 CREATE:/tmp/got &
becomes test -S s
socat -u OPEN:/tmp/data UNIX-CONNECT:/tmp/s
wait $!
cmp data got
[ ! -e s ] || fail 'the socket is still there'
socat UNIX-RECVFROM:/tmp/d,fork EXEC:'tr a-z A-Z' &
becomes test -S d
equal datagram "$(echo wren | socat -t 2 - UNIX-SENDTO:/tmp/d,bind=/tmp/me)" WREN
socat PIPE:/tmp/fifo,excl /dev/null </dev/null &
becomes test -p fifo
socat PTY,link=/tmp/pty,raw,echo=0 EXEC:cat &
becomes test -L pty
