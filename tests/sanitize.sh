# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The groups sanitize/address (address and undefined behaviour) and sanitize/thread of
# tests/run.sh, which sources this: a build of its own with the sanitizer, kept between runs, then unit
# and wire tests and fuzz corpora of it, and a part of the integration tests against its daemon.
# By default what is quick and touches most; with --long all of them.
#
# A report of a sanitizer counts wherever it comes from: a worker that dies of one is replaced, and
# no client would notice.

SANITIZE_CACHE=${TMPNEST_SANITIZE_CACHE:-$ROOT/.cache/sanitize}

# Programs of the default run: names of meson's tests.
sanitize_programs() { # KIND
	case $1 in
	address) echo wire-{account,malformed,ops,rules,threads} adopt describe fdcache node pins policy quota recount \
		attach attach-proto varlink varlink-guard fuzz-{requests,state,control,attach,config,rules}-corpus ;;
	thread) echo wire-threads events ;;
	esac
}

# Scripts with the cases of the default run, as SCRIPT:PART-OF-NAME, as root.
sanitize_cases() { # KIND
	case $1 in
	address) echo integration/nests:meet integration/quota:dd_stops integration/deny:built_in integration/crash:a_stopped_worker \
		integration/operators:du_shows security/hostile:renames_in_cycles_leave ;;
	thread) echo integration/nests:share_a_fifo integration/quota:in_many_nests integration/crash:a_stopped_worker \
		security/hostile:thirty_two_threads_race_for_the_last ;;
	esac
}

sanitize_words() { # KIND: what meson calls it
	case $1 in address) echo address,undefined ;; *) echo "$1" ;; esac
}

# Configures and compiles; the programs' test lines "NAME<TAB>COMMAND" are in $dir/programs then.
sanitize_build() { # KIND DIR
	local kind=$1 dir=$2 wanted targets
	[ -f "$dir/build.ninja" ] || meson setup "$dir" "$ROOT" -Db_sanitize="$(sanitize_words "$kind")" \
		-Db_lundef=false -Doptimization=1 -Dfuzz=disabled || return 1
	wanted=$(sanitize_programs "$kind")
	meson introspect --tests "$dir" | WANTED=${TT_LONG:+all}${TT_LONG:-$wanted} /usr/bin/env python3 -c '
import json, os, sys
wanted = os.environ["WANTED"].split()
for test in json.load(sys.stdin):
    suites = [s.split(":")[-1] for s in test["suite"]]
    every = wanted[0].startswith("all") and ("unit" in suites or "wire" in suites)
    if test["name"] in wanted or (every and "long" not in suites and test["cmd"][0].startswith(sys.argv[1])):
        env = [f"{k}={v}" for k, v in test["env"].items()]
        print(test["name"] + "\t" + "\x1f".join(["env"] + env + test["cmd"]))' "$dir" >"$dir/programs" || return 1
	targets=$(cut -f2 "$dir/programs" | tr '\037' '\n' | sed -n "s|^$dir/||p" | sort -u)
	# shellcheck disable=SC2086  # a list of words
	ninja -C "$dir" fs/tmpnestd $targets
}

# The programs of the run with the daemon of this build.
sanitize_stage() { # DIR STAGE
	mkdir -p "$2/build/tests" && cp -R "$STAGE/build/launcher" "$STAGE/build/fs" "$2/build/" &&
		cp -R "$STAGE/build/tests/model" "$STAGE/build/tests/tools" "$2/build/tests/" &&
		cp "$1/fs/tmpnestd" "$2/build/fs/tmpnestd" && cp -R "$STAGE/tests" "$STAGE/docs" "$STAGE/data" "$2/" &&
		chmod -R go+rX "$2"
}

# No report has come since; shows those that have.
no_reports() { # REPORTS
	local file found=0
	for file in "$1"/*; do
		[ -e "$file" ] || continue
		found=1
		head -n 60 "$file"
		rm -f "$file"
	done
	return "$found"
}

sanitize_program() { # REPORTS COMMAND...
	local reports=$1 status=0
	shift
	(cd "$BUILD" && timeout -k 5 400 "$@") 2>&1 || status=$?
	no_reports "$reports" && [ "$status" -eq 0 ]
}

# The directory's name is short: a socket's path has 107 bytes at most.
sanitize_script() { # REPORTS SCRIPT CASE ROLE NUMBER
	local reports=$1 script=$2 case=$3 role=$4 log status=0
	# shellcheck disable=SC2086  # no word for all cases
	log=$(run_script "$role" "$KIND$5@$role" "$ROOT/tests/$script.sh" $case 2>&1) || status=$?
	! grep -q '^not ok' <<<"$log" || status=1
	grep -q '^ok ' <<<"$log" || status=1
	[ "$status" -eq 0 ] || sed 's/^/# /' <<<"$log"
	no_reports "$reports" && [ "$status" -eq 0 ]
}

sanitize() { # KIND
	local KIND=$1 dir=$SANITIZE_CACHE/$1 number=1 name command script role reports=$BASE/reports-$1 STAGE=$STAGE
	local -a words
	mkdir -p "$dir" "$reports" && chmod 1777 "$reports" || return 1
	one_case 1 'it can be built' sanitize_build "$KIND" "$dir"
	sanitize_stage "$dir" "$BASE/stage-$KIND" || return 1
	STAGE=$BASE/stage-$KIND
	# The daemon is not dumpable: nobody may look for its leaks, the tests count descriptors and memory.
	export ASAN_OPTIONS=detect_leaks=0:log_path=$reports/address UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:log_path=$reports/undefined
	export TSAN_OPTIONS=log_path=$reports/thread:halt_on_error=0:suppressions=$ROOT/tests/sanitize-thread.supp
	while IFS=$'\t' read -r name command; do
		IFS=$'\x1f' read -r -a words <<<"$command"
		one_case $((++number)) "$name" sanitize_program "$reports" setarch -R "${words[@]}"
	done <"$dir/programs"
	if [ -z "${TT_LONG:-}" ]; then
		for script in $(sanitize_cases "$KIND"); do
			one_case $((++number)) "${script//_/ }" sanitize_script "$reports" "${script%:*}" "${script#*:}" root "$number"
		done
	else
		for script in "$ROOT"/tests/{integration,security}/*.sh; do
			for role in $(bash "$script" --roles); do
				name=$(basename "$(dirname "$script")")/$(basename "$script" .sh)
				one_case $((++number)) "$name as $role" sanitize_script "$reports" "$name" '' "$role" "$number"
			done
		done
	fi
	echo "1..$number"
}
