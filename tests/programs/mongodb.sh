#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The program that this project began with: mongod binds /tmp/mongodb-PORT.sock, always.
. "$(dirname "$0")/../lib.sh"

prepare() {
	need node nodejs
	[ -d "$TT_NODE_MODULES/mongodb-memory-server" ] || {
		[ -z "${TT_STRICT:-}" ] || fail 'mongodb-memory-server is not installed'
		skip 'mongodb-memory-server could not be installed from npm'
	}
	node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' ||
		skip "mongodb-memory-server needs Node.js 20.19, here is $(node --version)"
	export MONGOMS_SYSTEM_BINARY=${MONGOMS_SYSTEM_BINARY:-$TT_TESTS/programs/mongod-standin}
	MONGOMS_VERSION=$("$MONGOMS_SYSTEM_BINARY" --version | sed -n 's/^db version v//p')
	export MONGOMS_VERSION
}

case_memory_server_with_its_defaults() {
	prepare
	runs 0 tmpnest run -- node "$TT_TESTS/programs/memory-server.mjs"
	equal 'the driver, the socket, the end' "$(xargs <<<"$out")" \
		'found nest with 3 legs among 3 mode 140700 ping 1 socket gone'
}

case_two_memory_servers_on_one_port_in_two_nests() {
	prepare
	local i
	for i in 1 2; do
		background "server$i" tmpnest run --net none -- "$MONGOMS_SYSTEM_BINARY" --port 27017 --dbpath /tmp
	done
	for i in 1 2; do
		wait_for_line "server$i" 'Waiting for connections'
	done
}

# The same with a /tmp that cannot be written: what sandboxes had before.
case_memory_server_fails_in_a_read_only_tmp() {
	prepare
	export TMPDIR=$TT_WORK
	capture bwrap --ro-bind / / --bind "$TT_WORK" "$TT_WORK" --dev /dev --proc /proc --unshare-pid --die-with-parent \
		-- node "$TT_TESTS/programs/memory-server.mjs"
	differ status "$status" 0
	contains 'the reason' "$out$err" 'Mongod internal error (fassert() failure)'
	runs 0 tmpnest run -- node "$TT_TESTS/programs/memory-server.mjs"
}

main "$@"
