#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What is left when something is killed: sandboxes, launchers, the worker, the keeper.
. "$(dirname "$0")/../lib.sh"

long leases_that_nobody_watched_end_with_the_next_daemon
limit leases_that_nobody_watched_end_with_the_next_daemon 120

# Processes of this case besides the shell: those that have its mark in their environment.
marked_processes() { grep -lzxF "TT_DEATH=$1" /proc/[0-9]*/environ 2>/dev/null || true; }

none_marked() { [ -z "$(marked_processes "$1")" ]; }

case_sigkill_of_the_whole_process_group_leaves_nothing() {
	local mark
	mark=$(unique)
	cat /proc/self/mounts >before
	tmpnest daemon status || tmpnest daemon start
	TT_DEATH=$mark setsid tmpnest run -- sh -c '
		(while :; do echo x >>/tmp/x; done) & sleep 200 & echo made; wait' >group.log 2>&1 </dev/null &
	local group=$!
	wait_for_line group made
	differ 'nests' "$(nest_names)" ''
	differ 'processes' "$(marked_processes "$mark")" ''
	kill -9 -- "-$group"
	eventually 5 none_marked "$mark"
	eventually 5 no_nests
	eventually 5 trash_is_empty
	equal 'files in the store' "$(store_entries "$TMPNEST_STORE_DIR")" ''
	equal 'leases' "$(find "$TMPNEST_RUNTIME_DIR" -type p 2>/dev/null)" ''
	cmp before /proc/self/mounts
}

case_sigkill_of_bwrap_alone_ends_the_use_with_the_last_process() {
	background holder tmpnest run -- sh -c 'echo made; sleep 2; echo y >/tmp/y'
	local pid=$!
	wait_for_line holder made
	kill -9 "$pid"
	eventually 10 no_nests
	eventually 5 trash_is_empty
}

case_a_launcher_killed_at_any_moment_leaves_nothing() {
	local i pid
	tmpnest daemon status || tmpnest daemon start
	for i in {0..25}; do
		setsid tmpnest run -- sleep 100 >/dev/null 2>&1 &
		pid=$!
		sleep "0.00$((i % 10))"
		kill -9 -- "-$pid" 2>/dev/null || kill -9 "$pid" 2>/dev/null || true
	done
	eventually 10 no_nests
	eventually 10 trash_is_empty
}

# The daemon never heard of a launcher that was killed with its lease just made, and a lease
# may end while no daemon runs: the next start removes their names.
case_leases_that_nobody_watched_end_with_the_next_daemon() {
	own_daemon
	background view tmpnest run --nest v -- sh -c 'echo made; exec sleep 60'
	wait_for_line view made
	tmpnest evict --force v
	tmpnest daemon stop
	eventually 5 daemon_is_gone
	end_background
	mkfifo -m 600 "$TMPNEST_RUNTIME_DIR/leases/0123456789abcdef0123456789abcdef"
	sleep 61 # one that was made in the last minute is spared: its launcher may be about to ask
	tmpnest daemon start
	equal 'leases' "$(ls -A "$TMPNEST_RUNTIME_DIR/leases")" ''
	stop_daemon
}

case_a_dead_worker_fails_running_views_clearly_and_new_runs_work() {
	own_daemon
	background view tmpnest run --nest lasting -- sh -c '
		echo before >/tmp/f; echo made
		until [ -e '"$TT_WORK"'/killed ]; do sleep 0.05; done
		timeout 10 cat /tmp/f; echo "status $?"; timeout 10 touch /tmp/new; echo "status $?"'
	wait_for_line view made
	local keeper
	keeper=$(daemon_pid)
	kill -9 "$(worker_pid)"
	eventually 10 tmpnest daemon status
	equal 'the keeper is the same' "$(daemon_pid)" "$keeper"
	touch killed
	eventually 20 eval '[ "$(grep -c status view.log)" = 2 ]'
	lacks 'a hang' "$(cat view.log)" 'status 124'
	if grep -q before view.log; then
		equal 'the view goes on whole' "$(grep -c 'status 0' view.log)" 2
	else
		grep -qE 'not connected|onnection abort|Input/output' view.log || fail "the view says: $(cat view.log)"
	fi
	runs 0 tmpnest run -- sh -c 'echo x >/tmp/x && cat /tmp/x'
	runs 0 tmpnest run --nest lasting -- cat /tmp/f
	equal 'what the nest kept' "$out" before
	stop_daemon
}

case_a_worker_that_is_killed_often_comes_back() {
	own_daemon
	tmpnest daemon start
	local i
	for i in 1 2 3; do
		kill -9 "$(worker_pid)"
		eventually 15 tmpnest daemon status
		runs 0 tmpnest run -- true
	done
	# no descriptor of a dead worker is kept
	at_most 'descriptors of the keeper' "$(sudo_ls "/proc/$(daemon_pid)/fd" | wc -l)" 40
	stop_daemon
}

# /proc/PID/fd of a process that is not dumpable is root's; a plain user counts nothing
sudo_ls() { ls "$1" 2>/dev/null || true; }

case_a_dead_keeper_takes_its_worker_along_and_the_next_daemon_starts() {
	own_daemon
	tmpnest run --nest lasting -- sh -c 'echo stays >/tmp/f'
	local keeper worker
	keeper=$(daemon_pid)
	worker=$(worker_pid)
	kill -9 "$keeper"
	eventually 5 eval "! kill -0 $worker 2>/dev/null || grep -q 'State:.*Z' /proc/$worker/status"
	runs 0 tmpnest run --nest lasting -- cat /tmp/f
	equal 'content' "$out" stays
	differ 'the keeper' "$(daemon_pid)" "$keeper"
	stop_daemon
}

case_daemon_stop_ends_running_views_and_leaves_no_mount() {
	own_daemon
	cat /proc/self/mounts >before
	background view tmpnest run --nest v -- sh -c '
		echo made; until [ -e '"$TT_WORK"'/stopped ]; do sleep 0.05; done; timeout 10 ls /tmp; echo "status $?"'
	wait_for_line view made
	capture tmpnest daemon stop
	[ "$status" -eq 0 ] || { # in use: it may refuse and name --force, or evict first
		tmpnest evict --force v
		tmpnest daemon stop
	}
	eventually 10 daemon_is_gone
	touch stopped
	wait_for_line view status
	lacks 'a hang' "$(cat view.log)" 'status 124'
	cmp before /proc/self/mounts
}

main "$@"
