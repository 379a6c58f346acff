#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tmpnest-bwrap: lines made by others, unchanged, get a private /tmp.
. "$(dirname "$0")/../lib.sh"

export TMPNEST_NEST_FROM=none
unset TMPNEST_NEST TMPDIR
front() { "$TT_BUILD/launcher/tmpnest-bwrap" "$@"; }
SAFE=(--unshare-user --unshare-pid --cap-drop ALL)
HOST=(--ro-bind / / --dev /dev --proc /proc "${SAFE[@]}")

only root a_scratch_directory_that_the_daemon_cannot_see
only user two_hundred_sandboxes_leave_no_litter a_long_profile_below_tmp # the same for root, and long

# A directory of this case below the host's /tmp, gone with it.
host_tmp_dir() {
	HOST_DIR=$(mktemp -d /tmp/tnfront-XXXXXX)
	trap 'HOST_STATUS=$?; rm -rf "$HOST_DIR"; (exit "$HOST_STATUS"); end_case' EXIT
}

case_questions_go_straight_to_bwrap() {
	own_daemon
	local words plain
	for words in --version --help '--unshare-user --dev-bind / / true' '--ro-bind / / --version' \
		'--ro-bind / / --help' '--ro-bind / /' ''; do
		# the program's own name is in its usage
		# shellcheck disable=SC2086
		plain=$(bwrap $words 2>&1 | sed '1s/usage: [^ ]*//'; echo "${PIPESTATUS[0]}")
		# shellcheck disable=SC2086
		equal "answer to '$words'" "$(front $words 2>&1 | sed '1s/usage: [^ ]*//'; echo "${PIPESTATUS[0]}")" "$plain"
	done
	[ ! -e "$TMPNEST_RUNTIME_DIR" ] || fail 'a question started a daemon'
}

case_a_private_tmp_in_an_unchanged_line() {
	host_tmp_dir
	local mark
	mark=$(unique)
	touch "$HOST_DIR/$mark"
	runs 0 front "${HOST[@]}" sh -c "ls -A /tmp; echo x >/tmp/$mark; cat /tmp/$mark"
	equal 'what it sees of /tmp' "$out" x
	[ ! -e "/tmp/$mark" ] || fail 'the host sees it'
	eventually 10 no_nests
}

case_two_commands_of_one_nest_meet_and_another_does_not() {
	export TMPNEST_NEST=one
	runs 0 front "${HOST[@]}" sh -c 'echo here >/tmp/x'
	runs 0 front "${HOST[@]}" cat /tmp/x
	equal 'the second command' "$out" here
	TMPNEST_NEST=two runs 1 front "${HOST[@]}" cat /tmp/x
	unset TMPNEST_NEST
	tmpnest evict one two
}

# It may go between the caller's plan and the start: what is left out needs no source.
case_the_claude_directory_is_denied_and_not_missed() {
	runs 0 front "${HOST[@]}" --bind /tmp/no-such-source /tmp/claude sh -c '! ls /tmp/claude 2>/dev/null && echo denied'
	equal 'what it says' "$out" denied
	runs 1 front "${HOST[@]}" --bind /tmp/no-such-source /tmp/claudette true x
	one_message
	contains 'another name' "$err" '/tmp/no-such-source: not there, source of --bind'
}

