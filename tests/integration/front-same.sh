#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tmpnest-bwrap behaves to its caller as the real bwrap does: each case runs on both.
. "$(dirname "$0")/../lib.sh"

export TMPNEST_NEST_FROM=none
unset TMPNEST_NEST TMPDIR
LINE=(--ro-bind / / --dev /dev --proc /proc --unshare-user --unshare-pid --cap-drop ALL)

# both FUNCTION [WORD...]: calls it with plain bwrap and with the front as $BWRAP; what it prints and
# returns must be the same.
both() {
	local plain front
	plain=$(BWRAP=bwrap "$@" 2>&1; echo "status $?")
	front=$(BWRAP=$TT_BUILD/launcher/tmpnest-bwrap "$@" 2>&1; echo "status $?")
	printf '%s\n' "--- $*" "$plain" '---' "$front"
	equal "$*" "$front" "$plain"
}

sandbox() { "$BWRAP" "${LINE[@]}" "$@"; }
exits() { sandbox sh -c "exit $1"; }
dies() { sandbox sh -c "kill -$1 \$\$"; }
case_exit_statuses() {
	local n
	for n in 0 1 7 125 126 127 255; do both exits "$n"; done
	for n in TERM KILL INT HUP; do both dies "$n"; done
}

missing() { sandbox /nowhere/at/all; }
case_a_missing_command() { both missing; }

streams() { printf 'a\nb\n' | sandbox sh -c 'cat; echo err >&2'; }
case_standard_streams() { both streams; }

closed() { sandbox sh -c 'ls /proc/self/fd | wc -l' <&- >closed.out; cat closed.out; }
case_a_closed_standard_input() { both closed; }

# Descriptors of the caller that are not ours arrive, and none of ours does.
descriptors() { sandbox sh -c 'ls -l /proc/$$/fd | sed -nE "s/.* ([0-9]+) -> (.*)/\1 \2/p" | grep -v pipe' 5</etc/passwd 6</dev/null; }
case_descriptors() { both descriptors; }

info() {
	sandbox --info-fd 7 true y 7>info.out
	python3 -c 'import json; d = json.load(open("info.out")); print(sorted(d), d["child-pid"] > 1)'
}
json_status() {
	sandbox --json-status-fd 7 sh -c 'exit 5' 7>status.out
	local status=$?
	python3 -c 'import json; print([sorted(json.loads(l)) for l in open("status.out")])'
	return $status
}
case_info_and_status_descriptors() { both info; both json_status; }

file() { sandbox --tmpfs /mnt --file 8 /mnt/f --ro-bind-data 9 /mnt/g sh -c 'cat /mnt/f /mnt/g' 8<<<one 9<<<two; }
data_in_tmp() { "$BWRAP" --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --tmpfs /tmp --file 8 /tmp/f --perms 0600 --ro-bind-data 9 /tmp/g sh -c 'cat /tmp/f /tmp/g; stat -c "%a %F" /tmp/g' 8<<<one 9<<<two 2>/dev/null; }
case_files_from_descriptors() { both file; both data_in_tmp; }

block() { printf 'x' >go; sandbox --block-fd 7 echo unblocked 7<go; }
case_a_block_descriptor() { both block; }

seccomp() { # a filter that allows everything but mkdir and mkdirat: EPERM
	python3 - >filter <<'PY'
import struct, sys
ins = lambda code, jt, jf, k: struct.pack("<HBBI", code, jt, jf, k)
sys.stdout.buffer.write(ins(0x20, 0, 0, 0) + ins(0x15, 1, 0, 83) + ins(0x15, 0, 1, 258) +
	ins(0x06, 0, 0, 0x50001) + ins(0x06, 0, 0, 0x7fff0000))
PY
	sandbox --tmpfs /mnt --seccomp 8 sh -c 'mkdir /mnt/x && echo made; touch /mnt/y && echo touched' 8<filter
}
case_a_seccomp_filter() {
	[ "$(uname -m)" = x86_64 ] || skip "the filter's numbers are those of x86_64"
	both seccomp
}

environment() { sandbox --clearenv --setenv A 1 --setenv B '' --unsetenv A /usr/bin/env; }
empty_word() { sandbox printf '<%s>' '' 'a b' ''; }
case_environment_and_words() { both environment; both empty_word; }

directory() { cd /usr/share && sandbox pwd && sandbox --chdir /etc pwd; }
no_directory() { sandbox --chdir /tmp/nowhere pwd; }
case_current_directory() { both directory; both no_directory; }

