#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `tmpnest run` as a command: exit statuses, messages, usage, environment, options.
. "$(dirname "$0")/../lib.sh"

case_status_is_the_commands() {
	runs 0 tmpnest run -- true
	runs 7 tmpnest run -- sh -c 'exit 7'
	runs 1 tmpnest run false
}

case_status_of_a_signal_is_128_and_its_number() {
	runs 143 tmpnest run -- sh -c 'kill -TERM $$'
	runs 137 tmpnest run -- sh -c 'kill -KILL $$'
}

case_127_for_a_command_that_is_not_there() {
	runs 127 tmpnest run -- no-such-command-anywhere
	one_message
	contains 'message' "$err" no-such-command-anywhere
	runs 127 tmpnest run -- /no/such/file
	one_message
}

case_126_for_a_command_that_cannot_be_executed() {
	echo 'echo no' >plain-file
	chmod 644 plain-file
	runs 126 tmpnest run -- ./plain-file
	one_message
	contains 'message' "$err" plain-file
	runs 126 tmpnest run -- /etc
	one_message
}

case_125_when_tmpnest_itself_failed() {
	runs 125 tmpnest run --bind /no/such/host/path -- true
	one_message
	contains 'message' "$err" /no/such/host/path
	runs 125 tmpnest run --quota 12Q -- true
	contains 'message' "$err" 12Q
	runs 125 tmpnest run --quota -- true
	runs 125 tmpnest run --no-such-option -- true
	contains 'message' "$err" no-such-option
	runs 125 tmpnest run --nest ../evil -- true
	contains 'message' "$err" ../evil
	runs 125 tmpnest run --nest "$(printf 'a%.0s' {1..65})" -- true
	runs 125 tmpnest run --deny /tmp/../etc -- true
	contains 'message' "$err" /tmp/../etc
	runs 125 tmpnest run --inodes 0 -- true
}

case_without_a_command_it_is_a_usage_error() {
	runs 125 tmpnest run
	differ 'the usage message' "$err" ''
	runs 125 tmpnest run --
	runs 2 tmpnest no-such-verb
	contains 'message' "$err" no-such-verb
	runs 2 tmpnest
}

case_help_and_version() {
	runs 0 tmpnest --version
	contains version "$out" tmpnest
	runs 0 tmpnest --help
	contains help "$out" run
	contains help "$out" evict
	runs 0 tmpnest run --help
	contains help "$out" --quota
}

case_a_command_substitution_returns_at_once_though_the_daemon_starts() {
	own_daemon
	local started=$SECONDS x
	x=$(timeout 20 tmpnest run -- echo hello)
	equal output "$x" hello
	at_most 'seconds' $((SECONDS - started)) 5
	tmpnest daemon status
}

case_standard_streams_are_the_callers() {
	equal 'output' "$(echo text | tmpnest run -- tr a-z A-Z)" TEXT
	equal 'error output' "$(tmpnest run -- sh -c 'echo problem >&2' 2>&1)" problem
}

case_no_descriptor_of_ours_reaches_the_command() {
	ls /proc/self/fd >outside
	runs 0 tmpnest run -- ls /proc/self/fd
	equal 'descriptors' "$(xargs <<<"$out")" "$(xargs <outside)"
}

case_arguments_pass_through_untouched() {
	# shellcheck disable=SC2016
	runs 0 tmpnest run -- sh -c 'for a; do printf "[%s]" "$a"; done' - 'a b' '' '*' --nest -- "it's"
	equal arguments "$out" "[a b][][*][--nest][--][it's]"
}

case_the_environment_and_setenv() {
	# shellcheck disable=SC2016
	TT_MARK=inherited runs 0 tmpnest run --setenv TT_GIVEN='a=b c' -- \
		sh -c 'echo "$TT_MARK,$TT_GIVEN,${TMPDIR-unset}"'
	contains environment "$out" 'inherited,a=b c,'
}

case_tmp_and_var_tmp_are_private_and_1777() {
	runs 0 tmpnest run -- sh -c 'umask 0; stat -c "%a %n" /tmp /var/tmp; ls -A /tmp /var/tmp'
	contains 'mode' "$out" '1777 /tmp'
	contains 'mode' "$out" '1777 /var/tmp'
	equal 'lines (both are empty)' "$(printf '%s\n' "$out" | grep -c .)" 4
}

case_the_umask_of_the_first_caller_does_not_matter() {
	own_daemon
	umask 077
	runs 0 tmpnest run -- stat -c %a /tmp /var/tmp
	equal 'modes' "$(xargs <<<"$out")" '1777 1777'
	umask 022
	if [ "$TT_ROLE" = root ]; then
		runs 0 as_user tmpnest run -- true
	fi
}

case_tmp_is_1777_again_at_every_start() {
	runs 0 tmpnest run --nest modes -- chmod 700 /tmp /var/tmp
	runs 0 tmpnest run --nest modes -- stat -c %a /tmp /var/tmp
	equal 'modes at the next start' "$(xargs <<<"$out")" '1777 1777'
	background first tmpnest run --nest modes -- sh -c 'chmod 755 /tmp; stat -c %a /tmp; exec sleep 20'
	wait_for_line first 755
	runs 0 tmpnest run --nest modes -- stat -c %a /tmp
	equal 'mode at a start beside another' "$out" 1777
	tmpnest evict --force modes
}

case_owner_of_tmp_is_the_nests_owner() {
	local shown
	shown=$(tmpnest run -- stat -c %u /tmp)
	equal 'owner of /tmp' "$shown" "$(id -u)"
	equal 'owner of a new file' "$(tmpnest run -- sh -c 'touch /tmp/f && stat -c %u:%g /tmp/f')" \
		"$(tmpnest run -- sh -c 'echo $(id -u):$(id -g)')"
}

