#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The model test: the same random operations on a nest's view and on a native tmpfs.
#
#   tests/model/run.sh [--store dir|memory|image] [--first SEED] [--seconds N] [--jobs N] SEEDS OPERATIONS
#
# For each seed a new nest; at the end of the operations, with the files still open, and
# once more when the sandbox has ended, the account is compared with a recount of the store.
# --seconds: begin no further seed after that time. --jobs: so many seeds at a time, in nests of
# one daemon (an operation waits more than it works). A failure prints the command that
# replays it; with MODEL_VERBOSE=1 it finds the operation after which the trees differed.
set -u
cd "$(dirname "$0")" || exit 1
BUILD=${TMPNEST_BUILD:-$(cd ../.. && pwd -P)/build}
PATH=$BUILD/launcher:$PATH
SELF=$PWD/run.sh
STORE=dir FIRST=1 SECONDS_MOST='' JOBS=1

while [ $# -gt 2 ]; do
	case $1 in
	--store) STORE=$2 ;;
	--first) FIRST=$2 ;;
	--seconds) SECONDS_MOST=$2 ;;
	--jobs) JOBS=$2 ;;
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
	trap 'tmpnest daemon stop --force >/dev/null; cd /; rm -rf "$PLACE"' EXIT
	trap 'exit 130' INT TERM
fi
SIZE=$((1 << 20))
# Of all that is charged but pages there is always more than nothing and less than one page,
# so a quota of one page more than the tmpfs has leaves the same pages free at any time.
QUOTA=$(((SIZE >> 10) + 4))K
if [ "$STORE" = memory ] && [ "$(id -u)" -eq 0 ] && [ -n "${TMPNEST_PASSTHROUGH:-}" ]; then
	QUOTA=$((SIZE >> 10))K # the nest's limit is that of a tmpfs as well: they count the same
elif [ "$STORE" = image ]; then
	SIZE=$((64 << 20)) QUOTA=64M # ext4 counts other blocks: neither gets full
	export MODEL_ANY_SPACE=yes
fi
CAPS=
[ "$(id -u)" -ne 0 ] || CAPS=--keep-caps # then the processes are different users
SCRATCH=$(mktemp -d "${TT_WORK:-${TMPNEST_RUNTIME_DIR%/*}}/model.XXXXXX") || exit 1
: >"$SCRATCH/done"

fail() { # SEED WHAT: in a job; the others begin no further seed
	echo "seed $1: $2"
	sed 's/^/   /' errors differences 2>/dev/null | tail -40
	echo "   replay: $SELF --store $STORE --first $1 1 $OPERATIONS"
	tmpnest evict --force "$NEST" >/dev/null
	: >"$SCRATCH/failed"
	exit 1
}

verify() { # SEED WHEN
	tmpnest show "$NEST" --verify --json >differences || fail "$1" "the account is wrong $2"
	: >differences
}

one_seed() { # SEED
	local line sandbox
	# shellcheck disable=SC2086  # one word or none
	tmpnest run --nest "$NEST" --store "$STORE" --quota "$QUOTA" --inodes 100000 $CAPS \
		--bwrap-arg --perms --bwrap-arg 1777 --bwrap-arg --size --bwrap-arg "$SIZE" \
		--bwrap-arg --tmpfs --bwrap-arg /mnt -- timeout -k 1 120 \
		./model ${MODEL_VERBOSE:+--verbose} "$1" "$OPERATIONS" /tmp /mnt <go >said 2>errors &
	sandbox=$!
	exec 3>go 4<said
	while IFS= read -r line <&4 && [ "$line" != held ]; do
		printf '%s\n' "$line"
	done
	[ "$line" = held ] && verify "$1" 'while files are open'
	{ echo go >&3; } 2>/dev/null || true
	exec 3>&-
	cat <&4
	exec 4<&-
	wait "$sandbox" || fail "$1" 'differs from a tmpfs'
	verify "$1" 'after the end of the sandbox'
	tmpnest evict --force "$NEST" >/dev/null || fail "$1" 'cannot be evicted'
	echo "$1" >>../done
}

# Every JOBS-th seed, in a directory and a nest of its own.
job() { # NUMBER
	local seed=$((FIRST + $1))
	NEST=model-$STORE-$$-$1
	mkdir "$SCRATCH/$1" && cd "$SCRATCH/$1" && mkfifo go said && cp "$BUILD/tests/model/model" . || exit 1
	while [ "$seed" -lt $((FIRST + SEEDS)) ] && [ ! -e ../failed ]; do
		[ -z "$SECONDS_MOST" ] || [ "$SECONDS" -lt "$SECONDS_MOST" ] || break
		one_seed "$seed"
		[ $(((seed - FIRST + 1) % 50)) -ne 0 ] || echo "$(wc -l <../done) of $SEEDS seeds, $SECONDS s"
		seed=$((seed + JOBS))
	done
}

trap '' PIPE
pids=() failed=
for ((i = 0; i < JOBS; i++)); do
	(job "$i") &
	pids+=($!)
done
for pid in "${pids[@]}"; do
	wait "$pid" || failed=yes
done
count=$(wc -l <"$SCRATCH/done")
rm -rf "$SCRATCH"
[ -z "$failed" ] || exit 1
echo "$count seeds from $FIRST on, $OPERATIONS operations each, store $STORE: no difference"
