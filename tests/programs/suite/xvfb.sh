#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:Xvfb:xvfb
# long
. "${0%/*}/lib"

# /tmp/.X11-unix as the machine's start makes it: the socket is /tmp/.X11-unix/X77
mkdir -m 1777 .X11-unix
Xvfb :77 -screen 0 320x200x8 -fbdir /tmp -nolisten tcp >x.log 2>&1 &
server=$!
becomes test -S .X11-unix/X77
equal 'the lock' "$(xargs <.X77-lock)" $server
[ -s Xvfb_screen0 ] || fail 'no mapped frame buffer'
! timeout 10 Xvfb :77 -nolisten tcp >second.log 2>&1 || fail 'two servers with one number'
grep -qi 'already active' second.log
kill $server
wait $server || true
[ ! -e .X77-lock ] && [ ! -e .X11-unix/X77 ] || fail 'the lock or the socket is still there'
