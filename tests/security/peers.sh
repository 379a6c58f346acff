#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Nobody in a sandbox talks to the daemon, not even with its sockets bound in on purpose.
. "$(dirname "$0")/../lib.sh"

only root a_users_sandbox_on_the_system_daemon a_proof_from_outside_does_not_help_on_the_system_daemon \
	users_see_and_touch_only_their_own
only user another_users_daemon_is_closed

ASK=${TT_TESTS:-}/security/varlink-ask.py
REFUSED='org.tmpnest.Control.PermissionDenied refused: called from another user namespace'

# The sockets under other names, that no mask knows: $SOCKS. Hard links of sockets are sockets.
expose_sockets() {
	SOCKS=$TT_OWN/x
	mkdir -p "$SOCKS/leases"
	chmod 1777 "$SOCKS/leases"
	ln "$TMPNEST_RUNTIME_DIR/attach.sock" "$TMPNEST_RUNTIME_DIR/control.sock" "$SOCKS"
}

# By the daemon, or before that by the client, to which the system's socket is nobody's in there.
refused_in_words() {
	case $err in
	*'another user namespace'* | *'call from outside any sandbox'* | *'listens there, not root or you'*) ;;
	*) fail "$1: $err" ;;
	esac
}

# What a payload with both sockets below $1 is told; run in the sandbox that the words after make.
try_both() { # SOCKETS WORD...
	local at=$1
	shift
	runs 0 "$@" "$TT_PYTHON" "$ASK" "$at/control.sock" own
	contains 'its own namespace as proof' "$out" "$REFUSED"
	runs 0 "$@" "$TT_PYTHON" "$ASK" "$at/control.sock" none
	contains 'no proof' "$out" 'PermissionDenied refused: no descriptor'
	runs 0 "$@" "$TT_PYTHON" "$ASK" "$at/control.sock" own org.tmpnest.Control.List
	contains 'a method' "$out" "$REFUSED"
	capture "$@" env TMPNEST_RUNTIME_DIR="$at" TMPNEST_STORE_DIR=/nonexistent tmpnest ls
	differ 'status of ls' "$status" 0
	refused_in_words ls
	capture "$@" env TMPNEST_RUNTIME_DIR="$at" TMPNEST_STORE_DIR=/nonexistent tmpnest run -- echo got-in
	lacks 'run' "$out" got-in
	refused_in_words run
}

case_from_the_host_both_sockets_answer() { # else the cases below would prove nothing
	own_daemon
	tmpnest daemon start
	expose_sockets
	runs 0 "$TT_PYTHON" "$ASK" "$SOCKS/control.sock" own
	contains 'from the host' "$out" admitted
	runs 0 "$TT_PYTHON" "$ASK" "$SOCKS/control.sock" none
	contains 'without proof' "$out" PermissionDenied
	runs 0 tmpnest run -- true
}

case_from_a_sandbox_of_ours() {
	own_daemon
	tmpnest daemon start
	expose_sockets
	try_both "$SOCKS" tmpnest run --nest a --bind "$SOCKS" --
	try_both /mnt tmpnest run --nest a --bind "$SOCKS:/mnt" --
	tmpnest evict --force a
}

case_from_plain_sandboxes_with_and_without_a_pid_namespace() {
	own_daemon
	tmpnest daemon start
	expose_sockets
	local -a bwrap=(bwrap --unshare-user --bind / / --dev-bind /dev /dev)
	try_both "$SOCKS" "${bwrap[@]}"
	try_both "$SOCKS" "${bwrap[@]}" --unshare-pid --proc /proc
	try_both "$SOCKS" "${bwrap[@]}" --unshare-all --proc /proc
	# as another uid inside, as root inside, one level deeper
	try_both "$SOCKS" "${bwrap[@]}" --uid 0 --gid 0 --unshare-pid --proc /proc
	try_both "$SOCKS" "${bwrap[@]}" --uid 0 --gid 0 --cap-add ALL unshare -Ur
}

