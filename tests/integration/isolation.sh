#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Nobody else finds what is in a nest: not another nest, not the host, not a plain bwrap.
. "$(dirname "$0")/../lib.sh"

limit a_marker_is_found_by_no_path 120
limit a_marker_on_a_memory_store_is_found_by_no_path_at_all 120

# find_marker NAME [PRUNED]: prints every path of that name on all file systems; what
# /proc shows of processes needs ptrace rights over them and is no path.
find_marker() {
	find / \( -path /proc -o -path "${2:-/nothing}" \) -prune -o -name "$1" -print 2>/dev/null || true
}

plain_bwrap() { bwrap --ro-bind / / --dev-bind /dev /dev --proc /proc --unshare-pid "$@"; }

hold_marker() { # NEST MARKER [OPTION...]
	local nest=$1 marker=$2
	shift 2
	background holder tmpnest run --nest "$nest" "$@" -- \
		sh -c "touch /tmp/$marker /var/tmp/$marker; echo made; exec sleep 200"
	wait_for_line holder made
}

case_a_marker_is_found_by_no_path() {
	local marker
	marker=$(unique)
	hold_marker a "$marker"
	equal 'from the host' "$(find_marker "$marker" "$TMPNEST_STORE_DIR")" ''
	export -f find_marker
	equal 'from another nest' "$(tmpnest run -- bash -c "find_marker $marker")" ''
	equal 'from a plain bwrap' "$(plain_bwrap bash -c "find_marker $marker $TMPNEST_STORE_DIR")" ''
	# the search does find the marker where it is
	equal 'from the nest itself' "$(tmpnest run --nest a -- bash -c "find_marker $marker" | sort | xargs)" \
		"/tmp/$marker /var/tmp/$marker"
	if [ "$TT_ROLE" = user ]; then
		runs 2 ls "$TMPNEST_STORE_DIR/nests"
		contains 'the user in the store' "$err" 'Permission denied'
		runs 2 plain_bwrap ls "$TMPNEST_STORE_DIR/nests"
		contains 'a plain bwrap in the store' "$err" 'Permission denied'
	fi
	tmpnest evict --force a
}

case_a_marker_on_a_memory_store_is_found_by_no_path_at_all() {
	local marker
	marker=$(unique)
	hold_marker m "$marker" --store memory
	equal 'from the host' "$(find_marker "$marker")" ''
	export -f find_marker
	equal 'from another nest' "$(tmpnest run -- bash -c "find_marker $marker")" ''
	equal 'from a plain bwrap' "$(plain_bwrap bash -c "find_marker $marker")" ''
	equal 'from the nest itself' "$(tmpnest run --nest m -- ls /tmp)" "$marker"
	tmpnest evict --force m
}

case_a_socket_is_reached_by_no_path() {
	local tool=$TT_BUILD/tests/tools/unix-socket name
	name=$(unique s).sock
	background server tmpnest run --nest a -- "$tool" listen "/tmp/$name"
	wait_for_line server listening
	runs 0 tmpnest run --nest a -- "$tool" connect "/tmp/$name"
	local path
	for path in "/tmp/$name" "/var/tmp/$name"; do
		runs 1 "$tool" connect "$path"
		runs 1 tmpnest run -- "$tool" connect "$path"
		runs 1 plain_bwrap "$tool" connect "$path"
	done
	# root can see the file in the store, but nobody listens on that inode
	local store_path
	store_path=$(find "$TMPNEST_STORE_DIR" -name "$name" 2>/dev/null || true)
	if [ "$TT_ROLE" = root ]; then
		differ 'the path in the store' "$store_path" ''
		cd "$(dirname "$store_path")"
		runs 1 "$tool" connect "$name"
		contains 'the reason' "$err" 'Connection refused'
		cd "$TT_WORK"
	else
		equal 'the path in the store' "$store_path" ''
	fi
	tmpnest evict --force a
}

case_the_hosts_tmp_is_not_seen_inside() {
	local marker
	marker=/tmp/$(unique)
	touch "$marker"
	runs 2 tmpnest run -- ls "$marker"
	runs 0 tmpnest run -- sh -c "touch $marker && rm $marker"
	[ -e "$marker" ] || fail 'the host file was removed from inside'
	rm "$marker"
	equal 'what a new view holds' "$(tmpnest run -- ls -A /tmp /var/tmp | xargs)" '/tmp: /var/tmp:'
}

case_the_hosts_mount_table_is_the_same_before_during_after() {
	own_daemon
	cat /proc/self/mounts >before
	tmpnest daemon start
	cat /proc/self/mounts >with-daemon
	background holder tmpnest run --nest t -- sh -c 'echo made; exec sleep 60'
	wait_for_line holder made
	cat /proc/self/mounts >during
	tmpnest run -- true
	tmpnest run --store memory -- true
	cat /proc/self/mounts >during2
	tmpnest evict --force t
	end_background
	cat /proc/self/mounts >after
	stop_daemon
	cat /proc/self/mounts >stopped
	local file
	for file in with-daemon during during2 after stopped; do
		cmp before "$file"
	done
	cmp /proc/self/mounts before
	[ ! -r /proc/1/mounts ] || lacks 'mounts of the first process' "$(cat /proc/1/mounts)" tmpnest-t
}

case_nothing_of_ours_is_made_in_the_hosts_tmp() {
	own_daemon
	# other programs use the host's /tmp at the same time: look at ours, or at one of our own
	if [ "$TT_ROLE" = user ]; then
		# the number of this user may have been another's before
		touch "$TT_WORK/before"
		made() { find /tmp /var/tmp -user "$(id -un)" -newercm "$TT_WORK/before" 2>/dev/null; }
		tmpnest run --nest t -- sh -c 'touch /tmp/x /var/tmp/y'
		equal 'in the host' "$(made)" ''
		stop_daemon
		equal 'in the host after' "$(made)" ''
		return
	fi
	# shellcheck disable=SC2016
	runs 0 unshare --mount --propagation slave bash -ec '
		mount -t tmpfs none /tmp
		mount -t tmpfs none /var/tmp
		tmpnest run --nest t --bind "$PWD:/tmp/a/b" -- sh -c "touch /tmp/x /var/tmp/y"
		find /tmp /var/tmp -mindepth 1
		tmpnest evict --force t
		tmpnest daemon stop
		find /tmp /var/tmp -mindepth 1'
	lacks 'in the host' "$out" /tmp/
}

# It does not see the others' processes; that it has no rights over what is in another user namespace
# stands behind that, so it is looked at by itself.
case_another_sandbox_cannot_look_through_proc() {
	runs 1 tmpnest run -- test -e "/proc/$$"
	background holder tmpnest run --nest a -- sh -c 'echo secret >/tmp/f; echo made; exec sleep 60'
	wait_for_line holder made
	runs 0 tmpnest run -- sh -c 'for p in /proc/[0-9]*; do cat $p/root/tmp/f 2>/dev/null; done; true'
	lacks 'what is read' "$out" secret
	tmpnest evict --force a
}

main "$@"