case_the_claude_directory_is_denied_even_when_the_host_has_it() {
	local made=
	[ -e /tmp/claude ] || { mkdir /tmp/claude && made=yes; }
	runs 0 front "${HOST[@]}" --bind /tmp/claude /tmp/claude --tmpfs /tmp/claude --bind /tmp/claude \
		/tmp/claude --setenv TMPDIR /tmp/claude sh -c '
		! ls /tmp/claude 2>/dev/null && ! mkdir /tmp/claude 2>/dev/null && echo "$TMPDIR" && mktemp -d'
	[ -z "$made" ] || rmdir /tmp/claude
	contains 'TMPDIR' "$out" '/tmp
/tmp/tmp.'
	grep -q 'left out, the name is denied: /tmp/claude' "$TMPNEST_RUNTIME_DIR"/*.log || fail 'the log of the daemon lacks it'
	TMPNEST_VERBOSE=1 runs 0 front "${HOST[@]}" --tmpfs /tmp/claude true x
	contains 'what is said on request' "$err" '/tmp/claude: --tmpfs left out'
}

case_a_socket_of_the_host_cannot_be_reached_but_a_bound_one_can() {
	host_tmp_dir
	local tool=$TT_BUILD/tests/tools/unix-socket
	python3 -c 'import socket,sys,time
for name in "bound", "other":
    s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1] + "/" + name); s.listen(9)
    globals()[name] = s
print("up", flush=True); time.sleep(60)' "$HOST_DIR" >up.log 2>&1 &
	eventually 10 grep -q up up.log
	local try='import socket,sys
s = socket.socket(socket.AF_UNIX)
try: s.connect(sys.argv[1]); print("connected")
except OSError as e: print(e.strerror)'
	# the runtime binds its proxy before the root, which buries it
	runs 0 front --bind "$HOST_DIR/bound" "$HOST_DIR/bound" "${HOST[@]}" python3 -c "$try" "$HOST_DIR/bound"
	equal 'the bound one' "$out" connected
	runs 0 front --bind "$HOST_DIR/bound" "$HOST_DIR/bound" "${HOST[@]}" python3 -c "$try" "$HOST_DIR/other"
	equal 'the other one' "$out" 'No such file or directory'
	runs 0 bwrap "${HOST[@]}" python3 -c "$try" "$HOST_DIR/other"
	equal 'with plain bwrap' "$out" connected
}

# For inside: the paths by which a file of the view can be reached. Every path to the view goes
# through a place where it is mounted, and mountinfo has them all, covered ones too.
ways_to() { # FILE
	printf '%s' "while read -r _ _ _ _ point rest; do
		case \$rest in *'- fuse'*) ;; *) continue ;; esac
		for path in \$point/$1 \$point/tmp/$1; do [ ! -e \$path ] || echo \$path; done
	done </proc/self/mountinfo"
}

case_the_view_is_reached_by_no_other_way() {
	local mark way
	mark=$(unique)
	for way in '--bind / /mnt' "--bind $TMPNEST_RUNTIME_DIR /mnt" "--bind $TT_BASE /mnt" \
		'--bind / /tmp/host' "--bind-try $TMPNEST_RUNTIME_DIR/view /mnt" \
		"--bind-try $TMPNEST_RUNTIME_DIR/view/tmp /mnt"; do
		# shellcheck disable=SC2086
		runs 0 front --bind / / --dev /dev --proc /proc "${SAFE[@]}" $way sh -c "touch /tmp/$mark; $(ways_to "$mark")"
		equal "paths with $way" "$out" "/tmp/$mark"
	done
	runs 1 front "${HOST[@]}" --bind "$TMPNEST_RUNTIME_DIR/view" /mnt true
	one_message
}

case_a_root_that_is_not_the_hosts() {
	local word
	local -a root=()
	mkdir -p root/tmp root/proc bare/proc
	for word in usr bin lib lib64 etc; do
		[ -e "/$word" ] || continue
		root+=(--ro-bind "/$word" "/$word")
		mkdir "root/$word" "bare/$word"
	done
	runs 0 front "${root[@]}" --proc /proc "${SAFE[@]}" sh -c 'touch /tmp/x; ls / /tmp'
	contains 'no root at all' "$out" x
	runs 0 front --ro-bind root / "${root[@]}" --proc /proc "${SAFE[@]}" sh -c 'touch /tmp/x && df /tmp'
	contains 'a root with a /tmp' "$out" tmpnest
	runs 0 front --tmpfs / "${root[@]}" --dev /dev --proc /proc --bind / /host --bind "$TMPNEST_RUNTIME_DIR" /rt "${SAFE[@]}" \
		sh -c "touch /tmp/only-here; $(ways_to only-here)"
	equal 'ways to the view' "$out" /tmp/only-here
	runs 0 front --tmpfs / "${root[@]}" --proc /proc --tmpfs /tmp "${SAFE[@]}" sh -c 'touch /tmp/x && df /tmp'
	contains 'in the place of a tmpfs' "$out" tmpnest
	runs 0 front --ro-bind bare / "${root[@]}" --proc /proc "${SAFE[@]}" ls /
	lacks 'a read-only root without one' "$out" tmp
	one_message
}

case_an_explicit_bind_at_tmp_is_respected_and_said() {
	mkdir mine
	touch mine/marker
	runs 0 front "${HOST[@]}" --bind mine /tmp ls /tmp
	equal 'what is at /tmp' "$out" marker
	one_message
	no_nests
}

case_a_current_directory_that_would_vanish_is_refused() {
	host_tmp_dir
	cd "$HOST_DIR"
	runs 1 front "${HOST[@]}" pwd
	one_message
	contains 'the message' "$err" "$HOST_DIR"
	runs 0 front "${HOST[@]}" --bind "$HOST_DIR" "$HOST_DIR" pwd
	equal 'bound' "$out" "$HOST_DIR"
	runs 0 front "${HOST[@]}" --chdir / pwd
	equal 'with --chdir' "$out" /
}

case_a_program_below_the_hosts_tmp_still_starts() {
	host_tmp_dir
	mkdir -p "$HOST_DIR/vendor/seccomp/x64"
	printf '#!/bin/sh\necho ran "$@"\n' >"$HOST_DIR/vendor/seccomp/x64/apply-seccomp"
	cp "$HOST_DIR/vendor/seccomp/x64/apply-seccomp" "$HOST_DIR/tool"
	chmod +x "$HOST_DIR/tool" "$HOST_DIR/vendor/seccomp/x64/apply-seccomp"
	echo secret >"$HOST_DIR/secret"
	runs 0 front "${HOST[@]}" "$HOST_DIR/tool" a
	equal 'the program' "$out" 'ran a'
	runs 0 front "${HOST[@]}" sh -c "$HOST_DIR/vendor/seccomp/x64/apply-seccomp b; cat $HOST_DIR/secret || echo none"
	equal 'the helper, not what the text names' "$out" 'ran b
none'
}

case_refusals_name_their_reason() {
	local words
	for words in --bogus '--args 99' '--perms 0700 --ro-bind / /' '--overlay-src /usr'; do
		# shellcheck disable=SC2086
		runs 1 front $words true
		one_message
		contains 'what is wrong' "$err" "${words%% *}"
	done
	[ "$TT_ROLE" = user ] || return 0
	for words in --userns --userns2 --userns-block-fd --pidns; do
		runs 1 front "${HOST[@]}" "$words" 9 true x
		one_message
		contains 'the option' "$err" "$words: "
		contains 'the way out' "$err" TMPNEST_VIEW=possible
	done
}

case_without_a_view_on_request() {
	host_tmp_dir
	touch "$HOST_DIR/there"
	TMPNEST_VIEW=never runs 0 front "${HOST[@]}" ls "$HOST_DIR"
	equal 'the host is seen' "$out" there
	equal 'nothing to say' "$err" ''
	no_nests
	printf -- '--chdir\0%s' "$HOST_DIR" >block
	TMPNEST_VIEW=never runs 0 front "${HOST[@]}" --args 9 pwd 9<block
	equal 'words of a block' "$out" "$HOST_DIR"
	TMPNEST_VIEW=possible runs 0 front "${HOST[@]}" ls -A /tmp
	equal 'a line that can have one' "$out" ''
	TMPNEST_VIEW=sometimes runs 1 front "${HOST[@]}" true x
	one_message
	[ "$TT_ROLE" = user ] || return 0
	unshare -Ur sleep 20 &
	eventually 10 eval "[ \"\$(readlink /proc/$!/ns/user)\" != \"\$(readlink /proc/self/ns/user)\" ]"
	TMPNEST_VIEW=possible runs 0 front --ro-bind / / --userns 9 ls "$HOST_DIR" 9<"/proc/$!/ns/user"
	equal 'a line that cannot' "$out" there
	contains 'what is said' "$err" 'without a private /tmp'
	kill $!
}

case_root_without_a_boundary_is_warned() {
	[ "$TT_ROLE" = root ] || skip 'only root keeps capabilities'
	runs 0 front --ro-bind / / --unshare-pid echo x
	one_message
	contains 'the warning' "$err" '--cap-drop ALL'
	runs 0 front --ro-bind / / --unshare-pid --cap-drop ALL echo x
	equal 'no warning' "$err" ''
}

case_a_long_profile_in_a_block() {
	mkdir deny
	local i
	for i in $(seq 1200); do
		: >"deny/$i"
		printf -- '--ro-bind\0/dev/null\0%s\0' "$PWD/deny/$i"
	done >block
	runs 0 front --ro-bind / / --bind "$PWD" "$PWD" --args 9 --dev /dev --proc /proc "${SAFE[@]}" \
		sh -c '! echo x 2>/dev/null >deny/1200 && echo y >free && touch /tmp/x && echo held' 9<block
	equal 'the denies' "$out" held
	[ -s free ] || fail 'the workspace was not writable'
}

case_mounts_below_tmp_leave_no_litter_in_the_nest() {
	host_tmp_dir
	mkdir "$HOST_DIR/ws"
	export TMPNEST_NEST=litter
	for _ in 1 2 3; do
		runs 0 front "${HOST[@]}" --bind "$HOST_DIR/ws" "$HOST_DIR/ws" --ro-bind /dev/null "$HOST_DIR/f" \
			--tmpfs /tmp/t sh -c "touch $HOST_DIR/ws/made /tmp/t/x"
	done
	unset TMPNEST_NEST
	[ -e "$HOST_DIR/ws/made" ] || fail 'the workspace was not bound'
	empty() { [ -z "$(TMPNEST_NEST=litter front "${HOST[@]}" find /tmp -mindepth 1)" ]; }
	eventually 10 empty
	tmpnest evict --force litter
}

# More than a thousand mount points of the view itself, each a pin of its own.
case_a_long_profile_below_tmp() {
	local i
	for i in $(seq 1500); do
		printf -- '--ro-bind\0/dev/null\0%s\0' "/tmp/project/with-a-path-of-usual-length/deny-$i"
	done >block
	export TMPNEST_NEST=long
	runs 0 front "${HOST[@]}" --args 9 sh -c '
		! echo x 2>/dev/null >/tmp/project/with-a-path-of-usual-length/deny-1500 &&
			ls /tmp/project/with-a-path-of-usual-length | wc -l' 9<block
	equal 'mount points' "$out" 1500
	empty() { [ -z "$(front "${HOST[@]}" find /tmp -mindepth 1)" ]; }
	eventually 10 empty
	tmpnest evict --force long
}

# A second sandbox of the nest works at what the first one has mounted read-only.
ATTACK='import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, function, *words):
    try:
        function(*words)
        print("done:", what)
    except OSError as error:
        if error.errno != 16:
            print("error", error.errno, what)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "exchange")
os.mkdir("/tmp/other")
open("/tmp/file", "w").close()
for path, remove in (("/tmp/a/b/deny", os.unlink), ("/tmp/a/b/dir", os.rmdir)):
    attempt("remove " + path, remove, path)
for path in "/tmp/a/b/deny", "/tmp/a/b/dir", "/tmp/a/b", "/tmp/a":
    attempt("rename " + path, os.rename, path, "/tmp/moved")
    attempt("into a directory " + path, os.rename, path, "/tmp/other/x")
    attempt("exchange " + path, exchange, path, "/tmp/other")
    attempt("exchanged with " + path, exchange, "/tmp/other", path)
attempt("over the file", os.rename, "/tmp/file", "/tmp/a/b/deny")
attempt("over the directory", os.rename, "/tmp/other", "/tmp/a/b/dir")'

case_a_deny_below_tmp_holds_against_a_second_sandbox() {
	export TMPNEST_NEST=pins
	mkfifo go
	background first "$TT_BUILD/launcher/tmpnest-bwrap" "${HOST[@]}" --ro-bind /dev/null /tmp/a/b/deny --ro-bind /etc /tmp/a/b/dir \
		--bind "$PWD" "$PWD" sh -c "echo up; cat $PWD/go
			for name in deny dir/x; do echo evil 2>/dev/null >/tmp/a/b/\$name && echo written \$name; done; echo end"
	wait_for_line first up
	runs 0 front "${HOST[@]}" python3 -c "$ATTACK"
	equal 'what the second one could do' "$out" ''
	echo >go
	wait_for_line first end
	lacks 'the first one' "$(cat first.log)" written
	runs 0 front "${HOST[@]}" sh -c 'mkdir -p /tmp/a/b && mv /tmp/a /tmp/z && ls -A /tmp | xargs'
	equal 'afterwards the names are free' "$out" 'file other z'
	tmpnest evict --force pins
}

# The same with a shared directory at /tmp, as it is without us: the test above can fail.
case_such_a_deny_does_not_hold_in_a_shared_directory() {
	mkdir shared
	mkfifo go
	background first bwrap "${HOST[@]}" --bind "$PWD/shared" /tmp --ro-bind /dev/null /tmp/a/b/deny \
		--bind "$PWD" "$PWD" sh -c "echo up; cat $PWD/go; echo evil 2>/dev/null >/tmp/a/b/deny && echo written; echo end"
	wait_for_line first up
	bwrap "${HOST[@]}" --bind "$PWD/shared" /tmp sh -c 'mv /tmp/a /tmp/z && mkdir -p /tmp/a/b'
	echo >go
	wait_for_line first end
	contains 'the first one' "$(cat first.log)" written
}

# A link that a command leaves would send the next one's mount elsewhere.
case_a_link_in_the_nest_is_no_way_to_a_mount_point() {
	export TMPNEST_NEST=links
	runs 0 front "${HOST[@]}" sh -c 'mkdir /tmp/real && ln -s real /tmp/a && ln -s /etc /tmp/b && ln -s nowhere /tmp/c'
	local path
	for path in /tmp/a/deny /tmp/b /tmp/c /tmp/c/deny; do
		runs 1 front "${HOST[@]}" --ro-bind /dev/null "$path" true x
		one_message
		contains 'the place' "$err" "$path"
	done
	tmpnest evict --force links
}

# What runtimes mount below /tmp, two hundred times, in lines that end in all ways.
case_two_hundred_sandboxes_leave_no_litter() {
	host_tmp_dir
	mkdir -p "$HOST_DIR/ws/.git" "$HOST_DIR/empty"
	touch "$HOST_DIR/sock"
	export TMPNEST_NEST=many
	local i line=("${HOST[@]}" --bind "$HOST_DIR/ws" "$HOST_DIR/ws" --ro-bind "$HOST_DIR/ws/.git" "$HOST_DIR/ws/.git"
		--ro-bind /dev/null "/tmp/deep/er/file" --ro-bind "$HOST_DIR/empty" "/tmp/deep/dir" --tmpfs "/tmp/deep/fs")
	for i in $(seq 200); do
		case $((i % 4)) in
		0) front "${line[@]}" --bind-try /nowhere /tmp/nowhere sh -c "echo x >/tmp/made-$i" & ;;
		1) front --bind "$HOST_DIR/sock" "$HOST_DIR/sock" "${line[@]}" sh -c 'exit 0' & ;;
		2) front "${line[@]}" --ro-bind /dev/null "/tmp/only/in/$i" sh -c 'kill -KILL $$' & ;;
		3) front "${line[@]}" --dev "/tmp/dev-$i" /nowhere/at/all & ;;
		esac 2>>many.err
		[ $((i % 8)) -ne 0 ] || wait
	done
	wait
	left() { front "${HOST[@]}" find /tmp -mindepth 1 ! -name 'made-*'; }
	clean() { [ -z "$(left)" ]; }
	eventually 10 clean
	equal 'what the commands made' "$(front "${HOST[@]}" ls -A /tmp | wc -l)" 50
	tmpnest evict --force many
}

case_var_tmp_only_on_request() {
	runs 1 front "${HOST[@]}" touch /var/tmp/x
	TMPNEST_VAR_TMP=1 runs 0 front "${HOST[@]}" sh -c 'touch /var/tmp/x && ls /var/tmp'
	equal '/var/tmp' "$out" x
}

# The lines of LibreChat's worker: a scratch directory of its own, nothing of ours set.
case_a_scratch_directory_names_the_nest_and_ends_it() {
	host_tmp_dir
	unset TMPNEST_NEST_FROM
	local a=$HOST_DIR/librechat-code-srt-a b=$HOST_DIR/librechat-code-srt-b
	mkdir "$a" "$b"
	runs 0 front "${HOST[@]}" --bind "$a" "$a" sh -c "echo from-a >/tmp/x; touch $a/scratch"
	runs 0 front "${HOST[@]}" --bind "$b" "$b" --bind "$b" "$b" sh -c 'cat /tmp/x 2>/dev/null || echo none'
	equal 'the other worker' "$out" none
	runs 0 front "${HOST[@]}" --bind "$a" "$a" cat /tmp/x
	equal 'the next command of the same worker' "$out" from-a
	[ -e "$a/scratch" ] || fail 'the scratch directory was not writable'
	case $(nest_names | xargs) in
	*librechat-code-srt-a-*) ;;
	*) fail "the nests are: $(nest_names | xargs)" ;;
	esac
	rm -r "$a"
	gone() { ! nest_names | grep -q srt-a-; }
	eventually 5 gone
	nest_names | grep -q srt-b- || fail 'the other nest went too'
	rm -r "$b"
	eventually 5 no_nests
}

# As in a unit with PrivateTmp=: the path of the scratch directory means nothing to the daemon.
case_a_scratch_directory_that_the_daemon_cannot_see() {
	unset TMPNEST_NEST_FROM
	tmpnest daemon status >/dev/null || tmpnest daemon start
	mkfifo go
	background worker unshare --mount --propagation private bash -c '
		mount -t tmpfs tnfront /tmp
		mkdir /tmp/librechat-code-srt-p
		for text in "echo shared >/tmp/x" "cat /tmp/x"; do
			"$@" --bind /tmp/librechat-code-srt-p /tmp/librechat-code-srt-p sh -c "$text"
		done
		cat go
		rmdir /tmp/librechat-code-srt-p
		echo removed
		cat go' - "$TT_BUILD/launcher/tmpnest-bwrap" "${HOST[@]}"
	wait_for_line worker shared
	sleep 2.5 # it is looked at each second: not seeing the path must decide nothing
	nest_names | grep -q srt-p- || fail 'the nest went while its directory was there'
	echo >go
	wait_for_line worker removed
	eventually 4 no_nests
	echo >go
}

case_configuration_for_a_scrubbed_environment() {
	mkdir -p config/tmpnest
	printf '[nest]\nname = conf\nquota = 1M\ndeny = /tmp/no\n' >config/tmpnest/tmpnest.conf
	runs 0 env XDG_CONFIG_HOME="$PWD/config" "$TT_BUILD/launcher/tmpnest-bwrap" "${HOST[@]}" \
		sh -c '! mkdir /tmp/no 2>/dev/null; df --output=size /tmp | tail -1'
	equal 'quota in KiB' "$(xargs <<<"$out")" 1024
	contains 'the nests' " $(nest_names | xargs) " ' conf '
	printf '[nest]\nquota = much\n' >config/tmpnest/tmpnest.conf
	runs 1 env XDG_CONFIG_HOME="$PWD/config" "$TT_BUILD/launcher/tmpnest-bwrap" "${HOST[@]}" true x
	one_message
	tmpnest evict conf
}

main "$@"
