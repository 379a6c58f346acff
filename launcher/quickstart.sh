#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs what is missing, builds, and shows the main job live; every claim is checked,
# and the exit status is not 0 when one does not hold.
#
#   launcher/quickstart.sh                   the show
#   launcher/quickstart.sh -- CMD [ARG...]   runs CMD in a sandbox with a /tmp of its own
#
# It uses a daemon and directories of its own and takes them away at the end.
# TMPNEST_BUILD names another build folder than build/.
set -u
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
BUILD=${TMPNEST_BUILD:-$ROOT/build}
. "$ROOT/launcher/packages.sh"

case ${1:-} in
'') ;;
--) [ $# -ge 2 ] || { echo 'usage: quickstart.sh [-- CMD [ARG...]]' >&2 && exit 2; } ;;
*) echo 'usage: quickstart.sh [-- CMD [ARG...]]' >&2 && exit 2 ;;
esac

bold='' plain='' green='' red=''
[ ! -t 1 ] || bold=$'\e[1m' plain=$'\e[0m' green=$'\e[32m' red=$'\e[31m'

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
holds() { printf '  %sok%s    %s\n' "$green" "$plain" "$*"; }
broken() { # WHAT [DETAIL]
	printf '  %sWRONG%s %s\n' "$red" "$plain" "$1"
	[ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/        /'
	exit 1
}

# try COMMAND...: shows the command and its output; leaves them in $output and $status.
try() {
	local word
	printf '  $'
	for word in "${@/#"$TMPNEST"/tmpnest}"; do
		case $word in *[[:space:]]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
	done
	echo
	status=0
	output=$("$@" 2>&1 </dev/null) || status=$?
	[ -z "$output" ] || printf '%s\n' "$output" | sed 's/^/    /'
}

make_places() {
	local state=${XDG_STATE_HOME:-$HOME/.local/state}
	if [ "$(id -u)" -eq 0 ]; then
		export TMPNEST_RUNTIME_DIR=/run/tmpnest-quickstart.$$
		PLACE=/var/lib/tmpnest-quickstart.$$
	else
		export TMPNEST_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$state}/tmpnest-quickstart.$$
		PLACE=$state/tmpnest-quickstart-store.$$
	fi
	export TMPNEST_STORE_DIR=$PLACE/store
	WORK=$PLACE/work
	mkdir -p "$WORK" || exit 1
	trap take_away EXIT
	trap 'exit 130' INT TERM
}

# Ends what this script started, whatever happened.
take_away() {
	local names
	[ -z "${SERVER:-}" ] || kill "$SERVER" 2>/dev/null
	if "$TMPNEST" daemon status >/dev/null 2>&1; then
		names=$("$TMPNEST" ls --json 2>/dev/null | sed -n 's/.*"name" *: *"\([^"]*\)".*/\1/p')
		# shellcheck disable=SC2086  # names have no blanks
		[ -z "$names" ] || "$TMPNEST" evict --force $names >/dev/null 2>&1
		"$TMPNEST" daemon stop >/dev/null 2>&1
	fi
	cd /
	chmod -R u+rwX "$PLACE" 2>/dev/null
	rm -rf --one-file-system "$PLACE" "$TMPNEST_RUNTIME_DIR"
}

TMPNEST=$BUILD/launcher/tmpnest
log=${TMPDIR:-/tmp}/tmpnest-build.$$.log
tn_install_missing "${TN_BUILD_NEEDS[@]}" >&2 || exit 1
[ -f "$BUILD/build.ninja" ] || echo "building in $BUILD" >&2
tn_build "$ROOT" "$BUILD" "$log" tmpnest tmpnest-ctl tmpnest-shim tmpnestd unix-socket || exit 1
rm -f "$log"
make_places

if [ "${1:-}" = -- ]; then
	shift
	"$TMPNEST" run -- "$@"
	exit
fi

cp "$BUILD/tests/tools/unix-socket" "$WORK/" && cd "$WORK" || exit 1
if ! report=$("$TMPNEST" doctor 2>&1); then
	printf '%s\n' "$report" >&2
	exit 1
