#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Inside a sandbox neither the sockets of the daemon nor the store can be reached.
. "$(dirname "$0")/../lib.sh"

only root an_alias_made_by_a_bind_mount_is_covered_too # only root can make one

uncover() { # runs the attempts in a sandbox made with these options
	capture tmpnest run --nest probe "$@" -- "$TT_TESTS/tools/uncover" \
		"$TT_BUILD/tests/tools/unix-socket" "$TMPNEST_STORE_DIR" "$TMPNEST_RUNTIME_DIR"
	contains 'the attempts ran to their end' "$out" 'tried '
	lacks 'the attempts' "$out" REACHED
	# what they look for is there, outside
	[ -d "$TMPNEST_STORE_DIR/nests" ] || fail "no $TMPNEST_STORE_DIR/nests to hide"
	[ -S "$TMPNEST_RUNTIME_DIR/attach.sock" ] || fail "no $TMPNEST_RUNTIME_DIR/attach.sock to hide"
	tmpnest evict --force probe
}

case_by_default() { uncover; }

case_with_the_parent_of_both_as_a_writable_workspace() { uncover --workspace "$TT_BASE"; }

case_with_the_parent_bound_at_another_place() {
	capture tmpnest run --bind "$TT_BASE:/tmp/alias" -- sh -c 'ls -A /tmp/alias/r /tmp/alias/s; echo end'
	contains 'it ran' "$out" end
	for word in nests trash .sock leases; do
		lacks 'what an alias shows' "$out" "$word"
	done
}

case_with_the_home_named_as_workspace() { uncover --workspace "$HOME"; }

# Capabilities over its own mount namespace. With another uid or gid bubblewrap makes a second user
# namespace, and they would be worth nothing.
CAPABLE=()
for word in --unshare-user --uid 0 --gid 0 --cap-add ALL; do CAPABLE+=(--bwrap-arg "$word"); done

case_with_capabilities_in_the_payloads_user_namespace() {
	runs 0 tmpnest run "${CAPABLE[@]}" -- mount -t tmpfs none /mnt
	uncover "${CAPABLE[@]}"
}

case_covers_are_read_only_and_small() {
	runs 0 tmpnest run -- sh -c "
		! touch $TMPNEST_RUNTIME_DIR/x $TMPNEST_STORE_DIR/x 2>/dev/null
		grep -E ' ($TMPNEST_RUNTIME_DIR|$TMPNEST_STORE_DIR) ' /proc/self/mounts"
	while read -r _ _ _ options _; do
		contains 'options of a cover' ",$options," ,ro,
	done <<<"$out"
	# and if they could be written to after all: one page, and a few names (0 would be: no limit)
	local look=(stat -f -c '%b %S %c' "$TMPNEST_STORE_DIR" "$TMPNEST_RUNTIME_DIR") sandbox
	for sandbox in 'tmpnest run' 'tmpnest-bwrap --ro-bind / / --dev /dev --proc /proc --unshare-pid --unshare-user'; do
		# shellcheck disable=SC2086  # words
		runs 0 $sandbox -- "${look[@]}"
		equal "blocks, their size and names of the covers by $sandbox" "$(xargs <<<"$out")" '1 4096 8 1 4096 8'
	done
}

# They may unmount what bubblewrap mounted, but make nothing writable of it.
case_covers_stay_read_only_for_capabilities() {
	# shellcheck disable=SC2016
	runs 0 tmpnest run "${CAPABLE[@]}" -- sh -c '
		for cover; do
			mount -o remount,bind,rw "$cover"
			mount -o remount,rw "$cover"
			touch "$cover/x" && echo "written: $cover"
		done 2>/dev/null; true' - "$TMPNEST_STORE_DIR" "$TMPNEST_RUNTIME_DIR"
	equal 'what was written' "$out" ''
}

