#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The stub keeper: what breaks without it, with bwrap alone, and that it does not with it.
. "$(dirname "$0")/../lib.sh"

limit killed_holders_leave_nothing 120
limit killed_holders_leave_nothing_500_times 900
limit eight_processes_start_1000_times 300
limit the_bypass_is_impossible_1000_times 900
long killed_holders_leave_nothing_500_times eight_processes_start_1000_times
long the_bypass_is_impossible_1000_times

# Where nothing depends on who runs it: as agents do. Root repeats what it does otherwise.
only user without_us_a_start_fails with_us_the_start_succeeds without_us_a_deny_is_bypassed
only user a_directory_mask_is_held_too one_reaper_for_many_sandboxes words_of_run_for_bwrap_are_held_too
only user eight_processes_start_at_once eight_processes_start_1000_times
only user the_bypass_is_possible_without_us the_bypass_is_impossible the_bypass_is_impossible_1000_times
only user killed_holders_leave_nothing killed_holders_leave_nothing_500_times many_hold_and_release_at_once
only user run_dies_as_its_command verbs_speak_json usage_errors a_foreign_ledger_is_shared
only user a_corrupt_ledger_is_set_aside audit_lists_exactly_the_differences

export TMPNEST_NEST_FROM=none
unset TMPNEST_NEST TMPDIR
# What a runtime gives its bwrap besides the mounts.
ALONE=(--die-with-parent --unshare-user --unshare-pid --cap-drop ALL)

# A ledger, a home and a work tree of this case alone.
stubs_setup() {
	STUBS=$TT_BUILD/launcher/tmpnest-stubs
	FRONT=$TT_BUILD/launcher/tmpnest-bwrap
	export TMPNEST_STUBS_LEDGER=$TT_WORK/state/ledger.json HOME=$TT_WORK/home
	mkdir -p "$HOME" "$TT_WORK/w"
	W=$TT_WORK/w P=$TT_WORK/w/.bashrc
	# sandbox PROGRAM MASK-WORDS... -- COMMAND...: as runtimes make it, with a writable work tree
	mkdir bin
	cat >bin/sandbox <<-EOF
		#!/bin/sh
		program=\$1
		shift
		exec "\$program" ${ALONE[*]} --ro-bind / / --bind '$W' '$W' --dev /dev --proc /proc "\$@"
	EOF
	chmod +x bin/sandbox
	PATH=$TT_WORK/bin:$PATH
}

hold() { "$STUBS" hold --owner "$1" --pid $$ --cwd "$W" --home "$HOME" "${@:2}"; }

# What a runtime does after a command that it planned when the path was not there.
runtime_cleans_up() {
	[ -s "$P" ] || [ ! -f "$P" ] || rm -f "$P"
}

in_sandbox() { # a shell that tells that it runs, waits for the file GO and then does the rest
	echo "echo ready; while [ ! -e '$W/go' ]; do sleep 0.02; done; $1"
}

# A makes a stub; B plans with it there; A's runtime removes it; B's bwrap starts.
case_without_us_a_start_fails() {
	stubs_setup
	background a sandbox bwrap --ro-bind /dev/null "$P" -- sh -c "$(in_sandbox true)"
	wait_for_line a ready
	[ -f "$P" ] # so B plans --ro-bind P P
	touch "$W/go"
	wait
	runtime_cleans_up
	capture sandbox bwrap --ro-bind "$P" "$P" -- true
	differ status "$status" 0
	contains message "$err" "Can't find source path"
}

case_with_us_the_start_succeeds() {
	stubs_setup
	hold runtime >held
	grep -qx "$P" held
	background a sandbox bwrap --ro-bind "$P" "$P" -- sh -c "$(in_sandbox true)"
	wait_for_line a ready
	touch "$W/go"
	wait
	# A found the path there, so it does not clean up: it is no stub of its own
	runs 0 sandbox bwrap --ro-bind "$P" "$P" -- true
	"$STUBS" release --owner runtime
	[ ! -e "$P" ]
}

# The front needs nobody to call anything: even a planned path that is gone is held again.
case_with_the_front_the_start_succeeds() {
	stubs_setup
	runs 0 sandbox "$FRONT" --ro-bind "$P" "$P" -- true
	eventually 10 test ! -e "$P"
}

