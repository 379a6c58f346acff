#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The model test: the same random operations on a nest's view and on a native tmpfs.
#
#   tests/model/run.sh [--store dir|memory] [--first SEED] [--seconds N] SEEDS OPERATIONS
#
# For each seed a new nest; at the end of the operations, with the files still open, and
# once more when the sandbox has ended, the account is compared with a recount of the store.
# --seconds: begin no further seed after that time. A failure prints the command that
# replays it; with MODEL_VERBOSE=1 it finds the operation after which the trees differed.
set -u
cd "$(dirname "$0")" || exit 1
BUILD=${TMPNEST_BUILD:-$(cd ../.. && pwd -P)/build}
PATH=$BUILD/launcher:$PATH
SELF=$PWD/run.sh
STORE=dir FIRST=1 SECONDS_MOST=

while [ $# -gt 2 ]; do
	case $1 in
	--store) STORE=$2 ;;
	--first) FIRST=$2 ;;
	--seconds) SECONDS_MOST=$2 ;;
	*) break ;;
	esac
	shift 2
done
[ $# -eq 2 ] || { sed -n '5,6s/^# *//p' "$SELF" >&2 && exit 2; }
SEEDS=$1 OPERATIONS=$2

# A daemon of its own, unless the caller has one.
if [ -z "${TMPNEST_RUNTIME_DIR:-}" ]; then
	state=/var/lib
	[ "$(id -u)" -eq 0 ] || state=${XDG_STATE_HOME:-$HOME/.local/state}
	PLACE=$state/tmpnest-model.$$
	mkdir -p "$PLACE" || exit 1
	export TMPNEST_RUNTIME_DIR=$PLACE/r TMPNEST_STORE_DIR=$PLACE/s
	trap 'tmpnest evict --force "$NEST" >/dev/null 2>&1; tmpnest daemon stop >/dev/null; cd /; rm -rf "$PLACE"' EXIT
	trap 'exit 130' INT TERM
fi
NEST=model-$STORE-$$
SIZE=$((1 << 20))
# Of all that is charged but pages there is always more than nothing and less than one page,
# so a quota of one page more than the tmpfs has leaves the same pages free at any time.
QUOTA=$(((SIZE >> 10) + 4))K
CAPS=
[ "$(id -u)" -ne 0 ] || CAPS=--keep-caps # then the processes are different users
SCRATCH=$(mktemp -d "${TT_WORK:-$TMPNEST_RUNTIME_DIR/..}/model.XXXXXX") || exit 1
mkfifo "$SCRATCH/go" "$SCRATCH/said" || exit 1

fail() { # SEED WHAT
	echo "seed $1: $2"
	sed 's/^/   /' "$SCRATCH/errors" "$SCRATCH/differences" 2>/dev/null | tail -40
	echo "   replay: $SELF --store $STORE --first $1 1 $OPERATIONS"
	tmpnest evict --force "$NEST" >/dev/null
	rm -rf "$SCRATCH"
	exit 1
}

verify() { # SEED WHEN
	tmpnest show "$NEST" --verify --json >"$SCRATCH/differences" || fail "$1" "the account is wrong $2"
	: >"$SCRATCH/differences"
}

one_seed() { # SEED
	local line sandbox
	cp "$BUILD/tests/model/model" "$SCRATCH/model"
	# shellcheck disable=SC2086  # one word or none
	(cd "$SCRATCH" && exec tmpnest run --nest "$NEST" --store "$STORE" --quota "$QUOTA" --inodes 100000 $CAPS \
		--bwrap-arg --perms --bwrap-arg 1777 --bwrap-arg --size --bwrap-arg "$SIZE" \
		--bwrap-arg --tmpfs --bwrap-arg /mnt -- timeout -k 1 120 \
		./model ${MODEL_VERBOSE:+--verbose} "$1" "$OPERATIONS" /tmp /mnt <go >said 2>errors) &
	sandbox=$!
	exec 3>"$SCRATCH/go" 4<"$SCRATCH/said"
	while IFS= read -r line <&4 && [ "$line" != held ]; do
		printf '%s\n' "$line"
	done
	[ "$line" = held ] && verify "$1" 'while files are open'
	echo go >&3 || true
	exec 3>&-
	cat <&4
	exec 4<&-
	wait "$sandbox" || fail "$1" 'differs from a tmpfs'
	verify "$1" 'after the end of the sandbox'
	tmpnest evict --force "$NEST" >/dev/null || fail "$1" 'cannot be evicted'
}

trap '' PIPE
seed=$FIRST
while [ "$seed" -lt $((FIRST + SEEDS)) ]; do
	[ -z "$SECONDS_MOST" ] || [ "$SECONDS" -lt "$SECONDS_MOST" ] || break
	one_seed "$seed"
	seed=$((seed + 1))
done
rm -rf "$SCRATCH"
echo "$((seed - FIRST)) seeds from $FIRST on, $OPERATIONS operations each, store $STORE: no difference"
