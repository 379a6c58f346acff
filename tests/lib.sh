# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The library of the integration and program tests. A test script sources it, names the
# roles that its cases run as, defines functions case_WORDS, and ends with `main "$@"`.
#
#   script --roles          the roles, one line
#   script --list           the cases, one a line
#   script [FILTER...]      runs the cases whose name holds a filter; prints TAP
#   script --case NAME      runs one case in this process (used by the line above)
#
# Each case is a process of its own with a time limit, `set -eu`, and $TT_WORK, an empty
# directory that is its cwd. Cases of one script share one daemon, whose directories are
# in TMPNEST_RUNTIME_DIR and TMPNEST_STORE_DIR; own_daemon gives a case another one. The
# script's last case is always that it left nothing behind.
#
# From tests/run.sh: TT_ROLE (root or user), TT_BASE (directory for this script), TT_BUILD,
# TT_TESTS, TT_RUN (marks every process of the run), TT_USER (a plain user, when root),
# TT_STRICT (a skip that an installation would cure is a failure).

set -u
shopt -s nullglob
TT_SCRIPT=$(readlink -f "$0")
TT_ROLES='root user'
TT_LIMIT=150         # seconds for one case, on a busy machine
TT_SHARED_DAEMON=yes # no: every case that needs a daemon calls own_daemon
: "${TT_PYTHON:=/usr/bin/python3}"

roles() { TT_ROLES=$*; }

# Seconds a single case may take, where it is not the common limit: limit CASE SECONDS
declare -A TT_LIMITS=()
limit() { TT_LIMITS[$1]=$2; }

# Cases that run only with --long: long CASE...
declare -A TT_LONG_CASES=() TT_CASE_ROLE=()
long() {
	local name
	for name in "$@"; do TT_LONG_CASES[$name]=yes; done
}

# Cases that make sense in one role only: only ROLE CASE...
only() {
	local role=$1 name
	shift
	for name in "$@"; do TT_CASE_ROLE[$name]=$role; done
}

# ---- what a case calls -------------------------------------------------------------

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# A capability that this machine cannot be given: said, and counted as a skip.
skip() {
	echo "SKIP: $*"
	exit 77
}

# need COMMAND PACKAGE: skip without it, fail where installing is expected to have worked.
need() {
	command -v "$1" >/dev/null && return
	[ -z "${TT_STRICT:-}" ] || fail "$1 is missing (package $2)"
	skip "$1 is missing (install $2)"
}

# Runs a command; leaves its standard output, error and status in $out, $err, $status.
capture() {
	status=0
	"$@" >"$TT_WORK/.out" 2>"$TT_WORK/.err" </dev/null || status=$?
	out=$(tr -d '\000' <"$TT_WORK/.out")
	err=$(tr -d '\000' <"$TT_WORK/.err")
	printf '$ %s\n  status %s\n' "$*" "$status"
	[ -z "$out" ] || printf '%s\n' "$out" | sed -n '1,40s/^/  out: /p'
	[ -z "$err" ] || printf '%s\n' "$err" | sed -n '1,40s/^/  err: /p'
}

equal() { # WHAT GOT WANTED
	[ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

differ() { # WHAT A B
	[ "$2" != "$3" ] || fail "$1: both are '$2'"
}

contains() { # WHAT TEXT PART
	case $2 in *"$3"*) ;; *) fail "$1: '$3' is not in: $2" ;; esac
}

lacks() { # WHAT TEXT PART
	case $2 in *"$3"*) fail "$1: '$3' is in: $2" ;; esac
}

at_least() { # WHAT GOT LIMIT
	[ "$2" -ge "$3" ] || fail "$1: $2 is less than $3"
}

at_most() { # WHAT GOT LIMIT
	[ "$2" -le "$3" ] || fail "$1: $2 is more than $3"
}

# runs STATUS COMMAND...: captures, and the status must be that one.
runs() {
	local wanted=$1
	shift
	capture "$@"
	equal "status of '$*'" "$status" "$wanted"
}

# One line `tmpnest: WHAT: OBJECT: WHY` on $err and nothing else.
one_message() {
	equal "lines on stderr ($err)" "$(printf '%s' "$err" | grep -c '')" 1
	case $err in "tmpnest: "*": "*) ;; *) fail "not a 'tmpnest: WHAT: ...' message: $err" ;; esac
}

