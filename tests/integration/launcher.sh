#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The launcher around the sandbox: starting the daemon, reporting, the terminal, refusals.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib.sh"

# Not the workers: there are one or two, as one waits for its turn.
daemons() {
	local pid keepers=0
	for pid in $(pgrep -f "tmpnestd .*--runtime-dir $TMPNEST_RUNTIME_DIR( |\$)"); do
		case $(ps -o comm= -p "$pid") in
		'' | tmpnestd-worker | tmpnestd-next | tmpnestd-memory) ;;
		*) keepers=$((keepers + 1)) ;;
		esac
	done
	echo "$keepers"
}

case_many_starters_get_one_daemon() {
	own_daemon
	local i pids=()
	for i in 1 2 3 4 5 6; do
		tmpnest run -- true &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || fail "a starter ended with $?"; done
	equal 'keepers' "$(daemons)" 1
}

case_the_daemon_inherits_nothing() {
	own_daemon
	local pid secret
	secret=$(unique)
	mkfifo inherited
	# the reader sees the end although the daemon lives on
	timeout 20 cat inherited >/dev/null &
	SECRET=$secret tmpnest run -- true 7>inherited 8>&7
	wait $! || fail 'somebody still holds the descriptor'
	pid=$(tmpnest daemon status --json | json 'd["keeper_pid"]')
	kill -0 "$pid"
	equal 'its session' "$(ps -o sid= "$pid" | tr -d ' ')" "$pid"
	# a user's keeper is not dumpable: only root can look on
	[ "$TT_ROLE" = root ] || return 0
	lacks 'environment of the daemon' "$(tr '\0' '\n' <"/proc/$pid/environ")" "$secret"
	equal 'cwd of the daemon' "$(readlink "/proc/$pid/cwd")" /
}

case_inside_a_sandbox_it_says_that_no_daemon_can_be_started() {
	runs 125 tmpnest run -- tmpnest run --no-workspace -- true
	one_message
	contains 'message' "$err" 'inside a sandbox'
}

case_what_is_tmpnests_own_cannot_be_mounted() {
	tmpnest run -- true
	runs 125 tmpnest run --workspace "$TMPNEST_RUNTIME_DIR" -- true
	one_message
	contains 'message' "$err" "$TMPNEST_RUNTIME_DIR"
	runs 125 tmpnest run --ro-bind "$TMPNEST_STORE_DIR:/mnt" -- true
	contains 'message' "$err" "$TMPNEST_STORE_DIR"
}

case_report_counts_what_was_refused_and_the_quota() {
	local name
	name=$(unique)
	runs 4 tmpnest run --report -- sh -c 'mkdir /tmp/claude 2>/dev/null; exit 4'
	one_message
	contains 'report' "$err" 'refused by rules, the quota was not hit'
	runs 1 tmpnest run --report --nest "$name" --quota 64K -- \
		sh -c 'dd if=/dev/zero of=/tmp/f bs=4k 2>/dev/null'
	contains 'report' "$err" 'no access was refused, the quota was hit'
	contains 'report' "$err" '64K of 64K'
	# of this command, not of the nest's whole life
	runs 0 tmpnest run --report --nest "$name" -- true
	contains 'report' "$err" 'no access was refused, the quota was not hit'
	tmpnest evict "$name"
	eventually 10 no_nests
}

case_report_keeps_the_status() {
	runs 137 tmpnest run --report -- sh -c 'kill -KILL $$'
	runs 127 tmpnest run --report -- no-such-command-anywhere
	# bwrap itself fails: here it can be told
	runs 125 tmpnest run --report --bwrap-arg --ro-bind --bwrap-arg /no/such --bwrap-arg /mnt -- true
	lacks 'stderr' "$err" 'report:'
	eventually 10 no_nests
}

case_report_passes_signals_on() {
	local pid
	background reported tmpnest run --report -- \
		sh -c 'trap "echo got it; exit 9" TERM; echo ready; while :; do sleep 0.1; done'
	pid=$!
	wait_for_line reported ready
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	equal status "$status" 9
	contains 'output' "$(cat reported.log)" 'got it'
	eventually 10 no_nests
}

case_report_killed_takes_the_sandbox_along() {
	local pid
	background reported tmpnest run --report -- sh -c 'echo ready; exec sleep 1000'
	pid=$!
	wait_for_line reported ready
	kill -KILL "$pid"
	wait "$pid" || true
	eventually 10 no_nests
}

case_job_control_works_and_nothing_can_type_into_the_terminal() {
	need script bsdutils
	printf '%s\n' 'sleep 100 & ' 'jobs -r | grep -c sleep | sed s/^/running:/' 'kill %1' \
		"$TT_PYTHON -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")' 2>&1 | grep -o 'Errno 1\\b'" \
		"$TT_PYTHON -c 'import fcntl; fcntl.ioctl(0, 0x5412 | 1 << 32, b\"x\")' 2>&1 | grep -c Error" \
		'exit 3' >input
	status=0
	timeout 30 script -qec 'tmpnest run -- bash --norc -i' /dev/null <input >output 2>&1 || status=$?
	cat -v output
	equal status "$status" 3
	contains 'output' "$(cat output)" 'running:1'
	contains 'output' "$(cat output)" 'Errno 1'
	lacks 'output' "$(cat output)" 'no job control'
}

case_closed_standard_streams_stay_closed() {
	runs 0 sh -c 'tmpnest run -- sh -c "[ ! -e /proc/self/fd/0 ] && echo closed" 0<&-'
	equal 'standard input' "$out" closed
}

case_an_own_seccomp_filter_gives_another_session() {
	# field 6 of stat: the session, 0 when it is one of outside
	runs 0 tmpnest run -- cut -d ' ' -f 6 /proc/self/stat
	equal 'session' "$out" 0
	"$TT_PYTHON" -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))' >allow
	runs 0 sh -c 'tmpnest run --bwrap-arg --seccomp --bwrap-arg 9 -- cut -d " " -f 6 /proc/self/stat 9<allow'
	differ 'session' "$out" 0
}

case_user_namespaces_of_others_are_for_root_only() {
	runs "$([ "$TT_ROLE" = user ] && echo 125 || echo 1)" \
		tmpnest run --bwrap-arg --userns --bwrap-arg 9 -- true
	[ "$TT_ROLE" = root ] || contains 'message' "$err" '--userns'
}

case_keep_caps_is_for_root_and_says_what_it_means() {
	capture tmpnest run --keep-caps -- grep CapEff /proc/self/status
	one_message
	if [ "$TT_ROLE" = root ]; then
		equal status "$status" 0
		contains 'message' "$err" 'boundary'
		lacks 'capabilities' "$out" 0000000000000000
	else
		equal status "$status" 125
		contains 'message' "$err" 'only root'
	fi
}

main "$@"
