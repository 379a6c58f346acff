#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Deny and read-only rules, by every route and every spelling.
. "$(dirname "$0")/../lib.sh"

routes() { printf '%s' "$TT_BUILD/tests/tools/deny-routes"; }

case_the_built_in_rule_by_every_route() {
	runs 0 tmpnest run -- "$(routes)" /tmp claude deny
	contains 'the tool ran' "$out" ' 0 wrong'
}

case_deny_by_every_route_in_tmp_var_tmp_and_deeper() {
	runs 0 tmpnest run --deny /tmp/secret --deny /var/tmp/hidden --deny deep/er/name -- sh -ec "
		mkdir -p /tmp/deep/er
		$(routes) /tmp secret deny
		$(routes) /var/tmp hidden deny
		$(routes) /tmp/deep/er name deny"
	runs 0 tmpnest run --deny /private/tmp/alias -- "$(routes)" /tmp alias deny
}

case_read_only_by_every_route() {
	runs 0 tmpnest run --read-only /tmp/fixed -- "$(routes)" /tmp fixed read-only
}

case_neighbours_are_free() {
	runs 0 tmpnest run -- sh -ec '
		cd /tmp
		mkdir claudette x x/claude
		echo 1 >claud
		echo 2 >claude.txt
		echo 3 >Claude
		mv claudette claudet
		rmdir claudet
		rm claud claude.txt Claude
		touch x/claude/file
		mv x/claude x/other
		rm -r x
		mkdir /var/tmp/claude
		[ -z "$(ls -A /tmp)" ]'
}

case_a_pattern_denies_all_that_match() {
	runs 0 tmpnest run --deny '/tmp/run-*/key' -- sh -c '
		mkdir /tmp/run-1 /tmp/run-2 /tmp/walk
		for d in run-1 run-2; do ! touch /tmp/$d/key 2>/dev/null || exit 8; done
		touch /tmp/walk/key /tmp/run-1/keys'
}

# A directory that already holds the forbidden name is not a way around a deeper rule.
case_a_folder_prepared_elsewhere_and_moved_in_place() {
	runs 0 tmpnest run --deny /tmp/a/b -- "$TT_PYTHON" -c '
import errno, os
os.makedirs("/tmp/p/b/c")
open("/tmp/p/b/c/f", "w").close()
try:
    os.rename("/tmp/p", "/tmp/a")
except OSError as e:
    assert e.errno == errno.EACCES, e
for path in ("/tmp/a/b", "/tmp/a/b/c/f"):
    try:
        os.stat(path)
        raise SystemExit("reached " + path)
    except FileNotFoundError:
        pass
# a harmless folder may be moved there, and then the name cannot be made in it
os.makedirs("/tmp/q")
if not os.path.isdir("/tmp/a"):
    os.rename("/tmp/q", "/tmp/a")
try:
    os.mkdir("/tmp/a/b")
    raise SystemExit("made /tmp/a/b")
except PermissionError:
    pass'
}

case_rules_hold_for_every_command_of_the_nest() {
	tmpnest create ruled --deny /tmp/no --read-only /tmp/ro
	local i
	for i in 1 2; do
		runs 1 tmpnest run --nest ruled -- mkdir /tmp/no
		contains "errno" "$err" 'Permission denied'
		runs 1 tmpnest run --nest ruled -- mkdir /tmp/ro
		contains "errno" "$err" 'Read-only file system'
		runs 1 tmpnest run --nest ruled -- mkdir /tmp/claude
		contains "errno" "$err" 'Permission denied'
	done
	eventually 5 nest_has ruled state idle
	tmpnest evict ruled
}

case_refusals_are_counted() {
	tmpnest run --nest counted -- mkdir /tmp/allowed
	equal 'denied_total without a refusal' "$(nest counted denied_total)" 0
	runs 1 tmpnest run --nest counted -- mkdir /tmp/claude
	local first
	first=$(nest counted denied_total)
	at_most 'one refusal' 1 "$first"
	runs 0 tmpnest run --nest counted -- sh -c 'for i in 1 2 3 4 5; do ! mkdir /tmp/claude 2>/dev/null || exit 9; done'
	at_most 'five more' $((first + 5)) "$(nest counted denied_total)"
	eventually 5 nest_has counted state idle
	tmpnest evict counted
}

case_a_mount_onto_a_denied_name_is_refused_or_left_out() {
	mkdir given
	echo secret >given/file
	capture tmpnest run --bind given:/tmp/claude -- cat /tmp/claude/file
	differ status "$status" 0
	lacks output "$out" secret
}

main "$@"
