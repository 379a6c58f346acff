#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The conformance cases (tests/conformance), first on a native tmpfs, which proves the cases
# themselves, then on views: with several users, without capabilities, as a plain user; on
# both stores; at small limits.
. "$(dirname "$0")/../lib.sh"

TT_LIMIT=400
SUITE=${TT_BUILD:-}/tests/conformance/conformance
BYTES=$((8 << 20)) INODES=601

# passes LEAST COMMAND...: the command prints the TAP of the suite: at least that many cases
# were run and none failed.
passes() {
	local least=$1 cases
	shift
	status=0
	"$@" >"$TT_WORK/tap" 2>&1 </dev/null || status=$?
	grep -B 3 '^not ok' "$TT_WORK/tap" | grep -v '^ok' || true
	equal 'cases that failed' "$(grep -c '^not ok' "$TT_WORK/tap")" 0
	equal 'status' "$status" 0
	cases=$(sed -n 's/^1\.\.//p' "$TT_WORK/tap")
	[ "${cases:-0}" -ge "$least" ] || { cat "$TT_WORK/tap" && fail "only ${cases:-no} cases, not $least"; }
	echo "$cases cases"
}

# On a view of a new nest; afterwards it is empty, and its account right.
on_view() { # LEAST STORE [--limits] [OPTION-OF-RUN...]
	local least=$1 store=$2 name=semantics-$2 suite=() filters=()
	shift 2
	if [ "${1:-}" = --limits ]; then
		shift
		set -- --quota "$BYTES" --inodes "$INODES" "$@"
		suite=(--bytes "$BYTES" --inodes "$INODES") filters=(limits:)
	fi
	cp "$SUITE" conformance
	passes "$least" tmpnest run --nest "$name" --store "$store" "$@" -- ./conformance --view "${suite[@]}" /tmp "${filters[@]}"
	eventually 5 nest_has "$name" state idle
	runs 0 tmpnest show "$name" --json --verify
	equal 'inodes left' "$(nest "$name" inodes_used)" 0
	equal 'bytes left' "$(nest "$name" bytes_used)" 0
	tmpnest evict "$name"
}

case_a_native_tmpfs() {
	if [ "$TT_ROLE" = root ]; then
		passes 170 unshare --mount sh -c "mount -t tmpfs -o mode=1777,nosuid,nodev,size=256m none /mnt &&
			cd / && exec $SUITE /mnt"
	else
		passes 160 bwrap --dev-bind / / --perms 1777 --tmpfs /tmp "$SUITE" /tmp
	fi
}

case_a_native_tmpfs_with_small_limits() {
	[ "$TT_ROLE" = root ] || set -- --user --map-root-user
	passes 15 unshare "$@" --mount sh -c "mount -t tmpfs -o mode=1777,size=$BYTES,nr_inodes=$INODES none /mnt &&
		cd / && exec $SUITE --bytes $BYTES --inodes $INODES /mnt limits:"
}

case_several_users_on_a_dir_store() {
	[ "$TT_ROLE" = root ] || skip 'a plain user has one uid'
	on_view 170 dir --keep-caps
}

case_several_users_on_a_memory_store() {
	[ "$TT_ROLE" = root ] || skip 'a plain user has one uid'
	on_view 170 memory --keep-caps
}

long several_users_in_memory_passed_through several_users_on_an_image
only root several_users_in_memory_passed_through several_users_on_an_image
case_several_users_in_memory_passed_through() {
	own_daemon
	TMPNEST_PASSTHROUGH=1 tmpnest daemon start
	on_view 170 memory --keep-caps
	stop_daemon
}

case_several_users_on_an_image() { on_view 170 image --keep-caps; }

case_one_user_without_capabilities() {
	case $TT_ROLE in root) on_view 160 memory ;; *) on_view 160 dir ;; esac
}

case_a_nest_without_extended_attributes() {
	cp "$SUITE" conformance
	passes 15 tmpnest run --no-xattrs -- ./conformance --view /tmp xattr: set-id:
	runs 0 tmpnest run --nest plain --no-xattrs -- "$TT_PYTHON" -c '
import errno, os
open("/tmp/f", "w").close()
for call in (lambda: os.setxattr("/tmp/f", "user.a", b"1"), lambda: os.getxattr("/tmp/f", "user.a"),
             lambda: os.removexattr("/tmp/f", "user.a")):
    try:
        call()
        raise SystemExit("no error")
    except OSError as e:
        assert e.errno == errno.EOPNOTSUPP, e
print(os.listxattr("/tmp/f"))'
	equal 'listed' "$(tail -1 <<<"$out")" '[]'
	equal 'show' "$(nest plain xattrs)" false
	eventually 5 nest_has plain state idle
	tmpnest evict plain
	tmpnest create plain --no-xattrs
	equal 'show' "$(nest plain xattrs)" false
	tmpnest evict plain
}

case_small_limits_on_a_dir_store() { on_view 15 dir --limits; }

case_small_limits_on_a_memory_store() { on_view 15 memory --limits; }

main "$@"
