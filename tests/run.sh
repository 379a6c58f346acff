#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installs what is missing, builds, runs all tests, and ends with `N passed, N failed`.
#
#   tests/run.sh [--long] [FILTER...]   a FILTER is GROUP or GROUP:CASE, parts of names
#   tests/run.sh --list                 the groups
#
# Every group prints TAP, which is counted here in one place: cmocka programs, scripts of
# tests/integration, tests/security, tests/programs and tests/stubs (once as root and once as a plain
# user, where we are root), checks of the sources, builds with sanitizers (tests/sanitize.sh), and
# at the end that nothing was left on the machine.
#
# TT_SANITIZE=1 runs the quick part of the builds with sanitizers, --long all of it.
#
# TMPNEST_BUILD names another build folder. TT_STRICT=1 makes a failure of each skip that
# installing something would cure. TT_KEEP=1 keeps the directories of the tests. TT_JOBS
# groups run at a time (2).
set -u
export LC_ALL=C
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
BUILD=${TMPNEST_BUILD:-$ROOT/build}
CACHE=${TMPNEST_TEST_CACHE:-$ROOT/.cache/tests}
. "$ROOT/launcher/packages.sh"
. "$ROOT/tests/sanitize.sh"

TEST_NEEDS=(
	command:python3:python3 command:strace:strace command:git:git command:setpriv:util-linux
	command:timeout:coreutils command:nsenter:util-linux command:find:findutils command:pgrep:procps
	command:pkg-config:pkg-config command:man:man-db command:scdoc:scdoc command:systemd-analyze:systemd
)
PROGRAM_NEEDS=(
	command:node:nodejs command:npm:npm command:redis-server:redis-server
	command:redis-cli:redis-tools command:tmux:tmux command:ssh-agent:openssh-client
	command:sqlite3:sqlite3 command:psql:postgresql-client path:/usr/lib/postgresql/*/bin/initdb:postgresql
	command:gcc:gcc command:socat:socat command:rg:ripgrep command:curl:curl command:promtool:prometheus command:chromium:chromium
	command:zsh:zsh command:fish:fish path:/usr/sbin/apparmor_parser:apparmor
)

PASSED=0 FAILED=0 SKIPPED=0
FAILURES=() SKIPS=()
FILTERS=()
LIST=

usage() {
	sed -n '5,7s/^# *//p' "$0"
}

for word in "$@"; do
	case $word in
	--long) export TT_LONG=1 ;;
	--list) LIST=yes ;;
	-h | --help) usage && exit ;;
	-*) usage >&2 && exit 2 ;;
	*) FILTERS+=("$word") ;;
	esac
done

# ---- counting ------------------------------------------------------------------------

# count_tap GROUP OUTPUT: shows and counts the TAP lines of a group that has ended. What it
# did besides (a crash, fewer cases than planned, failing without a failed case) is a failure.
count_tap() {
	local group=$1 line text plan='' seen=0 failing='' failed_before=$FAILED status='' seconds=0
	echo "== $group"
	: >"$BASE/group.log"
	while IFS= read -r line; do
		case $line in
		"ok "*) ;;
		"not ok "*) ;;
		1..[0-9]*) plan=${line#1..} && continue ;;
		"exit status "*)
			line=${line#exit status }
			status=${line% *} seconds=${line#* }
			continue
			;;
		*) # before a case: kept in case it fails; after a failed one: its log
			if [ -n "$failing" ] || [ -n "${TT_VERBOSE:-}" ]; then
				printf '   %s\n' "$line"
			else
				printf '%s\n' "$line" >>"$BASE/group.log"
			fi
			continue
			;;
		esac
		seen=$((seen + 1)) failing=
		text=${line#*ok }
		text=${text#* }
		text=${text#- }
		case $line in
		*" # SKIP"*) count skip "$group: ${text/ # SKIP/:}" ;;
		"ok "*) count pass "$text" ;;
		*)
			failing=yes
			count fail "$group: $text"
			tail -n 40 "$BASE/group.log" | sed 's/^/   /'
			;;
		esac
		: >"$BASE/group.log"
	done <"$2"
	if [ -z "$plan" ] || [ "$seen" -ne "$plan" ]; then
		sed 's/^/   /' "$BASE/group.log" | tail -n 40
		count fail "$group: ended after $seen of ${plan:-unknown} cases (status ${status:-none})"
	elif [ "${status:-1}" -ne 0 ] && [ "$FAILED" -eq "$failed_before" ]; then
		sed 's/^/   /' "$BASE/group.log" | tail -n 40
		count fail "$group: exit status $status though no case failed"
	fi
	[ "$seconds" -lt 10 ] || echo "   ($seconds s)"
}