# eventually SECONDS COMMAND...: polls until it is true. There is no event for most of
# what the tests wait for: the kernel's teardown of namespaces is asynchronous.
eventually() {
	local deadline=$((SECONDS + $1 + 1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$deadline" ] || fail "still not so: $*"
		sleep 0.05
	done
}

# json EXPRESSION: evaluates Python on the document d read from standard input.
json() { "$TT_PYTHON" -c 'import json,sys; d=json.load(sys.stdin); v=eval(sys.argv[1]); print(json.dumps(v) if isinstance(v,(dict,list,bool,type(None))) else v)' "$1"; }

# nest NAME FIELD: one field of `tmpnest show NAME --json`
nest() { tmpnest show "$1" --json | json "d['$2']"; }

# Those that exist: evicted ones are listed as well, until they are wiped.
nest_names() { tmpnest ls --json | json '"\n".join(n["name"] for n in d if n["state"] != "evicting")'; }

nests_are() { [ "$(nest_names)" = "${1:-}" ]; }
no_nests() { nests_are ''; }
nest_has() { [ "$(nest "$1" "$2")" = "$3" ]; }

# Starts a command in the background whose output goes to $TT_WORK/NAME.log; $! is its pid
# and its process group, which end_background (and the end of the case) kills.
background() { # NAME COMMAND...
	local name=$1
	shift
	setsid "$@" >"$TT_WORK/$name.log" 2>&1 </dev/null &
	TT_GROUPS+=" $!"
	echo "background $name: pid $!"
}

TT_GROUPS=
end_background() {
	local group
	for group in $TT_GROUPS; do
		kill -9 -- "-$group" 2>/dev/null || true
		wait "$group" 2>/dev/null || true
	done
	TT_GROUPS=
}

wait_for_line() { # NAME TEXT
	eventually 15 grep -q -- "$2" "$TT_WORK/$1.log"
}

# A name that no file on the machine has.
unique() { printf 'tn%s%04x%04x%04x' "${1:-}" $RANDOM $RANDOM $RANDOM; }

# Directories of a daemon of this case alone; it is ended with the case. Short names: the
# path of a socket has 107 bytes at most.
own_daemon() {
	TT_OWN=$TT_BASE/own$$
	export TMPNEST_RUNTIME_DIR=$TT_OWN/r TMPNEST_STORE_DIR=$TT_OWN/s
	mkdir "$TT_OWN"
}

evict_all() {
	local owner=() uid name
	tmpnest ls --json | json '"\n".join("%d %s" % (n["owner_uid"], n["name"]) for n in d if n["state"] != "evicting")' 2>/dev/null |
		while read -r uid name; do
			[ -n "$name" ] || continue
			[ "$(id -u)" -ne 0 ] || owner=(--owner "$uid")
			tmpnest evict --force "${owner[@]}" "$name"
		done
}

stop_daemon() { # evicts what is left and ends the daemon of the present directories
	[ -S "$TMPNEST_RUNTIME_DIR/control.sock" ] || return 0
	evict_all
	eventually 10 trash_is_empty
	tmpnest daemon stop
	eventually 10 daemon_is_gone
}

daemon_is_gone() { ! tmpnest daemon status; }

daemon_pid() { # of the keeper
	tmpnest daemon status --json | json 'd["keeper_pid"]'
}

worker_pid() { tmpnest daemon status --json | json 'd["worker_pid"]'; }

# Bytes of memory that the worker holds: its own, and its memory files.
worker_memory() {
	"$TT_PYTHON" - "$(worker_pid)" <<-'END'
		import os, re, sys
		proc = f"/proc/{sys.argv[1]}"
		own = int(re.search(r"RssAnon:\s+(\d+)", open(f"{proc}/status").read())[1]) * 1024
		files = {}
		for fd in os.listdir(f"{proc}/fd"):
		    try:
		        if os.readlink(f"{proc}/fd/{fd}").startswith("/memfd:"):
		            st = os.stat(f"{proc}/fd/{fd}")
		            files[st.st_ino] = st.st_blocks * 512
		    except FileNotFoundError:
		        pass
		print(own + sum(files.values()))
	END
}

# The wipe of evicted nests goes on in the background. Only a process with rights over
# the store can look; nests/ has mode 0000.
trash_is_empty() {
	local store=$TMPNEST_STORE_DIR
	[ -d "$store" ] || return 0
	[ -z "$(store_entries "$store")" ]
}

store_entries() { # every entry of the directories nests and trash of a store
	local dir
	for dir in "$1/nests" "$1/trash"; do
		[ -d "$dir" ] || continue
		if [ "$(id -u)" -ne 0 ]; then
			local mode
			mode=$(stat -c %a "$dir")
			chmod 700 "$dir" && find "$dir" -mindepth 1 2>/dev/null
			chmod "$mode" "$dir"
		else
			find "$dir" -mindepth 1
		fi
	done
}

# Root's tests of a plain user: runs a command as $TT_USER, in a directory of its own.
as_user() {
	as_user_words
	"${AS_USER[@]}" "$@"
}

# The same as words in AS_USER, where a function cannot be called.
as_user_words() {
	local home
	home=$(getent passwd "$TT_USER" | cut -d: -f6)
	mkdir -p "$TT_WORK/user"
	chown "$TT_USER:" "$TT_WORK/user"
	AS_USER=(env -C "$TT_WORK/user" "HOME=$home" "USER=$TT_USER" "LOGNAME=$TT_USER"
		setpriv --reuid "$TT_USER" --regid "$TT_USER" --init-groups)
}

# ---- the frame ---------------------------------------------------------------------

# The functions case_WORDS in the order of the file, the long ones only when asked for.
cases() {
	local name
	sed -nE 's/^case_([a-z0-9_]+)\(\).*/\1/p' "$TT_SCRIPT" | while read -r name; do
		[ -z "${TT_LONG_CASES[$name]:-}" ] || [ -n "${TT_LONG:-}" ] || continue
		[ -z "${TT_ROLE:-}" ] || [ "${TT_CASE_ROLE[$name]:-$TT_ROLE}" = "$TT_ROLE" ] || continue
		echo "$name"
	done
}

run_case() { # in a process of its own
	local name=$1
	export TT_WORK=$TT_BASE/$name
	mkdir -p "$TT_WORK"
	cd "$TT_WORK" || exit 1
	trap 'end_case' EXIT
	set -eu -o pipefail
	"case_$name"
}

end_case() {
	local status=$?
	set +e
	trap - EXIT
	end_background
	local job
	for job in $(jobs -p); do
		kill -9 "$job" 2>/dev/null
	done
	cd / || exit 1
	if [ -n "${TT_OWN:-}" ]; then
		TMPNEST_RUNTIME_DIR=$TT_OWN/r TMPNEST_STORE_DIR=$TT_OWN/s
		(stop_daemon && stops_clean) || status=1
	elif [ "$status" -ne 0 ]; then
		(evict_all) # so that the next case finds none
	fi
	[ "$status" -ne 0 ] && [ "$status" -ne 77 ] || rm -rf "$TT_WORK" "${TT_OWN:-$TT_WORK}" || status=1
	exit "$status"
}

# What an ended daemon must leave: no file of a nest, no socket. (A lease whose sandbox
# outlived the daemon is the next daemon's to remove: death.sh.)
stops_clean() {
	local rest=
	[ ! -d "$TMPNEST_STORE_DIR" ] || rest=$(store_entries "$TMPNEST_STORE_DIR")
	[ ! -d "$TMPNEST_RUNTIME_DIR" ] || rest+=$(find "$TMPNEST_RUNTIME_DIR" -type s)
	# and nothing that the worker needs is missing on its filter's list
	[ ! -f "$TMPNEST_RUNTIME_DIR/tmpnestd.log" ] ||
		rest+=$(grep 'system call .* is not on its list' "$TMPNEST_RUNTIME_DIR/tmpnestd.log" || true)
	[ -z "$rest" ] || {
		echo "left in the directories of the daemon: $rest" | head -20
		return 1
	}
}

left_nothing() {
	export TT_WORK=$TT_BASE
	(stop_daemon) && stops_clean && ! grep -F "$TT_BASE" /proc/self/mounts
}

report() { # STATUS NAME SECONDS LOG
	local number=$((++TT_NUMBER)) words=${2//_/ }
	[ "$3" -lt 5 ] || words+=" ($3 s)"
	case $1 in
	0) echo "ok $number - $words" ;;
	77) echo "ok $number - $words # SKIP $(sed -n 's/^SKIP: //p' "$4" | tail -1)" ;;
	*)
		echo "not ok $number - $words"
		[ "$1" -ne 124 ] && [ "$1" -ne 137 ] || echo "# over its time limit"
		tail -n 60 "$4" | sed 's/^/# /'
		;;
	esac
}

main() {
	case ${1:-} in
	--roles) echo "$TT_ROLES" && return ;;
	--list) cases && return ;;
	--case) # not in a condition: that would turn `set -e` off
		run_case "$2"
		exit
		;;
	esac
	local name filter start status log chosen
	TT_NUMBER=0
	export TMPNEST_RUNTIME_DIR=$TT_BASE/r TMPNEST_STORE_DIR=$TT_BASE/s
	for name in $(cases); do
		chosen=${1:+no}
		for filter in "$@"; do
			case $name in *"$filter"*) chosen= ;; esac
		done
		[ -z "$chosen" ] || continue
		start=$SECONDS log=$TT_BASE/$name.log status=0
		timeout -k 5 "${TT_LIMITS[$name]:-$TT_LIMIT}" \
			bash "$TT_SCRIPT" --case "$name" >"$log" 2>&1 </dev/null || status=$?
		report "$status" "$name" $((SECONDS - start)) "$log"
	done
	start=$SECONDS log=$TT_BASE/left_nothing.log status=0
	(left_nothing) >"$log" 2>&1 || status=1
	report "$status" left_nothing_behind $((SECONDS - start)) "$log"
	echo "1..$TT_NUMBER"
}
