#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# create, ls, show, limits, evict, daemon, doctor: statuses, tables and JSON.
. "$(dirname "$0")/../lib.sh"

only root doctor_says_what_is_missing_and_how_to_get_it # only root can hide something

case_create_and_show() {
	runs 0 tmpnest create one --quota 10M --inodes 500 --deny /tmp/no --read-only /tmp/ro
	runs 0 tmpnest show one --json
	json '[type(d[k]).__name__ for k in ("name","owner_uid","state","ephemeral","attachments","store",
		"bytes_used","bytes_limit","inodes_used","inodes_limit","denied_total","quota_hits_total","created","last_used")]' \
		<<<"$out" >types
	equal 'types of the fields' "$(cat types)" \
		'["str", "int", "str", "bool", "int", "str", "int", "int", "int", "int", "int", "int", "str", "str"]'
	equal name "$(json 'd["name"]' <<<"$out")" one
	equal owner "$(json 'd["owner_uid"]' <<<"$out")" "$(id -u)"
	equal state "$(json 'd["state"]' <<<"$out")" idle
	equal ephemeral "$(json 'd["ephemeral"]' <<<"$out")" false
	equal store "$(json 'd["store"]' <<<"$out")" dir
	equal limits "$(json '[d["bytes_used"],d["bytes_limit"],d["inodes_used"],d["inodes_limit"]]' <<<"$out")" \
		'[0, 10485760, 0, 500]'
	equal 'time' "$(json '__import__("re").fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", d["created"]) is not None' <<<"$out")" true
	contains rules "$out" /tmp/no
	contains rules "$out" /tmp/ro
	contains rules "$out" /tmp/claude
	runs 0 tmpnest show one
	contains 'the text' "$out" /tmp/claude
	tmpnest evict one
}

case_create_refuses_a_second_one_and_bad_names() {
	runs 0 tmpnest create one
	runs 1 tmpnest create one
	one_message
	contains message "$err" one
	runs 2 tmpnest create
	local name
	for name in .hidden -dash 'a b' a/b '' "$(printf 'n%.0s' {1..65})"; do
		capture tmpnest create -- "$name"
		differ "status of the name '$name'" "$status" 0
	done
	runs 0 tmpnest create "$(printf 'n%.0s' {1..64})"
	tmpnest evict one "$(printf 'n%.0s' {1..64})"
}

case_ls_lists_all_as_a_table_and_as_json() {
	runs 0 tmpnest ls --json
	equal 'no nests' "$(json '[n for n in d if n["state"] != "evicting"]' <<<"$out")" '[]'
	tmpnest create b-nest --quota 64M
	background holder tmpnest run --nest a-nest -- sh -c 'echo made; exec sleep 60'
	wait_for_line holder made
	runs 0 tmpnest ls --json
	equal 'states' "$(json 'sorted([n["name"], n["state"], n["attachments"]] for n in d if n["state"] != "evicting")' <<<"$out")" \
		'[["a-nest", "active", 1], ["b-nest", "idle", 0]]'
	runs 0 tmpnest ls
	contains table "$out" a-nest
	contains table "$out" b-nest
	contains table "$out" 64M
	tmpnest evict --force a-nest
	tmpnest evict b-nest
}

case_a_running_ephemeral_nest_is_listed() {
	background holder tmpnest run -- sh -c 'echo made; exec sleep 60'
	wait_for_line holder made
	equal 'the nest' "$(tmpnest ls --json | json '[[n["ephemeral"], n["state"], n["attachments"]] for n in d if n["state"] != "evicting"]')" \
		'[[true, "active", 1]]'
	tmpnest evict --force "$(nest_names)"
}

case_statuses_for_what_is_not_there() {
	tmpnest daemon status || tmpnest daemon start
	runs 3 tmpnest show missing
	one_message
	contains message "$err" missing
	runs 3 tmpnest evict missing
	runs 3 tmpnest limits missing --quota 1M
	runs 2 tmpnest limits missing --quota many
	runs 2 tmpnest ls --no-such-option
	runs 2 tmpnest evict
}

case_without_a_daemon_they_say_so() {
	own_daemon
	local verb
	for verb in ls 'show x' 'evict x' 'limits x --quota 1M' 'daemon status' 'daemon stop'; do
		# shellcheck disable=SC2086
		runs 5 tmpnest $verb
		one_message
	done
	[ ! -e "$TMPNEST_RUNTIME_DIR/attach.sock" ] || fail 'a daemon was started'
}

case_limits_change_one_at_a_time() {
	tmpnest create one
	runs 0 tmpnest limits one --quota 5M
	runs 0 tmpnest limits one --inodes 77
	equal limits "$(tmpnest show one --json | json '[d["bytes_limit"], d["inodes_limit"]]')" '[5242880, 77]'
	tmpnest evict one
}