case_the_view_shows_only_at_tmp_and_var_tmp() {
	local mark options
	mark=$(unique)
	for options in '' "--workspace $TT_BASE" "--bind $TT_BASE:/opt" "--ro-bind $TT_BASE:/opt --workspace $TT_BASE"; do
		# shellcheck disable=SC2086  # words
		runs 0 tmpnest run $options -- sh -c "touch /tmp/$mark
			find /tmp /opt $TT_BASE $TMPNEST_RUNTIME_DIR $TMPNEST_STORE_DIR -name $mark 2>/dev/null; true"
		equal "paths of the view with '$options'" "$out" "/tmp/$mark"
	done
}

case_bind_of_the_store_itself_shows_nothing() {
	tmpnest run --nest full -- touch /tmp/f
	capture tmpnest run --bind "$TMPNEST_STORE_DIR:/tmp/s" -- sh -c 'ls -A /tmp/s; echo end'
	lacks 'what the bind shows' "$out" nests
	capture tmpnest run --ro-bind "$TMPNEST_RUNTIME_DIR:/tmp/r" -- sh -c 'ls -A /tmp/r; echo end'
	lacks 'what the bind shows' "$out" .sock
	tmpnest evict --force full
}

case_an_alias_made_by_a_bind_mount_is_covered_too() {
	mkdir alias
	tmpnest daemon status || tmpnest daemon start
	# shellcheck disable=SC2016
	runs 0 unshare --mount --propagation slave bash -ec '
		mount --bind "$1" alias
		ls alias | grep -q nests
		tmpnest run -- sh -c "ls -A $PWD/alias; echo end"' - "$TMPNEST_STORE_DIR"
	equal 'what the alias shows' "$out" end
}

case_a_store_that_was_moved_is_refused() {
	own_daemon
	export TMPNEST_STORE_DIR=$TT_OWN/parent/s
	mkdir "$TT_OWN/parent"
	tmpnest daemon start
	cd "$TT_OWN"
	mv parent moved
	mkdir -p parent/s
	cd "$TT_WORK"
	runs 125 tmpnest run -- true
	one_message
	contains 'message' "$err" "$TMPNEST_STORE_DIR"
	rm -r "$TT_OWN/parent"
	mv "$TT_OWN/moved" "$TT_OWN/parent"
	runs 0 tmpnest run -- true
	stop_daemon
	mv "$TT_OWN/parent/s" "$TT_OWN/s"
}

case_a_directory_above_the_store_cannot_be_renamed_from_inside() {
	own_daemon
	export TMPNEST_STORE_DIR=$TT_OWN/state/deep/s
	mkdir -p "$TT_OWN/state/deep"
	tmpnest daemon start
	runs 1 tmpnest run --workspace "$TT_OWN" -- mv "$TT_OWN/state" "$TT_OWN/moved"
	contains 'message' "$err" 'busy'
	runs 1 tmpnest run --workspace "$TT_OWN" -- mv "$TT_OWN/state/deep" "$TT_OWN/moved"
	contains 'message' "$err" 'busy'
	runs 1 tmpnest-bwrap --ro-bind / / --bind "$TT_OWN" "$TT_OWN" --dev /dev --proc /proc --unshare-pid \
		--unshare-user -- mv "$TT_OWN/state" "$TT_OWN/moved"
	contains 'message' "$err" 'busy'
	# what is beside it can be renamed as ever
	mkdir "$TT_OWN/beside"
	runs 0 tmpnest run --workspace "$TT_OWN" -- mv "$TT_OWN/beside" "$TT_OWN/state/beside"
	stop_daemon
	mv "$TT_OWN/state/deep/s" "$TT_OWN/s"
	rm -r "$TT_OWN/state"
}

case_the_daemon_cannot_be_signalled_from_inside() {
	tmpnest run -- true
	local pid
	pid=$(daemon_pid)
	runs 1 tmpnest run -- sh -c "kill -9 $pid"
	equal 'the daemon' "$(daemon_pid)" "$pid"
}

main "$@"