# Both have the deny; A ends and its runtime unlinks the empty stub; B may write.
case_without_us_a_deny_is_bypassed() {
	stubs_setup
	background a sandbox bwrap --ro-bind /dev/null "$P" -- sh -c "$(in_sandbox true)"
	wait_for_line a ready
	background b sandbox bwrap --ro-bind /dev/null "$P" -- sh -c "
		echo ready; while [ ! -e '$W/go2' ]; do sleep 0.02; done; echo evil >'$P'"
	wait_for_line b ready
	touch "$W/go"
	sleep 0.3
	runtime_cleans_up
	touch "$W/go2"
	wait
	equal 'what B wrote on the host' "$(cat "$P")" evil
}

case_with_the_front_it_is_not() {
	stubs_setup
	background a sandbox "$FRONT" --ro-bind /dev/null "$P" -- sh -c "$(in_sandbox true)"
	wait_for_line a ready
	background b sandbox "$FRONT" --ro-bind /dev/null "$P" -- sh -c "
		echo ready; while [ ! -e '$W/go2' ]; do sleep 0.02; done; echo evil >'$P' && echo written"
	wait_for_line b ready
	touch "$W/go"
	sleep 0.3
	runtime_cleans_up
	touch "$W/go2"
	wait
	lacks 'B' "$(cat b.log)" written
	eventually 10 test ! -e "$P"
	eventually 10 test "$(cat "$TMPNEST_STUBS_LEDGER" | grep -c path)" = 0
}

reapers() { pgrep -f "tmpnest-stubs reaper --ledger $TMPNEST_STUBS_LEDGER"; }

leases_left() { find "$TMPNEST_RUNTIME_DIR/stubs" -type p 2>/dev/null | grep .; }

# What is there is nobody's stub: no entry, no reaper, no lease stays.
case_a_mask_on_what_is_there_leaves_no_trace() {
	stubs_setup
	mkdir "$W/hooks"
	install -m 444 /dev/null "$W/.zshrc"
	echo real >"$P"
	runs 0 sandbox "$FRONT" --ro-bind "$P" "$P" --ro-bind "$W/hooks" "$W/hooks" \
		--ro-bind "$W/.zshrc" "$W/.zshrc" -- true
	runs 0 sandbox "$FRONT" --ro-bind /dev/null "$W/.zshrc" -- true
	! leases_left
	! reapers
	! grep -s path "$TMPNEST_STUBS_LEDGER"
	[ -e "$W/.zshrc" ] && [ -d "$W/hooks" ]
}

# An empty directory as the mask: the runtime's cleanup would rmdir it.
case_a_directory_mask_is_held_too() {
	stubs_setup
	mkdir empty
	background a sandbox "$FRONT" --ro-bind "$TT_WORK/empty" "$W/.claude" -- sh -c "$(in_sandbox true)"
	wait_for_line a ready
	! rmdir "$W/.claude" 2>/dev/null
	touch "$W/go"
	wait
	eventually 10 test ! -e "$W/.claude"
}

case_a_caller_with_its_own_sync_fd() {
	stubs_setup
	background a sandbox "$FRONT" --sync-fd 9 --ro-bind /dev/null "$P" -- \
		sh -c "$(in_sandbox 'sleep 1')" 9>own-sync-fd
	wait_for_line a ready
	"$STUBS" reclaim
	[ -e "$P" ]
	touch "$W/go"
	wait
	eventually 15 test ! -e "$P"
}

# The reaper is killed; the next one that comes along does its work.
case_a_killed_reaper_is_made_up_for() {
	stubs_setup
	background a sandbox "$FRONT" --ro-bind /dev/null "$P" -- sh -c "$(in_sandbox true)"
	wait_for_line a ready
	eventually 5 reapers
	kill -9 "$(reapers)"
	touch "$W/go"
	wait
	sleep 0.3
	[ -e "$P" ]
	"$STUBS" reclaim
	[ ! -e "$P" ]
}

