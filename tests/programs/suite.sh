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
	[ "${TT_ROLE:-}" != root ] || STORES='dir memory image'
fi

declare -A FILE=() NEEDS=() RUN_LIMIT=()

# Reads the top of every script; without a process for each, as every case does it.
read_suite() {
	local file name line
	for file in "$SUITE"/*.sh; do
		name=${file##*/}
		name=${name%.sh}
		name=${name//-/_}
		FILE[$name]=$file NEEDS[$name]='' RUN_LIMIT[$name]=60
		while read -r line; do
			case $line in
			'# needs: '*) NEEDS[$name]=${line#*: } ;;
			'# long') long "$name" ;;
			'# only: '*) only "${line#*: }" "$name" ;;
			'# limit: '*) RUN_LIMIT[$name]=${line#*: } ;;
			'. '*) break ;;
			esac
		done <"$file"
		limit "$name" $(((RUN_LIMIT[$name] + 5) * 3)) # all runs of the case
		eval "case_$name() { program $name; }"
	done
}
read_suite

# In place of the frame's: the cases are the files, their dashes written `_`.
cases() {
	local name
	for name in $(printf '%s\n' "${!FILE[@]}" | sort); do
		[ -z "${TT_LONG_CASES[$name]:-}" ] || [ -n "${TT_LONG:-}" ] || continue
		[ "${TT_CASE_ROLE[$name]:-${TT_ROLE:-}}" = "${TT_ROLE:-}" ] || continue
		echo "$name"
	done
}

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

program() { # NAME
	local file=${FILE[$1]} limit=${RUN_LIMIT[$1]} need word package store
	for need in ${NEEDS[$1]}; do
		IFS=: read -r _ word package <<<"$need"
		PATH=$PATH:/usr/sbin:/sbin need "$word" "$package"
	done
	proves 'native tmpfs' "$limit" "$file" on_tmpfs || fail "$1 is no valid case: it fails on a native tmpfs"
	for store in $STORES; do
		proves "a nest, store $store" "$limit" "$file" in_nest "$store" || fail "$1 fails in a nest, store $store"
	done
	no_nests || eventually 5 no_nests
}

main "$@"
