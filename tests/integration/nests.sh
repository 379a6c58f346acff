#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The life of a nest: one shared by many commands, ephemeral ones, what keeps them alive.
. "$(dirname "$0")/../lib.sh"

case_two_commands_in_one_nest_share_files_and_the_superblock() {
	local name=shared
	tmpnest run --nest $name -- sh -c 'echo one >/tmp/f; echo two >/var/tmp/g'
	equal content "$(tmpnest run --nest $name -- cat /tmp/f /var/tmp/g | tr '\n' ,)" one,two,
	background holder tmpnest run --nest $name -- sh -c 'stat -c "dev %d" /tmp; sleep 30'
	wait_for_line holder dev
	equal 'st_dev' "dev $(tmpnest run --nest $name -- stat -c %d /tmp)" "$(head -1 holder.log)"
	equal 'st_dev of /var/tmp' "dev $(tmpnest run --nest $name -- stat -c %d /var/tmp)" "$(head -1 holder.log)"
	tmpnest evict --force $name
}

case_two_commands_meet_through_a_socket() {
	local tool=$TT_BUILD/tests/tools/unix-socket
	background server tmpnest run --nest meet -- "$tool" listen /tmp/mongodb-27017.sock
	wait_for_line server listening
	equal answer "$(tmpnest run --nest meet -- "$tool" connect /tmp/mongodb-27017.sock hi)" 'got: hi'
	# another nest has no such name, and may use it
	runs 1 tmpnest run -- "$tool" connect /tmp/mongodb-27017.sock
	contains error "$err" 'No such file'
	runs 0 tmpnest run -- sh -c "$tool listen /tmp/mongodb-27017.sock >/tmp/log & 
		until grep -q listening /tmp/log; do sleep 0.05; done; $tool connect /tmp/mongodb-27017.sock other; kill \$!"
	equal answer "$out" 'got: other'
	tmpnest evict --force meet
}

