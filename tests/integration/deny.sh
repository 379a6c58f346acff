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

# In a sandbox: opens things, and tells at each step (a file in its workspace) what has become of them.
watch_a_rule() {
	background watcher tmpnest run --nest live -- "$TT_PYTHON" -c '
import errno, mmap, os, time
def said(call, *args):
    try: return call(*args)
    except OSError as e: return errno.errorcode[e.errno]
def look(step):
    listed = sorted(os.listdir("/tmp/a"))
    child = os.fork()
    if child == 0:
        os._exit(m[0] == ord("t"))
    mapped = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(step, said(os.pread, f, 3, 0), said(os.pwrite, f, b"t", 0), said(os.fstat, f) and type(said(os.fstat, f)).__name__,
        said(os.access, "/tmp/a/secret", os.F_OK), listed, mapped, said(os.mkdir, "/tmp/a/%s.key" % step), said(os.pread, g, 1, 0), flush=True)
def wait(step):
    while not os.path.exists(step): time.sleep(0.05)
    look(step)
os.mkdir("/tmp/a")
f = os.open("/tmp/a/secret", os.O_RDWR | os.O_CREAT)
os.write(f, b"text")
m = mmap.mmap(f, 4, prot=mmap.PROT_READ)
g = os.open("/tmp/a/free", os.O_RDWR | os.O_CREAT)
os.write(g, b"g")
os.path.exists("/tmp/a/denied.key")
for step in "before", "denied", "crashed", "back", "fixed": wait(step)'
}

step() { # NAME WHAT-IS-SAID
	touch "$1"
	wait_for_line watcher "^$1 "
	equal "$1" "$(grep "^$1 " watcher.log)" "$1 $2"
}

worker_is_new() { [ "$(worker_pid)" != "$1" ]; }

case_rules_change_under_open_files() {
	own_daemon
	watch_a_rule
	step before "b'tex' 1 stat_result True ['free', 'secret'] 1 None b'g'"
	runs 0 tmpnest deny live add a/secret '/tmp/a/*.key'
	equal 'the rules' "$out" $'/tmp/claude (built in)\n/tmp/a/secret\n/tmp/a/*.key'
	step denied "EACCES EACCES str False ['free'] -7 EACCES b'g'"
	contains 'the events' "$(tmpnest events live)" 'READ /tmp/a/secret: Permission denied'
	local worker
	worker=$(worker_pid)
	kill -9 "$worker"
	eventually 10 worker_is_new "$worker"
	step crashed "EACCES EACCES str False ['free'] -7 EACCES b'g'"
	runs 0 tmpnest deny live rm a/secret '/tmp/a/*.key'
	step back "b'tex' 1 stat_result True ['before.key', 'free', 'secret'] 1 None b'g'"
	runs 0 tmpnest read-only live add a --json
	equal 'as JSON' "$(json '[[r["pattern"], r["kind"]] for r in d]' <<<"$out")" '[["/tmp/a", "read_only"]]'
	step fixed "b'tex' EROFS stat_result True ['back.key', 'before.key', 'free', 'secret'] 1 EROFS b'g'"
	end_background
	eventually 5 nest_has live attachments 0
	# the next daemon knows them
	tmpnest daemon stop
	tmpnest daemon start
	equal 'the rules' "$(tmpnest read-only live ls)" /tmp/a
	stop_daemon
}

case_rules_that_cannot_change() {
	own_daemon
	mkdir outside
	background holder tmpnest run --nest live --bind "$TT_WORK/outside:/tmp/in/outside" -- sh -c 'echo ready; sleep 60'
	wait_for_line holder ready
	runs 1 tmpnest deny live add in
	contains 'the mount' "$err" 'has a mount there'
	runs 4 tmpnest deny live rm /tmp/claude
	runs 1 tmpnest deny live rm nothing
	runs 1 tmpnest deny live add good ../bad
	one_message
	equal 'all or none' "$(tmpnest deny live ls)" '/tmp/claude (built in)'
	runs 3 tmpnest deny missing add x
	runs 3 tmpnest deny missing ls
	runs 2 tmpnest deny live add
	runs 2 tmpnest deny live change x
	runs 2 tmpnest deny live
	end_background
	eventually 5 nest_has live attachments 0
	stop_daemon
}

main "$@"
