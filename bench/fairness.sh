#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What one sandbox's full load does to another's waits: p99 of stat, create and 4K write in a
# nest that is alone, and beside a nest that is flooded with names and data at once.
#   bench/fairness.sh [SECONDS] [LOADERS]
# Prints OPERATION ALONE LOADED RATIO (microseconds) for nests on the disk and in memory, and for
# the machine itself: the same processes, each sandbox on a tmpfs of its own instead of a nest. A
# request waits for a processor twice, so the machine must be quiet otherwise. Exit status 1
# when a ratio of ours is 3 or more.
. "$(dirname "$0")/lib.sh"
SECONDS_EACH=${1:-9} LOADERS=${2:-2}
OPS='stat create write'

inside() { # COMMAND...: in the sandbox $NEST of $KIND
	case $KIND in
	tmpfs) exec bwrap --ro-bind / / --dev /dev --proc /proc --unshare-pid --tmpfs /tmp --die-with-parent "$@" ;;
	*) exec tmpnest run --nest "$NEST-$KIND" --store "$KIND" -- "$@" ;;
	esac
}

measure() { # p99 of each operation, one line each
	# shellcheck disable=SC2086
	(NEST=quiet && inside "$BUILD/bench/waits" /tmp "$SECONDS_EACH" $OPS)
}

compare() { # KIND
	KIND=$1
	local alone loaded load=() i
	alone=$(measure) || return
	for ((i = 0; i < LOADERS; i++)); do
		(NEST=busy && inside "$BUILD/bench/waits" --load /tmp "$i" $((SECONDS_EACH + 2))) &
		load+=($!)
	done
	sleep 1
	loaded=$(measure) || return
	wait "${load[@]}" || return
	paste -d' ' <(printf '%s\n' "$alone") <(printf '%s\n' "$loaded") |
		awk -v kind="$KIND" '{
			printf "%-6s %-7s alone %8.1f us   loaded %8.1f us   ratio %5.2f\n", kind, $1, $2, $4, $4 / $2
			worst = $4 / $2 > worst ? $4 / $2 : worst
		} END { exit kind != "tmpfs" && worst >= 3 }'
}

bench_begin
status=0
for kind in tmpfs memory dir; do
	compare "$kind" || status=1
done
exit "$status"
