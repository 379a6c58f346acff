#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The programs of suite/: each is first proven on a native tmpfs of plain bwrap (one that
# fails there is no valid case), then runs in a nest. Without --long: the quick ones, as a
# plain user. With --long: all of them, in both roles and on every store of the role.
#
# A script of suite/ says in comments at its top:
#   # needs: KIND:NAME:PACKAGE...   as in launcher/packages.sh; tests/run.sh installs them
#   # long                          only with --long
#   # only: ROLE                    where the native tmpfs fails too in the other
#   # limit: SECONDS                for one run, where 60 is too little
. "$(dirname "$0")/../lib.sh"

roles user ${TT_LONG:+root}
SUITE=$(dirname "$TT_SCRIPT")/suite
STORES=dir
if [ -n "${TT_LONG:-}" ]; then
	STORES='dir memory'
fi

header() { # FILE WORD: the rest of that line
	sed -n "2,9s/^# $2:\{0,1\} *//p" "$1"
}

# In place of the frame's: the cases are the files. Dashes of a file's name become `_`.
cases() {
	local file name
	for file in "$SUITE"/*.sh; do
		[ -n "${TT_LONG:-}" ] || ! grep -qx '# long' "$file" || continue
		name=$(basename "$file" .sh)
		name=${name//-/_}
		[ "${TT_CASE_ROLE[$name]:-${TT_ROLE:-}}" = "${TT_ROLE:-}" ] || continue
		echo "$name"
	done
}

for file in "$SUITE"/*.sh; do
	name=$(basename "$file" .sh)
	run_limit=$(header "$file" limit)
	# all runs of the case, and what starting and checking take
	limit "${name//-/_}" $(((${run_limit:-60} + 5) * 3))
	role=$(header "$file" only)
	[ -z "$role" ] || only "${role%% *}" "${name//-/_}"
	eval "case_${name//-/_}() { program '$name' '${run_limit:-60}'; }"
done

# The same sandbox as that of `tmpnest run`, with a tmpfs where the nest would be.
on_tmpfs() {
	local drop=()
	[ "$TT_ROLE" = user ] || drop=(--unshare-user --cap-drop ALL)
	bwrap --ro-bind / / --dev /dev --proc /proc --perms 1777 --size $((1 << 30)) --tmpfs /tmp \
		--perms 1777 --tmpfs /var/tmp --unshare-pid --unshare-ipc "${drop[@]}" \
		--die-with-parent --new-session "$@"
}

in_nest() { # STORE
	local store=$1
	shift
	# what the script leaves running ends with it, as in on_tmpfs
	tmpnest run --store "$store" --bwrap-arg --die-with-parent -- "$@"
}

proves() { # LABEL LIMIT FILE WHERE...
	local label=$1 limit=$2 file=$3 status=0
	shift 3
	echo "--- $label"
	"$@" timeout -k 2 "$limit" bash "$file" </dev/null || status=$?
	[ "$status" -ne 124 ] || echo "over its limit of $limit s"
	return "$status"
}

program() { # NAME LIMIT
	local file=$SUITE/$1.sh need kind word package store
	for need in $(header "$file" needs); do
		IFS=: read -r kind word package <<<"$need"
		PATH=$PATH:/usr/sbin:/sbin need "$word" "$package"
	done
	proves 'native tmpfs' "$2" "$file" on_tmpfs || fail "$1 is no valid case: it fails on a native tmpfs"
	for store in $STORES; do
		proves "a nest, store $store" "$2" "$file" in_nest "$store" || fail "$1 fails in a nest, store $store"
	done
	no_nests || eventually 5 no_nests
}

main "$@"