args_block() { printf -- '--setenv\0A\0b c\0--chdir\0/etc' >block; sandbox --args 9 sh -c 'echo "$A"; pwd' 9<block; }
no_descriptor() { ! "$BWRAP" --args 77 true 2>/dev/null; }
case_a_block_of_words() { both args_block; both no_descriptor; }

identity() { sandbox --uid 0 --gid 0 --unshare-uts --hostname nest sh -c 'id -u; id -g; hostname'; }
case_identity() { both identity; }

# The process that was started is bwrap's own: same pid, so a caller's kill reaches it.
own_pid() {
	"$BWRAP" "${LINE[@]}" --die-with-parent sleep 30 >/dev/null 2>&1 &
	local pid=$! i
	for i in $(seq 200); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != bwrap ] || break
		sleep 0.05
	done
	cat "/proc/$pid/comm"
	kill -TERM "$pid"
	wait "$pid"
}
case_the_pid_is_bwraps() { both own_pid; }

killed_group() {
	setsid -f sh -c 'echo $$ >group.pid; exec "$@"' - "$BWRAP" "${LINE[@]}" sleep 31.4159
	local i
	for i in $(seq 200); do
		pgrep -u "$UID" -f '^sleep 31.4159' >/dev/null && break
		sleep 0.05
	done
	pgrep -u "$UID" -f '^sleep 31.4159' | wc -l
	kill -9 -- "-$(cat group.pid)"
	for i in $(seq 200); do
		pgrep -u "$UID" -f '^sleep 31.4159' >/dev/null || break
		sleep 0.05
	done
	pgrep -u "$UID" -f '^sleep 31.4159' | wc -l
}
case_the_process_group_can_be_killed() { both killed_group; }

dying_parent() {
	sh -c '"$@" & wait' - "$BWRAP" "${LINE[@]}" --die-with-parent sleep 31.2718 &
	local parent=$! i
	for i in $(seq 200); do
		pgrep -u "$UID" -f '^sleep 31.2718' >/dev/null && break
		sleep 0.05
	done
	pgrep -u "$UID" -f '^sleep 31.2718' | wc -l
	kill -9 "$parent"
	for i in $(seq 200); do
		pgrep -u "$UID" -f '^sleep 31.2718' >/dev/null || break
		sleep 0.05
	done
	pgrep -u "$UID" -f '^sleep 31.2718' | wc -l
}
case_it_dies_with_its_parent() { both dying_parent 2>/dev/null; }

synced() { # --sync-fd of the caller is bwrap's: end-of-file when the sandbox has ended
	mkfifo -m 600 "sync.$1"
	(cat "sync.$1"; echo ended) &
	sandbox --sync-fd 9 sleep 0.2 9>"sync.$1"
	wait
	rm "sync.$1"
}
case_the_callers_own_sync_descriptor() { both synced a; }

long_input() { head -c 3000000 /dev/zero | tr '\0' x | sandbox sh -c 'head -c 5; wc -c'; }
no_input() { sandbox cat </dev/null; }
a_terminal() { # inside script(1): is it one for the command, and has it its session?
	python3 - "$BWRAP" "${LINE[@]}" "$@" <<'PY'
import os, pty, sys
status = pty.spawn(sys.argv[1:] + ["sh", "-c", "tty >/dev/null && echo a tty; (: </dev/tty) 2>/dev/null && echo its own; exit 4"])
print(os.waitstatus_to_exitcode(status))
PY
}
case_standard_input_of_all_kinds() {
	both long_input
	both no_input
	both a_terminal
	both a_terminal --new-session
}

# TERM for the whole group: bwrap ends by it, a command that traps it goes on.
trapped() {
	local i
	rm -f trapped ready
	: >trapped
	setsid -f sh -c 'echo $$ >group.pid; "$@"; echo $? >bwrap.status' - "$BWRAP" "${LINE[@]}" --bind "$PWD" "$PWD" \
		sh -c 'trap "echo got it >trapped; exit 3" TERM; touch ready; sleep 5 & wait' 2>/dev/null
	for i in $(seq 400); do
		[ ! -e ready ] || break
		sleep 0.02
	done
	python3 -c 'import os, signal
group = int(open("group.pid").read())
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.killpg(group, signal.SIGTERM)'
	for i in $(seq 200); do
		[ ! -s trapped ] || break
		sleep 0.02
	done
	cat trapped
}
case_a_signal_for_the_group() { both trapped; }