case_no_var_tmp_leaves_var_tmp_alone() {
	runs 0 tmpnest run --no-var-tmp -- sh -c 'stat -c %d /tmp /var/tmp; touch /tmp/x'
	differ 'devices of /tmp and /var/tmp' "$(sed -n 1p <<<"$out")" "$(sed -n 2p <<<"$out")"
	runs 1 tmpnest run --no-var-tmp -- touch /var/tmp/tn-no-var-tmp
}

case_rename_between_tmp_and_var_tmp_is_exdev() {
	runs 0 tmpnest run -- "$TT_PYTHON" -c '
import errno, os
open("/tmp/f", "w").close()
for call in (os.rename, os.link):
    try:
        call("/tmp/f", "/var/tmp/f")
        raise SystemExit("it worked")
    except OSError as e:
        assert e.errno == errno.EXDEV, e'
}

case_the_host_is_read_only() {
	runs 0 tmpnest run -- sh -c 'for d in /usr /etc /opt; do ! touch $d/tn-probe 2>/dev/null || exit 9; done'
}

case_net_none_has_only_loopback() {
	equal 'interfaces' "$(tmpnest run --net none -- sh -c 'grep -c : /proc/net/dev')" 1
	equal 'interfaces with the host net' "$(tmpnest run --net host -- sh -c 'grep -c : /proc/net/dev')" \
		"$(grep -c : /proc/net/dev)"
	runs 125 tmpnest run --net sideways -- true
}

case_bind_and_ro_bind() {
	mkdir given other
	echo content >given/file
	runs 0 tmpnest run --bind given:/tmp/inside --ro-bind other:/tmp/fixed -- \
		sh -c 'cat /tmp/inside/file && echo more >/tmp/inside/new && ! touch /tmp/fixed/x 2>/dev/null'
	contains 'output' "$out" content
	equal 'written through' "$(cat given/new)" more
	runs 0 tmpnest run --ro-bind "$PWD/given" -- cat "$PWD/given/file"
}

case_bwrap_arg_is_passed_as_is() {
	runs 0 tmpnest run --bwrap-arg --hostname --bwrap-arg nestbox --bwrap-arg --unshare-uts -- hostname
	equal hostname "$out" nestbox
}

case_an_own_pid_namespace() {
	# shellcheck disable=SC2016
	local count
	count=$(tmpnest run -- sh -c 'ls -d /proc/[0-9]* | wc -l')
	at_most 'processes seen' "$count" 6
}

case_report_says_what_was_refused_and_keeps_the_status() {
	runs 5 tmpnest run --report --quota 1M -- sh -c '
		mkdir /tmp/claude 2>/dev/null; dd if=/dev/zero of=/tmp/x bs=1M count=3 2>/dev/null; exit 5'
	one_message
	contains 'the report' "$err" 'refused by rules'
	contains 'the report' "$err" 'quota was hit'
	runs 0 tmpnest run --report -- true
	one_message
	contains 'the report' "$err" 'no access was refused'
	background reporter tmpnest run --report -- \
		sh -c 'trap "echo caught; exit 9" TERM; echo up; while :; do sleep 0.1; done'
	local pid=$! status=0
	wait_for_line reporter up
	kill -TERM "$pid"
	wait "$pid" || status=$?
	equal 'status after a forwarded TERM' "$status" 9
	wait_for_line reporter caught
}

case_it_is_one_process_that_execs_bwrap() {
	need strace strace
	runs 0 strace -f -qq -o trace -e trace=clone,clone3,fork,vfork,execve tmpnest run -- true
	# up to the exec of bwrap the launcher (the first pid of the trace) makes no thread and no process
	local first
	first=$(awk 'NR == 1 { print $1 }' trace)
	awk -v pid="$first" '$1 == pid && /execve\(.*bwrap"/ && /= 0$/ { seen = 1; exit }
		$1 == pid && /(clone|clone3|fork|vfork)\(/ { print; bad = 1; exit }
		END { exit bad || !seen }' trace || fail "threads or no exec of bwrap: $(head -20 trace)"
}

# Static, where libc allows; its dynamic twin does what needs the user database.
case_the_launcher_links_no_glib() {
	local libraries program
	for program in "$TT_BUILD"/launcher/tmpnest "$TT_BUILD"/launcher/tmpnest-dynamic; do
		[ -e "$program" ] || continue
		libraries=$(ldd "$program" 2>&1) || contains 'what ldd says' "$libraries" 'not a dynamic executable'
		for word in glib gio gobject json-glib libfuse pthread; do
			lacks "libraries of $program" "$libraries" "$word"
		done
	done
}

# A static program cannot look users up: the twin is executed for that, with the same words.
case_without_a_home_the_user_database_says_where() {
	runs 0 env -u HOME -u XDG_STATE_HOME -u XDG_RUNTIME_DIR -u XDG_CONFIG_HOME \
		tmpnest run --setenv 'WORDS=a  b' -- sh -c 'printf "%s|%s" "$WORDS" "$1"' - 'c  d'
	equal 'what the command got' "$out" 'a  b|c  d'
	[ ! -e "$TT_BUILD/launcher/tmpnest-dynamic" ] ||
		contains 'the programs executed' "$(env -u HOME -u XDG_STATE_HOME -u XDG_RUNTIME_DIR -u XDG_CONFIG_HOME \
			strace -f -e trace=execve tmpnest run -- true 2>&1)" launcher/tmpnest-dynamic
}

main "$@"
