#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Workers die, and whoever uses a view notices nothing: at every step of every operation, at
# random under load, stopped instead of killed, and while nests come and go.
. "$(dirname "$0")/../lib.sh"

killable() { printf "%s" "$TT_BUILD/tests/crash/$1"; }

# A daemon of this case's directories that does what kill-file says: see tests/crash/kill-file.h.
start_killable() {
	head -c 128 /dev/zero >kill-file
	TMPNEST_KILL_FILE=$TT_WORK/kill-file "$(killable tmpnestd-killable)" \
		--runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR"
}

only root killed_at_every_step each_call_to_the_store_fails_once
only root each_call_to_the_store_fails_once_in_memory
only root a_service_manager_keeps_the_views
only root killed_at_every_step_in_memory killed_twice_at_every_step_in_memory
only root killed_at_every_step_in_memory_passed_through killed_at_every_step_on_an_image
only root random_kills_of_open_files two_thousand_random_kills_on_an_image
only root each_call_to_the_store_fails_once_on_an_image
long killed_at_every_step_in_memory_passed_through killed_at_every_step_on_an_image
long two_thousand_random_kills_on_an_image each_call_to_the_store_fails_once_on_an_image
limit killed_at_every_step_in_memory_passed_through 400
limit killed_at_every_step_on_an_image 600
limit two_thousand_random_kills_on_an_image 1200
limit each_call_to_the_store_fails_once_on_an_image 300
long killed_at_every_step_in_memory each_call_to_the_store_fails_once_in_memory
only root killed_at_every_step_of_an_attachment unnamed_files_beyond_the_budget_leave_nothing
limit killed_at_every_step_of_an_attachment 200
limit unnamed_files_beyond_the_budget_leave_nothing 120
long killed_twice_at_every_step killed_twice_at_every_step_in_memory two_thousand_random_kills
long twenty_live_upgrades_under_load poisonous_requests poisonous_requests_in_memory
limit poisonous_requests 1200
limit poisonous_requests_in_memory 1200
only root poisonous_requests poisonous_requests_in_memory
limit twenty_live_upgrades_under_load 300
long two_thousand_random_kills_without_resend two_thousand_random_kills_in_memory
limit each_call_to_the_store_fails_once 300
limit each_call_to_the_store_fails_once_in_memory 300
limit killed_at_every_step 400
limit killed_at_every_step_in_memory 400
limit killed_twice_at_every_step 3000
limit killed_twice_at_every_step_in_memory 3000
limit random_kills_under_strict_clients 300
limit two_thousand_random_kills 1200
limit two_thousand_random_kills_without_resend 1200
limit two_thousand_random_kills_in_memory 1200

# kill_worker KEEPER: without asking the daemon, which has none for moments. Not the one in waiting.
kill_worker() {
	local pid
	pid=$(pgrep -P "$1" -x tmpnestd-worker) && kill -9 "$pid" 2>/dev/null
}

# Those of the host, without what other cases mount meanwhile.
host_mounts() { awk -v own="$TT_WORK" '!/\/tmpnest-/ || index($0, own)' /proc/self/mounts; }
mounts_are_as_before() { cmp before <(host_mounts); }

# steps STORE once|twice: the account is compared by the clients, the store's recount here.
steps() {
	own_daemon
	host_mounts >before
	start_killable
	tmpnest create --store "$1" steps
	local quiet=()
	[ "$(nest steps data_path)" = mediated ] || quiet=(--setenv STEPS_MAY_BE_QUIET=yes)
	tmpnest run --nest steps "${quiet[@]}" -- "$(killable steps)" kill-file /tmp "$2" >steps.log 2>&1 || {
		cat steps.log
		fail 'an operation noticed that a worker was killed'
	}
	grep -E '^# [0-9]{3,} workers killed' steps.log
	tmpnest show --verify steps
	equal 'files left' "$(tmpnest run --nest steps -- ls -A /tmp)" ''
	mounts_are_as_before
	stop_daemon
}

case_killed_at_every_step() { steps dir once; }
case_killed_at_every_step_in_memory() { steps memory once; }
# Where OPEN and RELEASE are asked for.
case_killed_at_every_step_in_memory_passed_through() { TMPNEST_PASSTHROUGH=1 steps memory once; }
case_killed_at_every_step_on_an_image() { steps image once; }
case_killed_twice_at_every_step() { steps dir twice; }
case_killed_twice_at_every_step_in_memory() { steps memory twice; }

# faults STORE [poison]: what fails is told to the caller, and that is all
faults() {
	own_daemon
	start_killable
	tmpnest create --store "$1" faults
	tmpnest run --nest faults -- "$(killable faults)" kill-file /tmp "${@:2}" >faults.log 2>&1 || {
		cat faults.log
		fail 'an error of the store left something behind'
	}
	eventually 10 nest_has faults state idle
	tmpnest show --verify faults
	equal 'files left' "$(tmpnest run --nest faults -- ls -A /tmp)" ''
	stop_daemon
}

