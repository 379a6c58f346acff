#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:tmux:tmux
. "${0%/*}/lib"

unset TMUX
export TERM=screen
tmux -f /dev/null new-session -d -s work 'echo typed; exec cat'
socket=/tmp/tmux-$(id -u)/default
[ -S "$socket" ] || fail 'no socket'
tmux send-keys -t work 'a word' Enter
shown() { [ "$(tmux capture-pane -p -t work | grep -c 'a word')" -eq 2 ]; }
becomes shown
tmux split-window -t work 'sleep 30'
equal panes "$(tmux list-panes -t work | wc -l)" 2
tmux save-buffer - 2>/dev/null || true
tmux kill-server
away() { ! tmux ls; }
becomes away