case_one_reaper_for_many_sandboxes() {
	stubs_setup
	local i
	for i in 1 2 3 4; do
		background "a$i" sandbox "$FRONT" --ro-bind /dev/null "$W/.zshrc" --ro-bind /dev/null "$P" -- \
			sh -c "$(in_sandbox true)"
	done
	for i in 1 2 3 4; do wait_for_line "a$i" ready; done
	equal reapers "$(reapers | wc -l)" 1
	touch "$W/go"
	wait
	eventually 10 test ! -e "$P"
	eventually 10 no_reapers
	! leases_left
}

no_reapers() { ! reapers; }

# Stubs have nothing to do with the view: where none is asked for they are held all the same,
# until no process has the path as a mount point.
case_stubs_are_held_without_a_view_too() {
	stubs_setup
	export TMPNEST_VIEW=never
	background a sandbox "$FRONT" --ro-bind /dev/null "$P" -- \
		sh -c "$(in_sandbox "echo evil >'$P' && echo written; true")"
	wait_for_line a ready
	[ -s "$P" ]
	runtime_cleans_up
	touch "$W/go"
	wait
	lacks 'what it says' "$(cat a.log)" written
	eventually 15 test ! -e "$P"
}

# The words of `tmpnest run` for bwrap itself mask paths too.
case_words_of_run_for_bwrap_are_held_too() {
	stubs_setup
	mkdir empty
	local words=() word
	for word in --ro-bind /dev/null "$P" --ro-bind "$TT_WORK/empty" "$W/.claude"; do
		words+=(--bwrap-arg "$word")
	done
	background a tmpnest run --workspace "$W" "${words[@]}" -- sh -c "$(in_sandbox "
		echo evil >'$P' && echo written; echo evil >'$W/.claude/x' && echo written; true")"
	wait_for_line a ready
	[ -s "$P" ] && [ -e "$W/.claude/.tmpnest-stub" ]
	runtime_cleans_up
	! rmdir "$W/.claude" 2>/dev/null
	touch "$W/go"
	wait
	lacks 'what it says' "$(cat a.log)" written
	eventually 10 test ! -e "$P" -a ! -e "$W/.claude"
	eventually 10 no_reapers
	! leases_left
}

# start_at_once ROUNDS: eight processes, each of which does what a runtime does around bwrap.
start_at_once() {
	stubs_setup
	local i
	for i in 1 2 3 4 5 6 7 8; do
		background "p$i" bash -c '
			for round in $(seq "$1"); do
				plan=/dev/null; [ ! -e "$2" ] || plan=$2
				sandbox "$3" --ro-bind "$plan" "$2" -- sh -c "! echo evil 2>/dev/null >\"$2\"" ||
					echo "failed $round"
				[ "$plan" = "$2" ] || [ -s "$2" ] || rm -f "$2"
			done; echo done' - "$1" "$P" "$FRONT"
	done
	wait
	for i in 1 2 3 4 5 6 7 8; do
		equal "process $i" "$(cat "p$i.log")" 'done'
	done
	eventually 10 test ! -e "$P"
}

case_eight_processes_start_at_once() { start_at_once 5; }
case_eight_processes_start_1000_times() { start_at_once 125; }

# One that has the deny: starts, says so, waits for a word and then runs COMMAND.
start_denied() { # PROGRAM COMMAND IN OUT
	sandbox "$1" --ro-bind /dev/null "$P" -- sh -c "echo ready; read -r word; $2" <&"$3" >&"$4" 2>/dev/null &
}

# bypass PROGRAM ROUNDS: both plan while the path is missing, both start, the first ends and
# its runtime cleans up, then the second writes; how often it could in $written.
bypass() {
	local round word first second name
	for name in a.in a.out b.in b.out; do mkfifo "$name"; done
	exec 5<>a.in 6<>a.out 7<>b.in 8<>b.out
	written=0
	for round in $(seq "$2"); do
		[ ! -e "$P" ] || fail "round $round begins with the path there"
		start_denied "$1" true 5 6
		first=$!
		start_denied "$1" "echo evil >'$P' && echo written || echo denied" 7 8
		second=$!
		read -r -t 20 word <&6 && read -r -t 20 word <&8 || fail "round $round: they do not start"
		echo go >&5
		wait "$first"
		runtime_cleans_up
		echo go >&7
		read -r -t 20 word <&8 || fail "round $round: the second one says nothing"
		wait "$second"
		if [ "$word" = written ]; then
			[ "$(cat "$P")" = evil ] || fail "round $round: written, but not on the host"
			written=$((written + 1))
			rm "$P"
		fi
		runtime_cleans_up
		eventually 10 test ! -e "$P"
	done
	exec 5>&- 6>&- 7>&- 8>&-
}