count() { # pass|fail|skip TEXT
	case $1 in
	pass) PASSED=$((PASSED + 1)) && echo "   ok    $2" ;;
	skip) SKIPPED=$((SKIPPED + 1)) && SKIPS+=("$2") && echo "   skip  $2" ;;
	fail) FAILED=$((FAILED + 1)) && FAILURES+=("$2") && echo "   FAIL  $2" ;;
	esac
}

# one_case NUMBER NAME COMMAND...: a command that is one case; its output is its log.
one_case() {
	local number=$1 name=$2 log
	shift 2
	if log=$("$@" 2>&1); then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		printf '%s\n' "$log"
	fi
}

# ---- groups --------------------------------------------------------------------------

# The lines "GROUP<TAB>KIND<TAB>ARGUMENT", in the order in which they run.
groups() {
	printf 'check/includes\tcheck\t%s\n' "$ROOT/tests/check-includes"
	printf 'check/claims\tcheck\t%s\n' "$ROOT/tests/check-claims"
	printf 'check/opens\tcheck\t%s\n' "$ROOT/tests/check-opens"
	[ ! -f "$BUILD/build.ninja" ] || meson introspect --tests "$BUILD" | /usr/bin/env python3 -c '
import json, os, sys
for test in json.load(sys.stdin):
    suites = [s.split(":")[-1] for s in test["suite"]]
    if "long" in suites and not os.environ.get("TT_LONG"):
        continue
    folder = os.path.basename(os.path.dirname(test["cmd"][0]))
    name = test["name"].removeprefix("test-")
    words = ["env"] + [f"{k}={v}" for k, v in test["env"].items()]
    words += ["timeout", "-k", "5", str(test["timeout"])] + test["cmd"]
    print(f"{folder}/{name}\tmeson\t" + "\x1f".join(words))'
	local kind script role roles
	for kind in integration security programs stubs; do
		for script in "$ROOT/tests/$kind"/*.sh; do
			# the suite of programs takes its time; by name it also runs its quick part alone
			[ "${script##*/}" != suite.sh ] || [ -n "${TT_LONG:-}" ] || [ "${#FILTERS[@]}" -gt 0 ] || continue
			roles=$(bash "$script" --roles)
			[ -n "$roles" ] || printf '%s/%s@no-role\tcheck\tfalse\n' "$kind" "$(basename "$script" .sh)"
			for role in $roles; do
				[ "$role" = user ] || [ "$(id -u)" -eq 0 ] || continue
				printf '%s/%s@%s\tscript\t%s\n' "$kind" "$(basename "$script" .sh)" "$role" "$script"
			done
		done
	done
	[ -z "${TT_LONG:-}${TT_SANITIZE:-}" ] || printf 'sanitize/address\tsanitize\taddress\nsanitize/thread\tsanitize\tthread\n'
	printf 'leaks\tleaks\t\n'
}

# Filters that choose this group: prints their case parts, one a line ('' for all).
chosen() { # GROUP
	local filter
	[ "${#FILTERS[@]}" -gt 0 ] || { echo && return; }
	for filter in "${FILTERS[@]}"; do
		case $1 in *"${filter%%:*}"*)
			case $filter in *:*) echo "${filter#*:}" ;; *) echo ;; esac
			;;
		esac
	done
}

run_group() { # GROUP KIND ARGUMENT CASE-FILTER...
	local group=$1 kind=$2 argument=$3
	shift 3
	case $kind in
	check)
		one_case 1 "${argument##*/}" timeout -k 5 60 "$argument" "$ROOT"
		echo 1..1
		;;
	meson)
		local -a words
		IFS=$'\x1f' read -r -a words <<<"$argument"
		run_program "${words[@]}"
		;;
	sanitize) sanitize "$argument" ;;
	script) run_script "${group##*@}" "$group" "$argument" "$@" ;;
	leaks) leaks ;;
	esac
}

# The groups run beside each other, TT_JOBS at a time; their output is shown in order.
RUNNING=() # "GROUP PID", oldest first

