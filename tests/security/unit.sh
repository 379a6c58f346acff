#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The units: as closed as they can be, and not so closed that the daemon cannot work.
. "$(dirname "$0")/../lib.sh"

roles root

unit_file() { # NAME: with paths that exist
	sed "s|@LIBEXEC@/tmpnestd|/bin/true|; s|@BIN@/tmpnest|/bin/true|" "$TT_TESTS/../data/systemd/$1.service.in" >"$1.service"
}

# Each point that systemd-analyze takes off has its reason in the unit; the serve unit has few.
check_exposure() { # UNIT
	need systemd-analyze systemd
	unit_file "$1"
	runs 0 systemd-analyze security --offline=true --no-pager "$1.service"
	local name
	while read -r name; do
		grep -qF "#   $name" "$1.service" || grep '^#  ' "$1.service" | grep -qF ", $name" ||
			fail "$1: no reason for $name"
	done < <(grep '^✗' "$TT_WORK/.out" | sed 's/^✗ \([^ ]*\).*/\1/')
	overall=$(sed -n 's/^→ Overall exposure level for .*: \([0-9.]*\) .*/\1/p' "$TT_WORK/.out")
	echo "$1: overall exposure $overall"
	[ -n "$overall" ] || fail "$1: no figure"
}

case_every_point_against_the_daemons_unit_has_its_reason() {
	check_exposure tmpnest
	awk -v e="$overall" 'BEGIN { exit !(e <= 3.1) }' || fail "exposure $overall"
}

case_the_page_is_exposed_little() {
	check_exposure tmpnest-serve
	awk -v e="$overall" 'BEGIN { exit !(e < 2.5) }' || fail "exposure $overall"
}

# Without systemd: the unit's capabilities, no new privileges, no network, and a file system that
# is read-only but for the daemon's directories. Its SystemCallFilter= is not part of this.
case_the_daemon_works_as_confined_by_its_unit() {
	own_daemon
	mkdir -p "$TT_OWN/r" "$TT_OWN/s"
	chmod 700 "$TT_OWN/s"
	unit_file tmpnest
	local caps
	caps=$(sed -n 's/^CapabilityBoundingSet=//p' tmpnest.service | tr -s ' \n' '\n' | sed 's/^CAP_/+/' | tr 'A-Z\n' 'a-z,')
	# shellcheck disable=SC2016
	background daemon unshare --mount --net --propagation slave bash -ec '
		mount --bind "$1" "$1" && mount --bind "$2" "$2"
		mount -o remount,bind,ro /
		umask 077
		exec setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,$3" \
			"$4" --system --foreground --runtime-dir "$1" --store-dir "$2"' - \
		"$TMPNEST_RUNTIME_DIR" "$TMPNEST_STORE_DIR" "${caps%,}" "$TT_BUILD/fs/tmpnestd"
	eventually 10 tmpnest daemon status
	runs 0 tmpnest run --nest a -- sh -c 'echo x >/tmp/f; chmod 4755 /tmp/f; stat -c %a /tmp/f; cat /tmp/f'
	equal 'what root sees' "$(xargs <<<"$out")" '4755 x'
	runs 0 tmpnest run --store memory -- sh -c 'echo m >/tmp/f; cat /tmp/f'
	chmod 755 "$TT_WORK" "$TT_BASE" "$TT_OWN"
	runs 0 as_user tmpnest run -- sh -c 'echo y >/tmp/f; stat -c %u /tmp/f'
	equal 'whose file it is' "$out" "$(id -u "$TT_USER")"
	runs 0 tmpnest du a
	stop_daemon
}

main "$@"
