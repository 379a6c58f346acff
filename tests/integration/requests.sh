#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# How many FUSE requests each operation costs, by the daemon's own counters: a count, so a
# regression shows on any machine. The figures are those of docs/semantics.md.
. "$(dirname "$0")/../lib.sh"
roles root

ROUNDS=200

# The requests of each operation, FORGET apart, which waits for no answer. A run of no
# rounds (starting the sandbox, preparing the scene) is taken off.
costs() { # OPERATION REQUESTS [OPTION-OF-RUN...]
	local rounds operation=$1 requests=$2
	shift 2
	cp "$TT_BUILD/bench/ops" ops
	for rounds in 0 $ROUNDS; do
		tmpnest run --nest counted --no-var-tmp "$@" -- ./ops "$operation" $rounds /tmp
		tmpnest show counted --json >$rounds.json
		tmpnest evict --force counted
	done
	"$TT_PYTHON" - 0.json $ROUNDS.json $ROUNDS "$requests" <<-'END' || fail "$operation needs more than $requests requests"
		import json, sys
		base, full = (json.load(open(name))["operations"] for name in sys.argv[1:3])
		rounds, allowed = int(sys.argv[3]), float(sys.argv[4])
		cost = {k: (v - base.get(k, 0)) / rounds for k, v in full.items() if "FORGET" not in k}
		total = sum(cost.values())
		print(round(total, 2), {k: round(v, 2) for k, v in cost.items() if v >= 0.05})
		# a request of the preparation may fall to either side
		sys.exit(not (0 <= total <= allowed + 0.1))
	END
}

case_create_close_unlink() { costs create 5; }
case_create_write_4k_close() { costs write4k 5; }
case_open_read_close_hot() { costs hot 0; }
case_mkdir_rmdir() { costs mkdir 5; }
case_rename() { costs rename 3; }
case_append_100_bytes() { costs append 1; }
case_random_4k_write() { costs random 1; }
case_socket_bind_connect_unlink() { costs socket 5; }
case_compiler_temp_file() { costs compiler 13; }

# The kernel asks for security.capability before the first write to a file whose attributes
# are new to it, unless it has been told that there are none.
case_create_write_4k_close_without_xattrs() { costs write4k 4 --no-xattrs; }
case_compiler_temp_file_without_xattrs() { costs compiler 11 --no-xattrs; }
case_append_100_bytes_without_xattrs() { costs append 1 --no-xattrs; }

# The comparison fails where an operation costs more.
case_a_regression_is_found() {
	if (costs write4k 4) >said; then fail 'five requests passed for four'; fi
	contains 'what is said' "$(cat said)" "'GETXATTR': 1.0"
}

main "$@"