case_the_bypass_is_possible_without_us() {
	stubs_setup
	bypass bwrap 3
	equal 'rounds in which the denied path was written' "$written" 3
}

bypass_with_us() { # ROUNDS
	stubs_setup
	bypass "$FRONT" "$1"
	equal 'rounds in which the denied path was written' "$written" 0
}

case_the_bypass_is_impossible() { bypass_with_us 8; }
case_the_bypass_is_impossible_1000_times() { bypass_with_us 1000; }

# Holders are killed at any moment, and somebody fills, replaces and writes meanwhile. What was
# there before, and what was written, must be there after; nothing else may.
kill_holders() { # ROUNDS
	stubs_setup
	git init -q "$W"
	local i pid names=(.zshrc .profile .mcp.json .claude/agents .gitconfig)
	cp "$W/.git/info/exclude" exclude
	echo mine >"$W/.gitmodules"
	: >"$W/.idea"
	for i in $(seq "$1"); do
		setsid "$STUBS" run --owner "r$i" --cwd "$W" --home "$HOME" \
			-- sleep 30 >/dev/null 2>&1 &
		pid=$!
		sleep "0.0$((RANDOM % 4))$((RANDOM % 10))"
		case $((RANDOM % 4)) in
		0)
			local name=${names[RANDOM % 5]}
			# where a stub comes between the two, it stays
			rm -f "$W/$name" "real/$name" && echo real 2>/dev/null >"$W/$name" &&
				mkdir -p "real/$(dirname "$name")" && touch "real/$name"
			;;
		esac || :
		kill -9 -- "-$pid" 2>/dev/null || kill -9 "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	"$STUBS" reclaim --verbose >reclaimed
	equal 'holders left' "$("$STUBS" list --json | json 'len(d)')" 0
	equal 'what was there' "$(cat "$W/.gitmodules")" mine
	[ -e "$W/.idea" ]
	cmp "$W/.git/info/exclude" exclude
	local rest
	rest=$(cd "$W" && find . -path ./.git -prune -o -type f -print | sort)
	local wanted
	wanted=$( (echo ./.gitmodules && echo ./.idea && cd real 2>/dev/null && find . -type f) | sort)
	equal 'files after all' "$rest" "$wanted"
	[ ! -e "$W/.git/config.worktree" ]
	equal 'the home directory' "$(ls -A "$HOME")" ''
}

case_killed_holders_leave_nothing() { kill_holders 20; }
case_killed_holders_leave_nothing_500_times() { kill_holders 500; }

case_many_hold_and_release_at_once() {
	stubs_setup
	local i
	for i in 1 2 3 4 5 6; do
		background "p$i" bash -c 'for n in 1 2 3 4 5; do
			"$1" hold --owner "$2" --pid $$ --cwd "$3" --home "$HOME" >/dev/null || echo failed
			[ -e "$3/.bashrc" ] || echo missing
			"$1" release --owner "$2" >/dev/null || echo failed
		done' - "$STUBS" "p$i" "$W"
	done
	wait
	equal 'complaints' "$(cat p?.log)" ''
	equal 'files left' "$(ls -A "$W" "$HOME" | grep -v ':$' | grep . || :)" ''
}

# What was there before, whatever others do at the same time: eight processes hold, release and
# reclaim and are killed at any moment, a directory changes places with a link to another one,
# and somebody writes ledgers that name what is in there.
make_precious() {
	mkdir -p "$TT_WORK/precious/.claude" "$W/sub" "$TT_WORK/aside"
	echo mine >"$TT_WORK/precious/.bashrc"
	echo '{}' >"$TT_WORK/precious/.mcp.json"
	: >"$TT_WORK/precious/.zshrc"
	echo mine >"$TT_WORK/precious/.claude/notes"
}