# The command's signals from within, and what a caller sees of a sandbox that it kills.
killed() {
	"$BWRAP" "${LINE[@]}" --die-with-parent sleep 10 >/dev/null 2>&1 &
	local pid=$!
	sleep 0.3
	kill "-$1" "$pid"
	wait "$pid" 2>/dev/null
}
case_killing_it() {
	local signal
	for signal in TERM KILL HUP USR1; do both killed $signal; done
}

json_numbers() { # the pid is one of the caller's namespace, the exit code the command's
	sandbox --json-status-fd 7 sh -c 'sleep 0.2; kill -KILL $$' 7>status.out
	python3 -c 'import json
lines = [json.loads(l) for l in open("status.out")]
print([l.get("exit-code") for l in lines], lines[0]["child-pid"] > 1)'
}
info_alive() { # the pid of --info-fd is there while the sandbox runs
	mkfifo info.fifo
	sandbox --info-fd 7 --block-fd 8 cat /dev/null 7>info.out 8<info.fifo &
	local pid=$! i
	exec 9>info.fifo
	for i in $(seq 200); do
		[ ! -s info.out ] || break
		sleep 0.02
	done
	python3 -c 'import json, os
d = json.load(open("info.out"))
print(os.path.exists("/proc/%d" % d["child-pid"]), sorted(k for k in d if d[k]))'
	echo >&9
	exec 9>&-
	wait "$pid"
	echo $?
	rm info.fifo
}
case_the_numbers_of_info_and_status() { both json_numbers; both info_alive; }

more_seccomp() { # two filters, stacked
	python3 - <<'PY'
import struct
ins = lambda code, jt, jf, k: struct.pack("<HBBI", code, jt, jf, k)
for name, number in ("one", 83), ("two", 84): # mkdir, rmdir
	open(name, "wb").write(ins(0x20, 0, 0, 0) + ins(0x15, 0, 1, number) + ins(0x06, 0, 0, 0x50000 + number) +
		ins(0x06, 0, 0, 0x7fff0000))
PY
	sandbox --tmpfs /mnt --add-seccomp-fd 7 --add-seccomp-fd 8 python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number in 83, 84:
    print(libc.syscall(number, b"/mnt/x", 0o700), ctypes.get_errno())' 7<one 8<two
}
case_stacked_seccomp_filters() {
	[ "$(uname -m)" = x86_64 ] || skip "the filters' numbers are those of x86_64"
	both more_seccomp
}

lock_file() {
	: >lock
	sandbox --bind "$PWD" "$PWD" --lock-file "$PWD/lock" python3 -c 'import fcntl
try:
    fcntl.lockf(open("lock", "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("free")
except OSError:
    print("locked")'
}
data_files() { sandbox --tmpfs /mnt --perms 0640 --file 7 /mnt/a --bind-data 8 /mnt/b sh -c 'stat -c "%a" /mnt/a; cat /mnt/a /mnt/b; echo more >>/mnt/b; cat /mnt/b' 7<<<one 8<<<two; }
modes() { "$BWRAP" --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --tmpfs /tmp --perms 0711 --dir /tmp/d --chmod 0700 /tmp/d --symlink d /tmp/l --tmpfs /tmp/t sh -c 'stat -c "%a %F" /tmp/d /tmp/l /tmp/t' 2>/dev/null; }
case_locks_data_and_modes() { both lock_file; both data_files; both modes; }

# A caller that waits with a descriptor for the end, as runtimes do with their control pipe.
outlives() { # the descriptor that only a background child holds
	mkfifo "life.$1"
	(cat "life.$1"; echo ended) &
	sandbox sh -c 'sleep 0.3 & exit 6' 9>"life.$1"
	echo $?
	wait
	rm "life.$1"
}
case_a_background_child() { both outlives a; }

# As a plain user these need the view to be given up, which has to be asked for.
foreign_userns() {
	unshare -Ur sleep 20 &
	local pid=$! i
	for i in $(seq 200); do
		[ "$(readlink "/proc/$pid/ns/user")" = "$(readlink /proc/self/ns/user)" ] || break
		sleep 0.02
	done
	sleep 0.1
	TMPNEST_VIEW=possible "$BWRAP" --ro-bind / / --userns 7 sh -c 'readlink /proc/self/ns/user' 7<"/proc/$pid/ns/user" 2>/dev/null >userns.out
	echo "$?"
	[ "$(cat userns.out)" = "$(readlink "/proc/$pid/ns/user")" ] && echo the one that was given
	kill "$pid"
}
case_a_user_namespace_of_the_caller() { both foreign_userns; }

main "$@"