# The front's sandboxes, as a runtime would make them.
case_from_a_sandbox_of_the_front() {
	own_daemon
	tmpnest daemon start
	expose_sockets
	try_both "$SOCKS" tmpnest-bwrap --unshare-user --cap-drop ALL --ro-bind / / --bind "$SOCKS" "$SOCKS" --dev /dev --proc /proc --unshare-pid
	try_both "$SOCKS" tmpnest-bwrap --unshare-user --cap-drop ALL --ro-bind / / --bind "$SOCKS" "$SOCKS" --dev /dev --proc /proc
}

case_a_users_sandbox_on_the_system_daemon() {
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE" "$TT_OWN"
	tmpnest daemon start
	expose_sockets
	as_user_words
	runs 0 "${AS_USER[@]}" "$TT_PYTHON" "$ASK" "$SOCKS/control.sock" own
	contains 'the user outside' "$out" admitted
	try_both "$SOCKS" "${AS_USER[@]}" tmpnest run --bind "$SOCKS" --
	try_both "$SOCKS" "${AS_USER[@]}" bwrap --unshare-user --bind / / --dev-bind /dev /dev
	try_both "$SOCKS" "${AS_USER[@]}" bwrap --unshare-user --bind / / --dev-bind /dev /dev --unshare-pid --proc /proc
}

# An accomplice outside leaves a descriptor of the host's namespace open for the payload.
case_a_proof_from_outside_does_not_help_on_the_system_daemon() {
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE" "$TT_OWN"
	tmpnest daemon start
	tmpnest daemon status | grep -q peer_pidfd || skip 'the kernel has no SO_PEERPIDFD (6.5)'
	expose_sockets
	as_user_words
	local -a accomplice=("${AS_USER[@]}" bash -c 'exec 9</proc/self/ns/user && exec "$@"' -)
	runs 0 "${accomplice[@]}" "$TT_PYTHON" "$ASK" "$SOCKS/control.sock" 9
	contains 'outside' "$out" admitted
	runs 0 "${accomplice[@]}" bwrap --unshare-user --bind / / --dev-bind /dev /dev "$TT_PYTHON" "$ASK" "$SOCKS/control.sock" 9
	contains 'inside' "$out" 'runs in another user namespace than it shows'
	runs 0 "${accomplice[@]}" bwrap --unshare-user --bind / / --dev-bind /dev /dev --unshare-pid --proc /proc "$TT_PYTHON" "$ASK" "$SOCKS/control.sock" 9
	contains 'inside, without its number' "$out" 'runs in another user namespace than it shows'
}

case_users_see_and_touch_only_their_own() {
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE" "$TT_OWN"
	tmpnest daemon start
	tmpnest create --quota 1M theirs
	tmpnest run --nest theirs -- sh -c 'echo secret >/tmp/f'
	local word
	for word in 'show theirs' 'du theirs' 'files theirs' 'cat theirs /tmp/f' 'export theirs -o -' \
		'limits theirs --quota 2M' 'freeze theirs' 'thaw theirs' 'evict theirs'; do
		# shellcheck disable=SC2086
		capture as_user tmpnest $word
		equal "status of $word" "$status" 3
		lacks "$word" "$out" secret
		# its owner may
		# shellcheck disable=SC2086
		[ "$word" = 'evict theirs' ] || runs 0 tmpnest $word
	done
	equal 'what the user lists' "$(as_user tmpnest ls --json | json 'len(d)')" 0
	# the same name is another nest
	runs 0 as_user tmpnest run --nest theirs -- ls -A /tmp
	equal 'what is in it' "$out" ''
	as_user tmpnest evict --force theirs
	equal 'still there' "$(tmpnest run --nest theirs -- cat /tmp/f)" secret
	tmpnest evict --force theirs
}

case_another_users_daemon_is_closed() {
	own_daemon
	tmpnest daemon start
	equal 'modes' "$(stat -c '%a' "$TMPNEST_RUNTIME_DIR" "$TMPNEST_RUNTIME_DIR/attach.sock" "$TMPNEST_RUNTIME_DIR/control.sock" | xargs)" '700 600 600'
}

main "$@"