case_each_call_to_the_store_fails_once() { faults dir; }
case_each_call_to_the_store_fails_once_in_memory() { faults memory; }
# A request that kills every worker gets an error in the end, and only that one.
case_poisonous_requests() { faults dir poison; }
case_poisonous_requests_in_memory() { faults memory poison; }
case_each_call_to_the_store_fails_once_on_an_image() { faults image; }

# descriptors KEEPER: how many are open; a plain user's keeper shows its to root only
descriptors() { ls "/proc/$1/fd" 2>/dev/null | wc -l || true; }

# random_kills N STORE: eight strict clients, and others that hold on to what they have
random_kills() {
	local keeper clients before now i=0
	own_daemon
	host_mounts >before
	tmpnest daemon start
	keeper=$(daemon_pid)
	tmpnest create --store "$2" busy
	background clients tmpnest run --nest busy -- "$(killable clients)" /tmp 8 "$TT_WORK/stop"
	clients=$!
	sleep 1
	before=$(descriptors "$keeper")
	while [ "$i" -lt "$1" ]; do
		kill -0 "$clients" 2>/dev/null || break
		! kill_worker "$keeper" || i=$((i + 1))
		sleep "0.0$((RANDOM % 80 + 10))"
	done
	eventually 10 tmpnest daemon status
	now=$(descriptors "$keeper")
	touch stop
	local status=0
	wait "$clients" || status=$?
	cat clients.log
	equal 'kills' "$i" "$1"
	# some have met one that was dead already, on a busy machine many
	at_least 'workers that took over' "$(tmpnest daemon status --json | json 'd["worker_restarts"]')" $((i / 4))
	equal 'exit status of the clients' "$status" 0
	tmpnest show --verify busy
	# What is open with the view in use, give or take what the clients were just doing.
	at_most 'descriptors' "$now" $((before + 40))
	equal 'files left' "$(tmpnest run --nest busy -- ls -A /tmp)" ''
	mounts_are_as_before
	stop_daemon
}

case_random_kills_under_strict_clients() { random_kills 150 dir; }
case_two_thousand_random_kills() { random_kills 2000 dir; }
case_two_thousand_random_kills_in_memory() { random_kills 2000 memory; }
case_two_thousand_random_kills_on_an_image() { random_kills 2000 image; }
case_random_kills_of_open_files() { TMPNEST_PASSTHROUGH=1 random_kills 20 memory; }
case_two_thousand_random_kills_without_resend() {
	TMPNEST_NO_RESEND=1 random_kills 2000 dir
}

# arm N: the worker dies at the N-th point from now; 0: it does not
arm() {
	# shellcheck disable=SC2059 # the number is an escape of the format
	printf "\\x$(printf %02x "$1")\\0\\0\\0\\0\\0\\0\\0" | dd of=kill-file conv=notrunc status=none
}

# What is left when the launcher has come through: one sandbox, and no nest of nobody.
only_shared_is_left() {
	nests_are shared && nest_has shared attachments 1
}

# A nest and an attachment in the making, which the launcher asks for again.
case_killed_at_every_step_of_an_attachment() {
	local i
	own_daemon
	start_killable
	tmpnest create shared
	background holder tmpnest run --nest shared -- sh -c 'echo made; exec sleep 1000'
	wait_for_line holder made
	for ((i = 1; i < 16; i++)); do
		arm "$i"
		runs 0 tmpnest run --nest shared -- true
		arm "$i"
		runs 0 tmpnest run --nest fresh -- sh -c 'echo x >/tmp/f'
		arm 0
		equal "content, killed at $i" "$(tmpnest run --nest fresh -- cat /tmp/f)" x
		tmpnest evict fresh
		arm "$i"
		runs 0 tmpnest run -- true
		arm 0
		eventually 5 only_shared_is_left
	done
	grep -c 'a new one takes over' "$TMPNEST_RUNTIME_DIR/tmpnestd.log"
	lacks 'the log' "$(cat "$TMPNEST_RUNTIME_DIR/tmpnestd.log")" 'views are lost'
	stop_daemon
}

