#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:bash:bash
# long
. "${0%/*}/lib"

# The locks that shells can make: mkdir, set -C, ln
echo 0 >counter
add() { # TAKE RELEASE
	local i
	for i in $(seq 5); do
		until eval "$1" 2>/dev/null; do :; done
		n=$(<counter)
		echo $((n + 1)) >counter
		eval "$2"
	done
}
run() {
	local pids=()
	for k in 1 2 3; do add "$1" "$2" & pids+=($!); done
	for pid in "${pids[@]}"; do wait "$pid"; done
}
run 'mkdir lock' 'rmdir lock'
run '(set -C; : >lock)' 'rm lock'
: >target
run 'ln target lock' 'rm lock'
run 'ln -s $BASHPID lock' 'rm lock'
equal 'the counter' "$(cat counter)" 60
equal 'links of the target' "$(stat -c %h target)" 1