case_evict_refuses_a_nest_in_use_unless_forced() {
	background holder tmpnest run --nest busy -- sh -c '
		echo made; while :; do touch /tmp/f 2>>'"$TT_WORK"'/errors || exit 0; sleep 0.1; done'
	wait_for_line holder made
	runs 1 tmpnest evict busy
	one_message
	contains message "$err" busy
	contains 'how many use it' "$err" 1
	runs 0 tmpnest evict --force busy
	eventually 5 no_nests
	eventually 10 test -s errors
	grep -qiE 'not connected|connection abort|No such file' errors || fail "the running view says: $(cat errors)"
	# the name is free at once
	runs 0 tmpnest run --nest busy -- sh -c 'ls -A /tmp'
	equal 'the new nest' "$out" ''
	eventually 5 nest_has busy state idle
	tmpnest evict busy
}

case_evict_several_and_wipe_odd_trees() {
	tmpnest run --nest odd -- sh -ec '
		cd /tmp
		mkdir -p locked/in/side && echo x >locked/in/side/f && chmod 0 locked/in/side/f locked/in/side locked/in locked
		touch "$(printf "new\nline")" "$(printf "\001\377")" -- "-rf"
		mkfifo pipe; ln -s / root; ln -s missing dangling
		d=.; for i in $(seq 200); do d=$d/deep; mkdir "$d"; done'
	tmpnest create second
	eventually 5 nest_has odd state idle
	runs 0 tmpnest evict odd second
	eventually 5 no_nests
	eventually 10 trash_is_empty
}

case_daemon_start_status_stop() {
	own_daemon
	runs 5 tmpnest daemon status
	runs 0 tmpnest daemon start
	runs 0 tmpnest daemon start
	runs 0 tmpnest daemon status
	contains status "$out" "$TMPNEST_STORE_DIR"
	runs 0 tmpnest daemon status --json
	equal 'the fields' "$(json '[d["keeper_pid"] > 1, d["runtime_dir"], d["store_dir"]]' <<<"$out")" \
		"[true, \"$TMPNEST_RUNTIME_DIR\", \"$TMPNEST_STORE_DIR\"]"
	runs 0 tmpnest daemon stop
	eventually 5 daemon_is_gone
	stops_clean
}

case_a_named_nest_is_found_again_by_the_next_daemon() {
	own_daemon
	tmpnest run --nest lasting --quota 64M -- sh -c 'echo stays >/tmp/f'
	eventually 5 nest_has lasting state idle
	tmpnest daemon stop
	eventually 5 daemon_is_gone
	tmpnest daemon start
	equal 'state' "$(nest lasting state)" detached
	equal 'limit' "$(nest lasting bytes_limit)" $((64 << 20))
	equal content "$(tmpnest run --nest lasting -- cat /tmp/f)" stays
	stop_daemon
}

case_directories_of_the_daemon_by_option_and_where_they_may_not_lie() {
	own_daemon
	local run=$TMPNEST_RUNTIME_DIR store=$TMPNEST_STORE_DIR
	(
		unset TMPNEST_RUNTIME_DIR TMPNEST_STORE_DIR
		runs 0 tmpnest daemon start --runtime-dir "$run" --store-dir "$store"
		runs 0 tmpnest ls --json --runtime-dir "$run" --store-dir "$store"
		runs 0 tmpnest run --runtime-dir "$run" --store-dir "$store" -- true
	)
	stop_daemon
	TMPNEST_STORE_DIR=/tmp/tn-store runs 125 tmpnest run -- true
	contains message "$err" /tmp
	TMPNEST_RUNTIME_DIR=$store/inside runs 125 tmpnest run -- true
	TMPNEST_RUNTIME_DIR=$TT_WORK/$(printf 'd%.0s' {1..100}) runs 125 tmpnest run -- true
	TMPNEST_RUNTIME_DIR=relative/dir runs 125 tmpnest run -- true
}

case_doctor_tells_what_it_found() {
	runs 0 tmpnest doctor
	local word
	for word in /dev/fuse bwrap 'user namespace' kernel; do
		contains 'doctor' "$out" "$word"
	done
	runs 0 tmpnest doctor --json
	json d <<<"$out" >/dev/null
	TMPNEST_BWRAP=/no/such/bwrap runs 1 tmpnest doctor
	contains 'doctor' "$out" bubblewrap
}

case_doctor_says_what_is_missing_and_how_to_get_it() {
	own_daemon # none runs there
	: >empty
	# shellcheck disable=SC2016
	runs 1 unshare --mount --propagation slave bash -ec 'mount --bind empty /usr/bin/bwrap; tmpnest doctor'
	contains 'without bwrap' "$out" 'install the package bubblewrap'
	# a node that no driver serves: the module is not there
	# shellcheck disable=SC2016
	runs 1 unshare --mount --propagation slave bash -ec 'mount -t tmpfs none /mnt
		mknod /mnt/fuse c 10 250; mount --bind /mnt/fuse /dev/fuse; umount -l /mnt; tmpnest doctor'
	grep -E '/dev/fuse +(missing|failed)' <<<"$out" | grep -q -e '->' || fail "without /dev/fuse: $out"
}

case_requests_are_counted_by_operation() {
	tmpnest run --nest counted -- mkdir /tmp/a /tmp/b /tmp/c
	runs 0 tmpnest show counted --json
	equal 'MKDIR requests' "$(json '[v for k, v in d["operations"].items() if k.upper() == "MKDIR"]' <<<"$out")" '[3]'
	eventually 5 nest_has counted state idle
	tmpnest evict counted
}

main "$@"
