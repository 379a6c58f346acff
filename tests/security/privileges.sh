#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What keeper and worker may do: docs/security.md, "Privileges".
. "$(dirname "$0")/../lib.sh"

only root what_a_sandbox_writes_gets_into_no_core_file

# The bits of capabilities(7), as /proc/PID/status has them: caps NUMBER...
caps() {
	local sum=0 number
	for number in "$@"; do sum=$((sum | 1 << number)); done
	printf '%016x' "$sum"
}

CHOWN=0 DAC_OVERRIDE=1 DAC_READ_SEARCH=2 FOWNER=3 FSETID=4 SETGID=6 SETUID=7 SETPCAP=8
SYS_PTRACE=19 SYS_ADMIN=21
FILES="$CHOWN $DAC_OVERRIDE $DAC_READ_SEARCH $FOWNER $FSETID"
# shellcheck disable=SC2206,SC2086
if [ "${TT_ROLE:-}" = root ]; then
	WORKER=($FILES $SETGID $SETUID) KEEPER_NOW=($SYS_ADMIN $SYS_PTRACE $FSETID)
else
	WORKER=($FILES) KEEPER_NOW=($SYS_ADMIN $FSETID)
fi
KEEPER=("${WORKER[@]}" "${KEEPER_NOW[@]}" "$SETPCAP")

pid_of() { tmpnest daemon status --json | json "d['$1_pid']"; }

field() { awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1/status"; }

check_keeper() {
	local pid
	pid=$(pid_of keeper)
	equal 'keeper: permitted' "$(field "$pid" CapPrm)" "$(caps "${KEEPER[@]}")"
	equal 'keeper: effective' "$(field "$pid" CapEff)" "$(caps "${KEEPER_NOW[@]}")"
	equal 'keeper: bounding' "$(field "$pid" CapBnd)" "$(caps "${KEEPER[@]}")"
	equal 'keeper: ambient and inheritable' "$(field "$pid" CapAmb) $(field "$pid" CapInh)" "$(caps) $(caps)"
	equal 'keeper: no_new_privs' "$(field "$pid" NoNewPrivs)" 1
}

# Whoever holds the worker's memory: one thread, that can only wait.
check_holder() {
	local holder
	if sanitized "$1"; then return; fi
	holder=$(pgrep -g "$1" -x tmpnestd-memory) || fail 'nobody holds the memory of the worker'
	equal 'holder: permitted' "$(field "$holder" CapPrm)" "$(caps "${WORKER[@]}")"
	equal 'holder: no_new_privs' "$(field "$holder" NoNewPrivs)" 1
	equal 'holder: filtered' "$(field "$holder" Seccomp)" 2
	equal 'holder: threads' "$(field "$holder" Threads)" 1
}

check_worker() {
	local pid thread threads=0
	pid=$(pid_of worker)
	check_holder "$pid"
	for thread in "/proc/$pid/task"/*; do
		thread=$pid/task/${thread##*/} threads=$((threads + 1))
		equal "$thread: permitted" "$(field "$thread" CapPrm)" "$(caps "${WORKER[@]}")"
		equal "$thread: effective" "$(field "$thread" CapEff)" "$(caps "${WORKER[@]}")"
		equal "$thread: bounding" "$(field "$thread" CapBnd)" "$(caps)"
		equal "$thread: no_new_privs" "$(field "$thread" NoNewPrivs)" 1
		sanitized "$pid" || equal "$thread: filtered" "$(field "$thread" Seccomp)" 2
	done
	[ "$threads" -ge 5 ] || fail "only $threads threads"
}

# Sanitizers make calls of their own; their builds have no filter.
sanitized() { grep -qE 'lib[at]san' "/proc/$(pid_of keeper)/maps" 2>/dev/null || nm -D "$TT_BUILD/fs/tmpnestd" 2>/dev/null | grep -qE '__[at]san_init'; }

check_both() {
	check_keeper
	check_worker
}

case_keeper_and_worker_have_what_they_need_and_no_more() {
	own_daemon
	tmpnest daemon start
	tmpnest run -- sh -c 'echo x >/tmp/f; chown "$(id -u)" /tmp/f; mv /tmp/f /tmp/g; rm /tmp/g'
	check_both
}

case_a_worker_that_takes_over_has_no_more() {
	own_daemon
	tmpnest daemon start
	background holder tmpnest run --nest a -- sh -c 'echo made; exec sleep 60'
	wait_for_line holder made
	local before
	before=$(pid_of worker)
	kill -9 "$before"
	eventually 10 eval '[ "$(pid_of worker)" != '"$before"' ]'
	check_both
	equal 'the nest serves' "$(tmpnest run --nest a -- sh -c 'echo y >/tmp/f; cat /tmp/f')" y
	tmpnest evict --force a
}

case_a_daemon_that_was_upgraded_has_no_more() {
	own_daemon
	tmpnest daemon start
	background holder tmpnest run --nest a -- sh -c 'echo made; exec sleep 60'
	wait_for_line holder made
	local before
	before=$(pid_of worker)
	runs 0 tmpnest daemon upgrade
	eventually 10 eval '[ "$(pid_of worker)" != '"$before"' ]'
	check_both
	equal 'the nest serves' "$(tmpnest run --nest a -- sh -c 'echo y >/tmp/f; cat /tmp/f')" y
	equal 'and a new one' "$(tmpnest run -- sh -c 'echo z >/tmp/f; cat /tmp/f')" z
	tmpnest evict --force a
}

case_nobody_looks_into_keeper_and_worker() {
	own_daemon
	tmpnest daemon start
	tmpnest run -- true
	local which pid
	for which in keeper worker; do
		pid=$(pid_of $which)
		# not dumpable: root's, whoever runs it, and what needs ptrace rights is closed
		equal "$which: owner of its memory" "$(stat -c %u "/proc/$pid/mem")" 0
		case $(awk '/^Max core file size/ { print $5 }' "/proc/$pid/limits") in
		0 | 1) ;;
		*) fail "$which: $(grep core "/proc/$pid/limits")" ;;
		esac
		equal "$which: locked memory" "$(awk '/^Max locked memory/ { print $4, $5 }' "/proc/$pid/limits")" '0 0'
		[ "$TT_ROLE" = user ] || continue
		runs 2 ls "/proc/$pid/root/"
		capture cat "/proc/$pid/environ"
		differ "$which: status of reading its environment" "$status" 0
		capture nsenter --target "$pid" --user --mount true
		differ "$which: status of nsenter" "$status" 0
	done
}

# The mappings that hold what goes through a nest are not dumped, even with a core file.
case_what_a_sandbox_writes_gets_into_no_core_file() {
	own_daemon
	tmpnest daemon start
	background holder tmpnest run --nest a -- sh -c 'echo x >/tmp/f; echo made; exec sleep 60'
	wait_for_line holder made
	local which mapped
	for which in keeper worker; do
		mapped=$(awk '/^[0-9a-f]+-/ { name = $6 } /^VmFlags:/ && name ~ /memfd:tmpnest/ { print (/ dd /) ? "kept" : "dumped" }' \
			"/proc/$(pid_of $which)/smaps" | sort | uniq -c | xargs)
		lacks "$which: mappings" "$mapped" dumped
		contains "$which: mappings" "$mapped" kept
	done
	tmpnest evict --force a
}

main "$@"