start_group() { # as run_group
	local output=$BASE/output-${1//\//-} begin=$SECONDS
	{
		run_group "$@"
		echo "exit status $? $((SECONDS - begin))"
	} >"$output" 2>&1 </dev/null 3<&- &
	RUNNING+=("$1 $!")
}

# Waits until fewer than N groups run; shows those that have ended, the oldest first.
wait_for_fewer() { # N
	local running group pid
	while running=$(jobs -rp) && [ "$(wc -w <<<"$running")" -ge "$1" ]; do
		wait -n
	done
	while [ "${#RUNNING[@]}" -gt 0 ]; do
		group=${RUNNING[0]% *} pid=${RUNNING[0]##* }
		! grep -qx "$pid" <<<"$running" || break
		RUNNING=("${RUNNING[@]:1}")
		count_tap "$group" "$BASE/output-${group//\//-}"
	done
}

# Background commands of a script ignore the interrupt from the keyboard.
interrupted() {
	trap - INT TERM
	local pid
	our_processes | while read -r pid _; do kill -9 "$pid" 2>/dev/null; done
	exit 130
}

# Runs a test program of the build: cmocka speaks TAP; of others the exit status counts.
run_program() {
	local program_log=$BASE/program-${1##*/}.$BASHPID program_status=0
	(cd "$BUILD" && CMOCKA_MESSAGE_OUTPUT=TAP "$@") >"$program_log" 2>&1 </dev/null || program_status=$?
	if grep -qE '^1\.\.[0-9]+' "$program_log"; then
		cat "$program_log"
		return "$program_status"
	fi
	one_case 1 'the whole program' eval 'cat "$program_log"; [ "$program_status" -eq 0 ]'
	echo 1..1
}

# Runs a test script in its role. Root gives the plain user a node of /dev/fuse of its own,
# in a mount namespace of its own; the machine's node keeps its mode.
run_script() { # ROLE GROUP SCRIPT CASE-FILTER...
	local role=$1 group=$2 script=$3 dir=$BASE/${2//\//-}
	shift 3
	dir=${dir//@/-}
	local -a env=(
		"PATH=$STAGE/build/launcher:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
		"TT_ROLE=$role" "TT_BASE=$dir" "TT_BUILD=$STAGE/build" "TT_TESTS=$STAGE/tests"
		"TT_RUN=$TT_RUN" "TT_USER=$TEST_USER" "TT_GROUP=$TEST_GROUP" "TT_STRICT=${TT_STRICT:-}" "TT_LONG=${TT_LONG:-}"
		"TT_NODE_MODULES=$STAGE/node_modules" "LC_ALL=C.UTF-8" "TERM=${TERM:-dumb}"
		"MONGOMS_SYSTEM_BINARY=${MONGOMS_SYSTEM_BINARY:-}" "ASAN_OPTIONS=${ASAN_OPTIONS:-}"
		"UBSAN_OPTIONS=${UBSAN_OPTIONS:-}" "TSAN_OPTIONS=${TSAN_OPTIONS:-}"
	)
	script=$STAGE/tests/${script#"$ROOT/tests/"}
	install -d -m 755 "$dir" || return 1
	if [ "$role" = root ] || [ "$(id -u)" -ne 0 ]; then
		(cd "$dir" && exec env -i "HOME=$HOME" "USER=$(id -un)" "${env[@]}" bash "$script" "$@")
		return
	fi
	chown "$TEST_USER:" "$dir"
	# shellcheck disable=SC2016  # expanded by the inner shell
	(cd "$dir" && exec env -i "HOME=$USER_HOME" "USER=$TEST_USER" "LOGNAME=$TEST_USER" "${env[@]}" \
		unshare --mount --propagation slave bash -c '
			[ -c /dev/fuse ] && [ -d /mnt ] && mount -t tmpfs -o mode=755,size=64k tmpnest-test-dev /mnt &&
				mknod -m 666 /mnt/fuse c 10 229 && mount --bind /mnt/fuse /dev/fuse && umount -l /mnt || exit 99
			script=$1
			shift
			exec setpriv --reuid "$USER" --regid "$USER" --init-groups bash "$script" "$@"' - "$script" "$@")
}

# The whole run left nothing: no process, no mount, no file.
leaks() {
	one_case 1 'no process of the tests is left' no_processes
	one_case 2 'the mount table is as before' no_mounts
	one_case 3 'no file of a nest is left' no_files
	one_case 4 'no file of ours is left in /tmp and /var/tmp' no_tmp_files
	echo 1..4
}

# Everything that a test starts carries TT_RUN in its environment.
our_processes() {
	local file pid
	for file in $(grep -lzxF "TT_RUN=$TT_RUN" /proc/[0-9]*/environ 2>/dev/null); do
		pid=${file#/proc/}
		pid=${pid%/environ}
		printf '%s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
	find /proc -maxdepth 2 -name exe \( -lname "$STAGE/*" -o -lname "$BUILD/*" \) 2>/dev/null | while read -r file; do
		pid=${file#/proc/}
		pid=${pid%/exe}
		printf '%s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
}

no_processes() {
	local left try
	for try in {1..10}; do
		left=$(our_processes)
		[ -n "$left" ] || return 0
		sleep 0.3
	done
	printf '%s\n' "$left"
	return 1
}

no_mounts() { diff "$BASE/mounts.before" /proc/self/mounts; }

no_files() {
	local dir left
	left=$(find "$BASE" -mindepth 2 -path "$STAGE" -prune -o \( -path '*/nests/*' -o -path '*/trash/*' \
		-o -type s \) -print | head -20)
	[ -z "$left" ] || { printf '%s\n' "$left" && return 1; }
}

no_tmp_files() {
	local left
	left=$(find /tmp /var/tmp -mindepth 1 -maxdepth 1 -user "$(id -un)" -newer "$BASE/mounts.before" \
		\( -name 'tn*' -o -name '*tmpnest*' -o -name 'mongo*' \) 2>/dev/null)
	[ -z "$left" ] || { printf '%s\n' "$left" && return 1; }
}

# ---- preparation -----------------------------------------------------------------------

# A place for stores and sockets: not world-writable, not below /tmp, short.
make_base() {
	local parent=/var/lib
	[ "$(id -u)" -eq 0 ] || parent=${XDG_STATE_HOME:-$HOME/.local/state}
	TT_RUN=$$.$RANDOM
	BASE=$parent/tmpnest-tests.$$
	mkdir -p "$parent" && mkdir -m 755 "$BASE" || exit 1
	STAGE=$BASE/stage
	cat /proc/self/mounts >"$BASE/mounts.before"
}

# The plain user of this run, with a second group; gone with the run.
make_user() {
	TEST_USER='' TEST_GROUP='' USER_HOME=''
	[ "$(id -u)" -eq 0 ] || return 0
	local user=tmpnest-test-$$
	groupadd "$user-2" && useradd --create-home --user-group --groups "$user-2" --shell /bin/bash "$user" || {
		groupdel "$user-2"
		echo 'cannot make the plain user of the tests' >&2
		exit 1
	}
	TEST_USER=$user TEST_GROUP=$user-2
	USER_HOME=$(getent passwd "$TEST_USER" | cut -d: -f6)
}

# A runtime binds these where it finds them when it plans, and several cases have them at
# the same time: they stay for the whole run, or one case would pull them from under another.
make_claude() {
	local dir
	CLAUDE_MADE=()
	for dir in /tmp/claude /private /private/tmp /private/tmp/claude; do
		mkdir "$dir" 2>/dev/null || continue
		CLAUDE_MADE+=("$dir")
		[ "${dir##*/}" != claude ] || chmod 1777 "$dir"
	done
}

remove_claude() {
	local i
	for ((i = ${#CLAUDE_MADE[@]}; i-- > 0; )); do rmdir "${CLAUDE_MADE[i]}"; done
}

# A copy of programs and tests that the plain user can read, wherever the tree lies; it
# also shows that the programs find each other in another place.
make_stage() {
	local file
	mkdir -p "$STAGE/build" && (cd "$BUILD" && find launcher fs tests bench \
		\( -path tests/unit -o -path tests/wire -o -path tests/fuzz \) -prune -o -type f -perm -u+x -print |
		while read -r file; do
		install -D -m 755 "$file" "$STAGE/build/$file" || exit 1
	done) && cp -R "$ROOT/tests" "$ROOT/bench" "$ROOT/docs" "$ROOT/data" "$STAGE/" && chmod -R go+rX "$STAGE" || exit 1
}

# The npm packages of the tests of programs and stubs, pinned by their lock file, kept between runs.
make_node_modules() {
	local source=$ROOT/tests/programs dir=$CACHE/npm
	command -v npm >/dev/null || return 0
	if ! cmp -s "$source/package-lock.json" "$dir/installed.json"; then
		mkdir -p "$dir" && cp "$source/package.json" "$source/package-lock.json" "$dir/" &&
			(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) &&
			cp "$source/package-lock.json" "$dir/installed.json" || {
			echo 'npm could not install the packages of tests/programs' >&2
			return 0
		}
	fi
	cp -R "$dir/node_modules" "$STAGE/" && chmod -R go+rX "$STAGE/node_modules"
}

clean_up() {
	trap - EXIT
	remove_claude
	[ -z "${TEST_USER:-}" ] || {
		userdel --remove "$TEST_USER"
		groupdel "$TEST_GROUP"
	} >/dev/null 2>&1
	if [ -n "${TT_KEEP:-}" ] || [ "$FAILED" -gt 0 ]; then
		[ ! -d "$BASE" ] || echo "the directories of the tests: $BASE"
	else
		chmod -R u+rwX "$BASE" 2>/dev/null
		rm -rf --one-file-system "$BASE"
	fi
}

wants_programs() { # does a filter choose any group of tests/programs or tests/stubs?
	local name
	local -a parts
	while IFS=$'\t' read -r name _; do
		mapfile -t parts < <(chosen "$name")
		case $name in programs/* | stubs/*) [ "${#parts[@]}" -eq 0 ] || return 0 ;; esac
	done < <(groups)
	return 1
}

# What the programs of tests/programs/suite need, when they are chosen: of the quick ones,
# with --long of all. One package that cannot be had leaves the others.
install_suite() {
	local need parts name needs=() files=()
	for name in programs/suite@user programs/suite@root; do
		mapfile -t parts < <(chosen "$name")
		[ "${#parts[@]}" -eq 0 ] || mapfile -t files < <(
			cd "$ROOT/tests/programs/suite" && if [ -n "${TT_LONG:-}" ]; then ls "$PWD"/*.sh; else grep -L '^# long$' "$PWD"/*.sh; fi)
	done
	[ "${#files[@]}" -gt 0 ] || return 0
	mapfile -t needs < <(sed -n 's/^# needs: //p' "${files[@]}" | tr ' ' '\n' | sort -u)
	(PATH=$PATH:/usr/sbin:/sbin && tn_install_missing "${needs[@]}") && return
	for need in "${needs[@]}"; do
		(PATH=$PATH:/usr/sbin:/sbin && tn_install_missing "$need")
	done
	return 0
}

begin=$SECONDS
if [ -n "$LIST" ]; then
	groups | cut -f1
	exit
fi
tn_install_missing "${TN_BUILD_NEEDS[@]}" "${TEST_NEEDS[@]}" || exit 1
make_base
CLAUDE_MADE=()
trap clean_up EXIT
trap interrupted INT TERM
tn_build "$ROOT" "$BUILD" "$BASE/build.log" || { FAILED=1 && exit 1; }
make_user
make_claude
make_stage
if wants_programs; then
	tn_install_missing "${PROGRAM_NEEDS[@]}" || [ -z "${TT_STRICT:-}" ] || FAILED=1
	make_node_modules
fi
install_suite

while IFS=$'\t' read -r group kind argument <&3; do
	mapfile -t parts < <(chosen "$group")
	[ "${#parts[@]}" -gt 0 ] || continue
	[ -n "${parts[0]}" ] || parts=()
	# the last one looks at what the others left
	if [ "$kind" = leaks ]; then wait_for_fewer 1; else wait_for_fewer "${TT_JOBS:-2}"; fi
	start_group "$group" "$kind" "$argument" "${parts[@]}"
done 3< <(groups)
wait_for_fewer 1

echo
[ "${#SKIPS[@]}" -eq 0 ] || printf 'skipped: %s\n' "${SKIPS[@]}"
[ "${#FAILURES[@]}" -eq 0 ] || printf 'FAILED: %s\n' "${FAILURES[@]}"
[ $((PASSED + FAILED)) -gt 0 ] || { echo 'no test was chosen' && FAILED=1; }
echo "took $((SECONDS - begin)) s"
clean_up
echo "$PASSED passed, $FAILED failed$([ "$SKIPPED" -eq 0 ] || echo ", $SKIPPED skipped")"
[ "$FAILED" -eq 0 ]
