#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:screen:screen
# only: user
. "${0%/*}/lib"

# Not as root: without capabilities it cannot give its terminal to the group tty, on a tmpfs either.
export SCREENDIR=/tmp/screens TERM=vt100
mkdir -m 700 screens
screen -dmS work sh -c 'echo typed; cat'
listed() { { screen -ls || true; } | grep -q "\.work.*Detached"; }
becomes listed
screen -S work -X stuff 'into the window^M'
shown() { screen -S work -X hardcopy /tmp/copy && grep -q 'into the window' copy; }
becomes shown
grep -q typed copy
screen -S work -X quit
unlisted() { [ -z "$(ls -A screens)" ]; }
becomes unlisted