fi
mounts=$(cat /proc/self/mounts)
word="written in the nest $$"

say "1. A sandbox writes /tmp/x and binds /tmp/mongodb-27017.sock, as mongod does."
echo '  $ tmpnest run --nest demo --quota 64M -- sh -c "echo WORD >/tmp/x; unix-socket listen /tmp/mongodb-27017.sock" &'
"$TMPNEST" run --nest demo --quota 64M -- \
	sh -c 'echo "$1" >/tmp/x && exec ./unix-socket listen /tmp/mongodb-27017.sock' - "$word" >server.log 2>&1 </dev/null &
SERVER=$!
for _ in {1..100}; do
	grep -q listening server.log && break
	kill -0 $SERVER 2>/dev/null || break
	sleep 0.05
done
grep -q listening server.log || broken 'the server does not listen' "$(cat server.log)"
holds 'it listens'

say '2. A second command in the same nest reads the file and connects.'
try "$TMPNEST" run --nest demo -- sh -c 'cat /tmp/x; ./unix-socket connect /tmp/mongodb-27017.sock hello'
[ "$output" = "$word"$'\n'"got: hello" ] || broken 'not what the first one wrote and answers'
holds 'one /tmp for all commands of the nest'

say '3. Another sandbox sees neither.'
try "$TMPNEST" run -- sh -c 'ls -A /tmp; ./unix-socket connect /tmp/mongodb-27017.sock hello'
[ "$status" -ne 0 ] || broken 'another nest could connect'
case $output in *"$word"* | *got:* | x*) broken 'another nest sees it' ;; esac
holds 'its /tmp is empty, and there is no socket'

say '4. Nor does the host, and its mount table has not changed.'
[ "$(cat /tmp/x 2>/dev/null)" != "$word" ] || broken 'the host sees /tmp/x'
try ./unix-socket connect /tmp/mongodb-27017.sock "$word"
[ "$output" != "got: $word" ] || broken 'the host could connect'
[ "$(cat /proc/self/mounts)" = "$mounts" ] || broken 'the mount table changed' "$(diff <(echo "$mounts") /proc/self/mounts)"
holds 'the host is as before'

say '5. df inside shows the size of the nest, not of the disk.'
try "$TMPNEST" run --nest demo -- df -h /tmp
[ "$("$TMPNEST" run --nest demo -- df -B1 --output=size /tmp | tail -n 1 | tr -d ' ')" = 67108864 ] ||
	broken 'df does not say 64 MiB'
holds '64 MiB'

say '6. The quota stops a writer, at the byte.'
try "$TMPNEST" run --quota 64M -- sh -c 'dd if=/dev/zero of=/tmp/big bs=1M; stat -c "%s bytes" /tmp/big'
case $output in *'No space left on device'*67108864\ bytes) ;; *) broken 'it did not stop at 67108864 bytes' ;; esac
holds 'no space left after 67,108,864 bytes; nobody else is harmed'

say '7. /tmp/claude is denied, as it is to every nest; its neighbours are not.'
try "$TMPNEST" run -- sh -c 'mkdir /tmp/claudette && mkdir /tmp/claude'
case $output in *'/tmp/claude'*'ermission denied'*) ;; *) broken '/tmp/claude could be made' ;; esac
holds 'denied by the file system itself, by every route'

say '8. What there is, and evicting it.'
try "$TMPNEST" ls
case $output in *demo*) ;; *) broken 'the nest is not listed' ;; esac
kill "$SERVER"
wait "$SERVER" 2>/dev/null
SERVER=
try "$TMPNEST" evict --force demo
[ "$status" -eq 0 ] || broken 'it could not be evicted'
for _ in {1..100}; do
	[ "$("$TMPNEST" ls --json | tr -d ' \n')" != '[]' ] || break
	sleep 0.05
done
[ "$("$TMPNEST" ls --json | tr -d ' \n')" = '[]' ] || broken 'a nest is left' "$("$TMPNEST" ls)"
[ "$(cat /proc/self/mounts)" = "$mounts" ] || broken 'a mount is left'
holds 'nothing is left'

say "All of it holds. Now yours:  launcher/quickstart.sh -- CMD"