# More unlinked files than descriptors are held for; one is killed on its way to orphans/.
case_unnamed_files_beyond_the_budget_leave_nothing() {
	local i
	own_daemon
	start_killable
	tmpnest create many
	background holder tmpnest run --nest many -- "$TT_PYTHON" -c '
import os, sys, time
held = [os.open("/tmp", os.O_TMPFILE | os.O_RDWR) for i in range(520)]
print("held", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
for n in range(1, 14):
    with open(sys.argv[2], "r+b", buffering=0) as f: f.write(n.to_bytes(8, "little"))
    held.append(os.open("/tmp", os.O_TMPFILE | os.O_RDWR))
    with open(sys.argv[2], "r+b", buffering=0) as f: f.write(bytes(8))
print("more", flush=True)
time.sleep(1000)' "$TT_WORK/go" "$TT_WORK/kill-file"
	wait_for_line holder held
	touch go
	wait_for_line holder more
	eventually 10 tmpnest daemon status
	runs 0 tmpnest show --verify many
	contains 'the recount' "$out" '533 inodes: as in the account'
	stop_daemon
}

# A worker that hangs serves nobody; the keeper replaces it.
case_a_stopped_worker_is_replaced() {
	own_daemon
	local name worker
	for name in a b; do
		background "$name" tmpnest run --nest "$name" -- sh -c '
			echo made; until [ -e '"$TT_WORK"'/stopped ]; do sleep 0.05; done
			echo x >/tmp/x && cat /tmp/x && echo "status $?"; exec sleep 100'
		wait_for_line "$name" made
	done
	worker=$(worker_pid)
	kill -STOP "$worker"
	touch stopped
	for name in a b; do
		wait_for_line "$name" 'status 0'
	done
	differ 'the worker' "$(worker_pid)" "$worker"
	stop_daemon
}

# What belongs to an attachment passes to the next worker: its lease, its mount points.
case_attachments_and_mount_points_pass_on() {
	own_daemon
	mkdir outside
	background holder tmpnest run --nest shared --bind "$TT_WORK/outside:/tmp/in/outside" -- \
		sh -c 'echo made; exec sleep 100'
	local holder=$!
	wait_for_line holder made
	kill -9 "$(worker_pid)"
	eventually 10 tmpnest daemon status
	equal 'sandboxes' "$(nest shared attachments)" 1
	runs 1 tmpnest run --nest shared -- mv /tmp/in /tmp/elsewhere
	contains 'the refusal' "$err" 'busy'
	kill -9 -- "-$holder"
	eventually 5 nest_has shared attachments 0
	equal 'files left' "$(tmpnest run --nest shared -- ls -A /tmp)" ''
	stop_daemon
}

case_an_ephemeral_nest_still_ends_with_its_sandbox() {
	own_daemon
	background view tmpnest run -- sh -c 'echo made; exec sleep 100'
	local view=$!
	wait_for_line view made
	kill -9 "$(worker_pid)"
	eventually 10 tmpnest daemon status
	differ 'nests' "$(nest_names)" ''
	kill -9 -- "-$view"
	eventually 5 no_nests
	eventually 5 trash_is_empty
	stop_daemon
}

# upgrades N: under load; each time a new nest works as well
upgrades() {
	local clients i keeper status=0
	own_daemon
	tmpnest daemon start
	keeper=$(daemon_pid)
	background clients tmpnest run --nest busy -- "$(killable clients)" /tmp 4 "$TT_WORK/stop"
	clients=$!
	sleep 1
	for ((i = 0; i < $1; i++)); do
		if ((i % 2)); then tmpnest daemon restart; else tmpnest daemon upgrade; fi
		runs 0 tmpnest run -- sh -c 'echo x >/tmp/x && cat /tmp/x'
		runs 0 tmpnest run --nest busy -- true
	done
	equal 'the process of the keeper' "$(daemon_pid)" "$keeper"
	touch stop
	wait "$clients" || status=$?
	cat clients.log
	equal 'exit status of the clients' "$status" 0
	tmpnest show --verify busy
	stop_daemon
}

case_live_upgrades_under_load() { upgrades 3; }
case_twenty_live_upgrades_under_load() { upgrades 20; }

# The program of another version may lay out its records in another way.
case_a_program_that_cannot_take_over_is_refused() {
	own_daemon
	mkdir lib
	cp "$TT_BUILD/fs/tmpnestd" lib/tmpnestd
	lib/tmpnestd --runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR"
	background view tmpnest run --nest v -- sh -c 'echo made; exec sleep 100'
	wait_for_line view made
	printf '#!/bin/sh\nexit 3\n' >lib/other
	chmod 755 lib/other
	mv lib/other lib/tmpnestd
	runs 1 tmpnest daemon upgrade
	contains 'the reason' "$err" 'cannot take over'
	runs 0 tmpnest run --nest v -- true
	equal 'sandboxes' "$(nest v attachments)" 1
	stop_daemon
}

case_a_service_manager_keeps_the_views() {
	own_daemon
	local clients manager status=0
	background manager "$TT_PYTHON" "$(dirname "$TT_SCRIPT")/../crash/service-manager.py" "$TT_WORK" \
		"$TT_BUILD/fs/tmpnestd" --system --foreground --fd-store \
		--runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR"
	eventually 10 eval '[ "$(cat starts)" = 1 ]'
	manager=$(cat pid)
	background clients tmpnest run --nest busy -- "$(killable clients)" /tmp 4 "$TT_WORK/stop"
	clients=$!
	sleep 1
	for i in 2 3 4; do
		kill -HUP "$manager"
		eventually 20 eval '[ "$(cat starts)" = $i ]'
		runs 0 tmpnest run -- sh -c 'echo x >/tmp/x && cat /tmp/x'
	done
	differ 'descriptors that it kept' "$(cat stored)" 0
	touch stop
	wait "$clients" || status=$?
	cat clients.log
	equal 'exit status of the clients' "$status" 0
	tmpnest show --verify busy
	tmpnest evict busy
	kill -TERM "$manager"
	eventually 10 daemon_is_gone
	# Nobody gives the descriptors back now: the next daemon begins anew.
	tmpnest daemon start
	stop_daemon
}

main "$@"
