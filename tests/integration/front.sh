#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tmpnest-bwrap: lines made by others, unchanged, get a private /tmp.
. "$(dirname "$0")/../lib.sh"

export TMPNEST_NEST_FROM=none
unset TMPNEST_NEST TMPDIR
front() { "$TT_BUILD/launcher/tmpnest-bwrap" "$@"; }
SAFE=(--unshare-user --unshare-pid --cap-drop ALL)
HOST=(--ro-bind / / --dev /dev --proc /proc "${SAFE[@]}")

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

case_the_claude_directory_is_denied_even_when_the_host_has_it() {
	local made=
	[ -e /tmp/claude ] || { mkdir /tmp/claude && made=yes; }
	runs 0 front "${HOST[@]}" --bind /tmp/claude /tmp/claude --tmpfs /tmp/claude --bind /tmp/claude \
		/tmp/claude --setenv TMPDIR /tmp/claude sh -c '
		! ls /tmp/claude 2>/dev/null && ! mkdir /tmp/claude 2>/dev/null && echo "$TMPDIR" && mktemp -d'
	[ -z "$made" ] || rmdir /tmp/claude
	contains 'TMPDIR' "$out" '/tmp
/tmp/tmp.'
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

case_the_view_is_reached_by_no_other_way() {
	local mark look
	mark=$(unique)
	look="find / -path /proc -prune -o -path /usr -prune -o -name $mark -print 2>/dev/null || true"
	for way in '--bind / /mnt' "--bind $TMPNEST_RUNTIME_DIR /mnt" "--bind $TT_BASE /mnt" \
		'--bind / /tmp/host' "--bind-try $TMPNEST_RUNTIME_DIR/view /mnt" \
		"--bind-try $TMPNEST_RUNTIME_DIR/view/tmp /mnt"; do
		# shellcheck disable=SC2086
		runs 0 front --bind / / --dev /dev --proc /proc "${SAFE[@]}" $way sh -c "touch /tmp/$mark; $look"
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
	done
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
