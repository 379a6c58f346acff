# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A daemon for a measurement, with directories of its own that go with it.
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
BUILD=${TMPNEST_BUILD:-$ROOT/build}
PATH=$BUILD/launcher:$PATH
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=python3

bench_begin() {
	[ -x "$BUILD/launcher/tmpnest" ] || {
		echo "no programs in $BUILD: build first (launcher/quickstart.sh), or name the folder in TMPNEST_BUILD" >&2
		exit 1
	}
	local state=/var/lib
	[ "$(id -u)" -eq 0 ] || state=${XDG_STATE_HOME:-$HOME/.local/state}
	PLACE=$state/tmpnest-bench.$$
	export TMPNEST_RUNTIME_DIR=$PLACE/r TMPNEST_STORE_DIR=${BENCH_STORE:-$PLACE/s}
	mkdir -p "$PLACE/work" && cd "$PLACE/work" || exit 1
	trap bench_end EXIT
	trap 'exit 130' INT TERM
	tmpnest daemon start >/dev/null || exit 1
}

bench_end() {
	local name
	for name in $(tmpnest ls --json | "$PYTHON" -c 'import json,sys; print(*[n["name"] for n in json.load(sys.stdin) if n["state"] != "evicting"])'); do
		tmpnest evict --force "$name" >/dev/null
	done
	tmpnest daemon stop >/dev/null
	cd / || return
	! mountpoint -q "$PLACE/tmpfs" || umount -l "$PLACE/tmpfs"
	rm -rf --one-file-system "$PLACE"
}
