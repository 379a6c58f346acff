#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Where a store may lie, and who gets into it: docs/security.md.
. "$(dirname "$0")/../lib.sh"

only root a_store_below_somebody_elses_directory_is_refused a_users_store_is_closed_to_roots_payloads \
	files_belong_to_the_user_of_the_nest

refused() { # WHAT PART: the daemon does not start with the present directories
	runs 1 "$TT_BUILD/fs/tmpnestd" --runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR"
	contains "$1" "$err" "$2"
	equal "$1: lines" "$(grep -c '' <<<"$err")" 1
}

case_a_store_below_a_writable_directory_is_refused() {
	own_daemon
	mkdir "$TT_OWN/open"
	TMPNEST_STORE_DIR=$TT_OWN/open/a/s
	local mode
	for mode in 1777 777 703; do
		chmod "$mode" "$TT_OWN/open"
		refused "mode $mode" "$TT_OWN/open is writable for all"
	done
	# the way to it counts as it is resolved
	ln -s open "$TT_OWN/link"
	TMPNEST_STORE_DIR=$TT_OWN/link/s
	refused 'by a link' 'is writable for all'
	TMPNEST_STORE_DIR=$TT_OWN/s TMPNEST_RUNTIME_DIR=$TT_OWN/open/r
	refused 'the runtime directory' 'is writable for all'
	TMPNEST_RUNTIME_DIR=$TT_OWN/r TMPNEST_STORE_DIR=$TT_OWN/open/a/s
	chmod 755 "$TT_OWN/open"
	runs 0 tmpnest run -- true
	equal 'mode of the store' "$(stat -c %a "$TMPNEST_STORE_DIR")" 700
	stop_daemon
}

case_a_store_below_somebody_elses_directory_is_refused() {
	own_daemon
	mkdir "$TT_OWN/theirs"
	chown "$TT_USER:" "$TT_OWN/theirs"
	TMPNEST_STORE_DIR=$TT_OWN/theirs/s
	refused 'owner' "belongs to uid $(id -u "$TT_USER")"
	chown "root:$(id -g "$TT_USER")" "$TT_OWN/theirs"
	chmod 775 "$TT_OWN/theirs"
	refused 'group' 'is writable for group'
	rm -rf "$TT_OWN/theirs"
}

case_the_closed_directories_stay_closed() {
	own_daemon
	mkdir -p "$TMPNEST_STORE_DIR/nests"
	chmod 700 "$TMPNEST_STORE_DIR"
	chmod 777 "$TMPNEST_STORE_DIR/nests"
	touch "$TMPNEST_STORE_DIR/lock" # so that it is a store of ours
	tmpnest run -- true
	equal 'modes' "$(stat -c %a "$TMPNEST_STORE_DIR/nests" "$TMPNEST_STORE_DIR/trash" | xargs)" '0 0'
	if [ "$TT_ROLE" = user ]; then
		runs 2 ls "$TMPNEST_STORE_DIR/nests"
	fi
	# the mode that somebody gives them is taken back at the next start
	chmod 755 "$TMPNEST_STORE_DIR/nests"
	tmpnest daemon stop
	eventually 10 daemon_is_gone
	tmpnest run -- true
	equal 'modes' "$(stat -c %a "$TMPNEST_STORE_DIR/nests" "$TMPNEST_STORE_DIR/trash" | xargs)" '0 0'
}

# Root without capabilities, as in a sandbox of root's without a user namespace: the masks are
# paths, and this bind shows the store beside them.
case_a_users_store_is_closed_to_roots_payloads() {
	own_daemon
	"$TT_BUILD/fs/tmpnestd" --system --runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR" \
		--store-user "$TT_USER"
	equal 'owners' "$(stat -c '%U %a' "$TMPNEST_STORE_DIR" "$TMPNEST_STORE_DIR/nests" "$TMPNEST_STORE_DIR/trash" | xargs)" \
		"$TT_USER 700 $TT_USER 0 $TT_USER 0"
	tmpnest run --nest a -- sh -c 'echo secret >/tmp/f'
	local look='cat /mnt/s/nests/*/data/tmp/f; chmod 777 /mnt/s /mnt/s/nests; ls /mnt/s; ls /mnt/s/nests'
	capture bwrap --bind / / --bind "$TT_OWN" /mnt --cap-drop ALL sh -c "$look"
	lacks 'what is read' "$out" secret
	equal 'what is seen' "$out" ''
	equal 'modes afterwards' "$(stat -c %a "$TMPNEST_STORE_DIR" "$TMPNEST_STORE_DIR/nests" | xargs)" '700 0'
	runs 0 tmpnest run --nest a -- cat /tmp/f
	equal 'in the nest' "$out" secret
	# a later start finds its store
	tmpnest daemon stop
	eventually 10 daemon_is_gone
	"$TT_BUILD/fs/tmpnestd" --system --runtime-dir "$TMPNEST_RUNTIME_DIR" --store-dir "$TMPNEST_STORE_DIR" \
		--store-user "$TT_USER"
	runs 0 tmpnest run --nest a -- cat /tmp/f
	equal 'in the nest' "$out" secret
	tmpnest evict --force a
}

case_files_belong_to_the_user_of_the_nest() {
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE" "$TT_OWN"
	tmpnest daemon start
	runs 0 as_user tmpnest run --nest u -- sh -c 'mkdir /tmp/d; echo x >/tmp/d/f; ln -s x /tmp/l; mkfifo /tmp/p'
	local others
	others=$(find "$TMPNEST_STORE_DIR"/nests/*/data -mindepth 1 ! -user "$TT_USER")
	equal 'files of others' "$others" ''
	equal 'all files' "$(find "$TMPNEST_STORE_DIR"/nests/*/data/tmp -mindepth 1 | wc -l)" 4
	as_user tmpnest evict --force u
}

main "$@"