# What was there: names, inodes, modes, sizes, and of files the change times. Directories may have
# got stubs meanwhile, and lost them.
fingerprint() { # DIRECTORY FILE-WITH-NAMES
	(cd "$1" && while read -r name; do
		case $(stat -c %F "$name") in
		directory) stat -c '%n %i %a' "$name" ;;
		*) stat -c '%n %i %a %s %z' "$name" ;;
		esac
	done) <"$2"
}

swap_directories() {
	until [ -e "$TT_WORK/enough" ]; do
		mv -T "$W/sub" "$TT_WORK/aside/sub"
		ln -s "$TT_WORK/precious" "$W/sub"
		rm "$W/sub"
		mv -T "$TT_WORK/aside/sub" "$W/sub"
	done
}

forge_ledgers() {
	"$TT_PYTHON" - "$TT_WORK/precious" "$W/sub" "$TMPNEST_STUBS_LEDGER" "$TT_WORK/enough" <<-'EOF'
		import json, os, random, sys, time
		entries = []
		for name in (".bashrc", ".mcp.json", ".zshrc", ".claude", ".claude/notes"):
		    status = os.stat(os.path.join(sys.argv[1], name))
		    for place in sys.argv[1:3]:
		        entries.append({"path": os.path.join(place, name), "ino": status.st_ino, "dev": status.st_dev,
		            "kind": "dir" if name == ".claude" else "file", "pid": 2147483646, "runId": "forged",
		            "filled": random.random() < 0.5, "createdAt": 0})
		while not os.path.exists(sys.argv[4]):
		    try: own = json.load(open(sys.argv[3]))["entries"]
		    except (OSError, ValueError, TypeError): own = []
		    whole = json.dumps({"entries": entries + own})
		    with open(sys.argv[3] + ".forged", "w") as out:
		        out.write(random.choice([whole, whole, whole[:len(whole) // 2], "null", ""]))
		    os.replace(sys.argv[3] + ".forged", sys.argv[3])
		    time.sleep(0.02)
	EOF
}

attack() { # ROUNDS ATTACKER...
	stubs_setup
	git init -q "$W"
	make_precious
	mkdir -p "$TT_WORK/state"
	(cd "$TT_WORK/precious" && find . | sort) >there
	local before i attackers=() workers=() attacker
	before=$(fingerprint "$TT_WORK/precious" there)
	for attacker in "${@:2}"; do
		"$attacker" >"$attacker.log" 2>&1 &
		attackers+=($!)
	done
	for i in 1 2 3 4 5 6 7 8; do
		for round in $(seq "$1"); do
			case $((RANDOM % 4)) in
			0) words=(reclaim) ;;
			1) words=(release --owner "o$((RANDOM % 3))") ;;
			*) words=(hold --owner "o$((RANDOM % 3))" --pid $$ --cwd "$W/sub" --home "$HOME") ;;
			esac
			timeout -s KILL "0.$((RANDOM % 2))$((RANDOM % 10))$((RANDOM % 10))" "$STUBS" "${words[@]}" || :
		done >/dev/null 2>&1 &
		workers+=($!)
	done
	wait "${workers[@]}" || :
	touch enough
	for i in "${attackers[@]}"; do
		wait "$i" || fail "an attacker gave up: $(cat ./*.log)"
	done
	equal 'what was there before' "$(fingerprint "$TT_WORK/precious" there)" "$before"
}

case_kills_of_eight_at_once_leave_nothing() {
	attack 12
	for owner in o0 o1 o2; do "$STUBS" release --owner "$owner" >/dev/null; done
	"$STUBS" reclaim >/dev/null
	equal 'files left' "$(find "$W/sub" "$HOME" -mindepth 1)" ''
	lacks 'the exclude file' "$(cat "$W/.git/info/exclude")" tmpnest
	equal 'holders left' "$("$STUBS" list --json | json 'len(d)')" 0
}

# A hold of a directory that is just then a link is one of what it leads to; and a forger who drops
# its entry leaves that stub behind. So there may be more than before, but only stubs.
long swapped_directories_and_forged_ledgers_touch_nothing
case_swapped_directories_and_forged_ledgers_touch_nothing() {
	attack 8 swap_directories forge_ledgers
	local path known
	known=$("$STUBS" paths --cwd "$TT_WORK/precious" --home "$TT_WORK/precious")
	(cd "$TT_WORK/precious" && find . | sort | comm -13 "$TT_WORK/there" -) | while read -r path; do
		[ "${path##*/}" != .tmpnest-stub ] || path=${path%/*}
		path=$TT_WORK/precious/${path#./}
		grep -qxF "$path" <<<"$known" || fail "not a stub: $path"
		[ -d "$path" ] || [ ! -s "$path" ] || fail "written into: $path"
	done
}

case_run_dies_as_its_command() {
	stubs_setup
	runs 7 "$STUBS" run --owner r --cwd "$W" --home "$HOME" -- sh -c "[ -e '$P' ] && exit 7"
	[ ! -e "$P" ]
	capture bash -c '"$@" & wait $!' - "$STUBS" run --owner r --cwd "$W" --home "$HOME" -- sh -c 'kill -HUP $$'
	equal status "$status" 129
	[ ! -e "$P" ]
	local signal
	for signal in TERM INT HUP; do
		# what a shell starts in the background ignores SIGINT from the start
		env --default-signal=INT "$STUBS" run --owner r --cwd "$W" --home "$HOME" -- sleep 30 &
		local pid=$!
		eventually 5 test -e "$P"
		kill "-$signal" "$pid"
		status=0
		wait "$pid" || status=$?
		equal "status after $signal" "$status" $((128 + $(kill -l "$signal")))
		[ ! -e "$P" ]
	done
	# a command with a handler of its own decides itself
	"$STUBS" run --owner r --cwd "$W" --home "$HOME" -- sh -c 'trap "exit 5" TERM; echo ready; while :; do sleep 0.05; done' >t.log &
	pid=$!
	eventually 5 grep -q ready t.log
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	equal 'status of a command with a handler' "$status" 5
	[ ! -e "$P" ]
	runs 7 env --ignore-signal=CHLD "$STUBS" run --owner r --cwd "$W" --home "$HOME" -- sh -c 'exit 7'
	runs 127 "$STUBS" run --owner r --cwd "$W" --home "$HOME" -- /no/such/command
	runs 0 "$STUBS" run --no-ledger --owner r --cwd "$W" --home "$HOME" -- test -e "$P"
	[ ! -e "$P" ]
}

case_verbs_speak_json() {
	stubs_setup
	equal created "$(hold one --json | json 'len(d["created"]) > 20')" true
	equal held "$(hold two --json | json '[len(d["created"]), len(d["held"]) > 20]')" '[0, true]'
	equal list "$("$STUBS" list --json | json '[sorted({e["owner"] for e in d}), {e["holder"] for e in d} == {"alive"}]')" \
		'[["one", "two"], true]'
	equal missing "$("$STUBS" missing --cwd "$W" --home "$HOME" --json | json 'd["missing"]')" '[]'
	equal paths "$("$STUBS" paths --cwd "$W" --home "$HOME" --json | json "'$P' in d")" true
	equal 'still held' "$("$STUBS" release --owner one --json | json '[len(d["removed"]), len(d["still_held"]) > 20]')" '[0, true]'
	equal removed "$("$STUBS" release --all --pid $$ --json | json 'len(d["removed"]) > 20')" true
	equal reclaim "$("$STUBS" reclaim --json | json 'd["removed"]')" '[]'
	equal 'files left' "$(ls -A "$W")" ''
}

case_usage_errors() {
	stubs_setup
	local words
	for words in '' 'frobnicate' 'hold' 'hold --owner' 'hold --owner x --pid 0' 'hold --owner x --pid 1x' \
		'hold --owner x --frob' 'release' 'release --owner a --all' 'run --owner x' 'run -- true' \
		'audit' 'list more' 'hold --owner x --ledger relative'; do
		# shellcheck disable=SC2086  # words
		runs 2 "$STUBS" $words
	done
	runs 1 "$STUBS" audit --mountinfo /dev/zero --cwd "$W" --home "$HOME"
	one_message
	runs 1 "$STUBS" hold --owner x --pid $$ --cwd "$W" --home "$HOME" --ledger "$HOME"
	one_message
	[ -d "$HOME" ]
	runs 1 "$STUBS" hold --owner x --pid 2147483646 --cwd "$W" --home "$HOME"
	one_message
	runs 1 "$STUBS" hold --owner x --pid $$ --cwd "$W" --home "$HOME" --profile /no/such/profile
	one_message
	equal 'files made' "$(ls -A "$W")" ''
}

# The ledger of the runtime that the idea comes from: entries of both in one file.
# Names that no profile knows are recorded in the runtime directory, which may not be there yet.
case_a_daemon_can_start_after_the_stubs() {
	stubs_setup
	own_daemon
	(umask 077 && runs 0 "$STUBS" hold --owner x --pid $$ --path "$W/my-own-name")
	[ -e "$TMPNEST_RUNTIME_DIR/stubs/witness.json" ]
	"$STUBS" release --owner x
	[ ! -e "$W/my-own-name" ]
	runs 0 tmpnest run --no-workspace -- true
}

case_a_foreign_ledger_is_shared() {
	stubs_setup
	mkdir -p "$TT_WORK/state"
	install -m 444 /dev/null "$W/.zshrc"
	"$TT_PYTHON" - "$W/.zshrc" "$TMPNEST_STUBS_LEDGER" <<-'EOF'
		import json, os, sys
		status = os.stat(sys.argv[1])
		entry = {"path": sys.argv[1], "ino": status.st_ino, "dev": status.st_dev, "kind": "file",
		         "ctimeMs": status.st_ctime_ns / 1e6, "pid": os.getppid(), "runId": "theirs",
		         "createdAt": "2026-01-01T00:00:00.000Z", "theirs": {"more": [1]}}
		json.dump({"version": 1, "entries": [entry, {"path": "../evil"}]}, open(sys.argv[2], "w"))
	EOF
	hold ours >/dev/null
	equal 'their entry, ours beside it' \
		"$(json '[d["version"], [e["theirs"] for e in d["entries"] if "theirs" in e], {e["runId"] for e in d["entries"]} == {"ours", "theirs"}]' <"$TMPNEST_STUBS_LEDGER")" \
		'[1, [{"more": [1]}], true]'
	"$STUBS" release --owner ours >/dev/null
	[ -e "$W/.zshrc" ] # they hold it still
	"$STUBS" release --owner theirs >/dev/null
	[ ! -e "$W/.zshrc" ]
}

case_a_corrupt_ledger_is_set_aside() {
	stubs_setup
	mkdir -p "$TT_WORK/state"
	truncate -s 100M "$TMPNEST_STUBS_LEDGER"
	capture hold one
	equal status "$status" 0
	contains warning "$err" 'set aside'
	[ -e "$TMPNEST_STUBS_LEDGER.corrupt" ]
	"$STUBS" release --owner one >/dev/null
	equal 'files left' "$(ls -A "$W")" ''
}

case_audit_lists_exactly_the_differences() {
	stubs_setup
	mkdir "$W/.claude"
	local masks=() path
	while read -r path; do
		case $path in
		*/.zshrc) ;; # the sandbox lacks this one
		"$W"/*) masks+=(--ro-bind /dev/null "$path") ;;
		esac
	done < <("$STUBS" paths --cwd "$W" --home "$HOME" --writable "$W" | grep -v -e '/.git/' -e "/.claude\$")
	masks+=(--ro-bind /dev/null "$W/.newly-denied")
	sandbox bwrap "${masks[@]}" -- cat /proc/self/mountinfo >mountinfo
	capture "$STUBS" audit --mountinfo mountinfo --cwd "$W" --home "$HOME" --json
	equal status "$status" 1
	equal 'denied only' "$(json 'd["denied_only"]' <<<"$out")" "[\"$W/.newly-denied\"]"
	equal 'profile only' "$(json 'sorted(d["profile_only"])' <<<"$out")" \
		"[\"$W/.claude\", \"$W/.git/config.worktree\", \"$W/.zshrc\"]"
}

main "$@"