case_two_commands_conflict_on_flock_and_fcntl_locks() {
	background holder tmpnest run --nest locks -- "$TT_PYTHON" -c '
import fcntl, time
a, b = open("/tmp/flock", "w"), open("/tmp/fcntl", "w")
fcntl.flock(a, fcntl.LOCK_EX)
fcntl.lockf(b, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(30)'
	wait_for_line holder locked
	runs 0 tmpnest run --nest locks -- "$TT_PYTHON" -c '
import fcntl
for name, lock in (("/tmp/flock", fcntl.flock), ("/tmp/fcntl", fcntl.lockf)):
    try:
        lock(open(name, "w"), fcntl.LOCK_EX | fcntl.LOCK_NB)
        raise SystemExit(name + ": both hold the lock")
    except BlockingIOError:
        pass'
	tmpnest evict --force locks
}

case_two_commands_share_a_fifo_and_a_mapping() {
	background reader tmpnest run --nest shared2 -- sh -c 'mkfifo /tmp/p; echo made; cat /tmp/p'
	wait_for_line reader made
	tmpnest run --nest shared2 -- sh -c 'echo through >/tmp/p'
	wait_for_line reader through
	background mapper tmpnest run --nest shared2 -- "$TT_PYTHON" -c '
import mmap, time
f = open("/tmp/map", "w+b"); f.truncate(4096)
m = mmap.mmap(f.fileno(), 4096)
print("mapped", flush=True)
while m[0] != 65: time.sleep(0.02)
m[1] = 66
print("seen", flush=True)
time.sleep(20)'
	wait_for_line mapper mapped
	runs 0 tmpnest run --nest shared2 -- "$TT_PYTHON" -c '
import mmap, time
f = open("/tmp/map", "r+b")
m = mmap.mmap(f.fileno(), 4096)
m[0] = 65
end = time.time() + 10
while m[1] != 66 and time.time() < end: time.sleep(0.02)
raise SystemExit(m[1] != 66)'
	tmpnest evict --force shared2
}

case_a_named_nest_outlives_its_commands() {
	tmpnest run --nest kept -- sh -c 'echo stays >/tmp/f'
	eventually 5 nest_has kept state idle
	equal attachments "$(nest kept attachments)" 0
	equal content "$(tmpnest run --nest kept -- cat /tmp/f)" stays
	tmpnest evict kept
	eventually 5 no_nests
	runs 1 tmpnest run --nest kept -- cat /tmp/f
	tmpnest evict --force kept
}

case_an_ephemeral_nest_ends_with_its_command() {
	runs 0 tmpnest run -- sh -c 'echo x >/tmp/f'
	eventually 5 no_nests
	eventually 5 trash_is_empty
	runs 1 tmpnest run -- cat /tmp/f
	eventually 5 no_nests
}

case_a_background_child_keeps_an_ephemeral_nest() {
	runs 0 tmpnest run -- sh -c '(sleep 2; echo late >/tmp/late; cat /tmp/late >'"$TT_WORK"'/proof) >/dev/null 2>&1 &'
	differ 'nests while the child runs' "$(nest_names)" ''
	eventually 8 no_nests
	equal 'what the child wrote and read' "$(cat proof)" late
}

case_keep_leaves_an_ephemeral_nest_for_a_look() {
	tmpnest run --keep -- sh -c 'echo post-mortem >/tmp/f'
	local name
	sleep 0.5
	name=$(nest_names)
	differ 'the kept nest' "$name" ''
	equal content "$(tmpnest run --nest "$name" -- cat /tmp/f)" post-mortem
	eventually 5 nest_has "$name" state idle
	tmpnest evict "$name"
}

case_limits_of_an_existing_nest_are_ignored_and_said() {
	tmpnest create given --quota 64M
	runs 0 tmpnest run --nest given --quota 128M -- true
	one_message
	contains message "$err" given
	equal 'the limit' "$(nest given bytes_limit)" $((64 << 20))
	eventually 5 nest_has given state idle
	tmpnest evict given
}

case_a_time_to_live_ends_an_idle_nest() {
	tmpnest run --nest brief --ttl 2s -- touch /tmp/f
	equal ttl "$(nest brief ttl)" 2
	tmpnest create rarely --idle-ttl 2s
	tmpnest create lasting --ttl 1h
	eventually 10 nests_are lasting
	tmpnest evict lasting
}

case_many_start_and_end_at_once() {
	local i pids=()
	for i in {1..12}; do
		tmpnest run --nest many -- sh -c "echo $i >/tmp/$i" >/dev/null 2>>errors &
		pids+=($!)
		tmpnest run -- sh -c "echo $i >/tmp/only && [ \$(ls /tmp | wc -l) = 1 ]" 2>>errors &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || fail "a start failed: $(cat errors)"
	done
	equal 'files' "$(tmpnest run --nest many -- sh -c 'ls /tmp | wc -l')" 12
	eventually 5 nest_has many state idle
	tmpnest evict many
	eventually 5 no_nests
}

long fifty_sandboxes_that_are_killed_leave_nothing
case_fifty_sandboxes_that_are_killed_leave_nothing() {
	local i pids=()
	own_daemon
	tmpnest daemon start
	for i in {1..50}; do
		setsid tmpnest run -- sh -c 'while :; do echo x >>/tmp/x; mkdir -p /tmp/d; rmdir /tmp/d; done' >/dev/null 2>&1 &
		pids+=($!)
		[ $((i % 5)) -ne 0 ] || sleep 0.2
		[ $((i % 3)) -ne 0 ] || kill -9 -- "-${pids[$((RANDOM % i))]}" 2>/dev/null || true
	done
	for i in "${pids[@]}"; do kill -9 -- "-$i" 2>/dev/null || true; done
	eventually 20 no_nests
	eventually 20 trash_is_empty
}

main "$@"
