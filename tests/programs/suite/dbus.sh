#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:dbus-daemon:dbus-daemon command:dbus-send:dbus-bin
. "${0%/*}/lib"

dbus-daemon --session --nofork --nopidfile --address=unix:dir=/tmp --print-address=3 3>address &
becomes test -s address
export DBUS_SESSION_BUS_ADDRESS=$(cat address)
case $DBUS_SESSION_BUS_ADDRESS in unix:path=/tmp/*) ;; *) fail "the address is $DBUS_SESSION_BUS_ADDRESS" ;; esac
dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId |
	grep -q string || fail 'no reply'
dbus-monitor "type='signal',interface='bird.Nest'" >seen &
subscribed() {
	dbus-send --session --type=signal / bird.Nest.Sang string:chirp && grep -q chirp seen
}
becomes subscribed
