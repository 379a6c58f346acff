#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What one user can do to the system's daemon through its sockets: next to nothing.
. "$(dirname "$0")/../lib.sh"
roles root
limit a_hundred_connections_with_the_largest_messages 500 # on a busy machine

anonymous_kib() { awk '/^RssAnon/ { print $2 }' "/proc/$1/status"; }

case_a_hundred_connections_with_the_largest_messages() {
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE"
	tmpnest daemon start
	local worker before most=0 now i
	worker=$(worker_pid)
	# warm: another user's few connections
	tmpnest create mine
	for i in 1 2 3; do tmpnest ls >/dev/null; done
	before=$(anonymous_kib "$worker")
	as_user_words
	mkfifo until
	background crowd "${AS_USER[@]}" sh -c 'exec "$1" "$2" 100 <"$3"' sh "$TT_TESTS/tools/crowd" "$TMPNEST_RUNTIME_DIR" "$TT_WORK/until"
	exec 7<>until
	eventually 200 grep -q ready "$TT_WORK/crowd.log"
	equal 'connections that were kept' "$(cat crowd.log)" 'ready 16'
	for i in 1 2 3 4 5; do
		runs 0 timeout 60 tmpnest ls
		runs 0 timeout 60 tmpnest run --nest mine -- true
		now=$(anonymous_kib "$worker")
		[ "$now" -le "$most" ] || most=$now
	done
	equal 'the same worker' "$(worker_pid)" "$worker"
	echo "KiB of the worker: $before before, $most at most"
	at_most 'growth in KiB' $((most - before)) 16384
	exec 7>&-
	# and when they have gone the user is served again
	eventually 60 as_user tmpnest ls
	stop_daemon
}

main "$@"
