#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tmpnest-bwrap as the bwrap of an unmodified sandbox-runtime: as a library, with the options
# of LibreChat's code interpreter, and by its `srt` program.
. "$(dirname "$0")/../lib.sh"

limit twelve_hundred_denies 120
limit the_claude_directories_are_neither_read_nor_written 120
only user twelve_hundred_denies bwrap_path_in_the_options # the same for root

# The runtime's temporary files, the workers' scratch directories and other programs' sockets lie
# in $HOST_TMP, below the host's /tmp; $WORKSPACE is where the commands run.
prepare() {
	need node nodejs
	need rg ripgrep
	need socat socat
	[ -d "$TT_NODE_MODULES/@anthropic-ai/sandbox-runtime" ] || {
		[ -z "${TT_STRICT:-}" ] || fail 'sandbox-runtime is not installed'
		skip 'sandbox-runtime could not be installed from npm'
	}
	node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' ||
		skip "sandbox-runtime needs a newer Node.js than $(node --version)"
	unset TMPNEST_NEST TMPNEST_NEST_FROM CLAUDE_CODE_TMPDIR CLAUDE_TMPDIR CLAUDE_CONFIG_DIR
	HOST_TMP=$(mktemp -d /tmp/tnsrt-XXXXXX)
	MADE=()
	export TMPDIR=$HOST_TMP
	trap 'STATUS=$?; remove_made; (exit "$STATUS"); end_case' EXIT
	WORKSPACE=$TT_WORK/workspace PLAIN_PATH=$PATH
	mkdir "$WORKSPACE" "$TT_WORK/bin"
	ln -s "$TT_BUILD/launcher/tmpnest-bwrap" "$TT_WORK/bin/bwrap"
	export PATH=$TT_WORK/bin:$PATH
	cd "$WORKSPACE"
}

remove_made() {
	local dir
	rm -rf "$HOST_TMP"
	for dir in "${MADE[@]}"; do
		rm -rf --one-file-system "$dir"
	done
}

# make_missing DIR FILE: a directory of the host, and a file in it; gone with the case.
make_missing() {
	local dir=$1
	while [ ! -d "$dir" ] && [ ! -d "$(dirname "$dir")" ]; do dir=$(dirname "$dir"); done
	[ ! -d "$1" ] || [ -w "$1" ] || skip "$1 is there, and not ours to put a file in"
	[ -d "$1" ] && MADE+=("$1/$2") || MADE+=("$dir")
	mkdir -p "$1"
	echo "from another worker" >"$1/$2"
	chmod a+r "$1/$2"
}

scratch() { # NAME: the scratch directory of a worker, in $SCRATCH
	SCRATCH=$HOST_TMP/librechat-code-srt-$1
	mkdir "$SCRATCH"
}

worker() { capture node "$TT_TESTS/programs/sandbox-runtime.mjs" "$@"; }

# What the worker's commands have printed, without the statuses, must be this.
says() {
	equal 'statuses' "$(grep '^exit ' <<<"$out" | sort -u)" 'exit 0'
	equal 'what the commands print' "$(grep -v '^exit ' <<<"$out")" "$1"
}

nest_of() { nest_names | grep "^librechat-code-srt-$1-" || true; }
nest_is_gone() { [ -z "$(nest_of "$1")" ]; }

case_commands_of_a_worker_share_tmp_and_workers_do_not() {
	prepare
	scratch a
	worker "$SCRATCH" 'echo written >/tmp/x' 'cat /tmp/x; touch "$TMPDIR/in-scratch"; case $(mktemp) in "$TMPDIR"/*) echo scratch ;; esac'
	says 'written
scratch'
	[ -e "$SCRATCH/in-scratch" ] || fail 'the scratch directory is not the one of the host'
	[ ! -e /tmp/x ] || [ "$(cat /tmp/x)" != written ] || fail 'the host sees /tmp/x'
	scratch b
	worker "$SCRATCH" 'cat /tmp/x 2>/dev/null || echo none'
	says none
	SCRATCH=$HOST_TMP/librechat-code-srt-a
	worker "$SCRATCH" 'cat /tmp/x; touch /tmp/y'
	says written
	[ -n "$(nest_of a)" ] && [ -n "$(nest_of b)" ] || fail "nests: $(nest_names | xargs)"
	rm -r "$SCRATCH"
	eventually 4 nest_is_gone a
	[ -n "$(nest_of b)" ] || fail 'the nest of the other worker went too'
	worker "$HOST_TMP/librechat-code-srt-b" @remove
	eventually 4 nest_is_gone b
	eventually 4 trash_is_empty
}

SERVE='import socket
s = socket.socket(socket.AF_UNIX)
s.bind("/tmp/sock")
s.listen()
c = s.accept()[0]
c.sendall(b"hello from the first command\n")'
CONNECT='import socket, sys, time
for i in range(1000):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect("/tmp/sock")
        break
    except (FileNotFoundError, ConnectionRefusedError):
        time.sleep(0.02)
print(s.recv(99).decode(), end="")'

case_a_second_command_connects_to_the_first_ones_socket() {
	prepare
	scratch a
	printf '%s\n' "$SERVE" >serve.py
	printf '%s\n' "$CONNECT" >connect.py
	worker "$SCRATCH" '& python3 serve.py' 'python3 connect.py'
	says 'hello from the first command'
}

case_another_nest_and_the_host_do_not_connect() {
	prepare
	local tool=$TT_BUILD/tests/tools/unix-socket name path
	name=$(unique s).sock
	scratch a
	background server node "$TT_TESTS/programs/sandbox-runtime.mjs" "$SCRATCH" "$tool listen /tmp/$name"
	wait_for_line server listening
	worker "$SCRATCH" "$tool connect /tmp/$name"
	says 'got: hello'
	for path in "/tmp/$name" "/var/tmp/$name"; do
		runs 1 "$tool" connect "$path"
		contains 'why the host does not' "$err" 'No such file'
	done
	scratch b
	worker "$SCRATCH" "$tool connect /tmp/$name" "$tool connect /var/tmp/$name"
	equal 'in another nest' "$(xargs <<<"$out")" 'exit 1 exit 1'
	equal 'why not' "$(grep -c '^connect .*: No such file' <<<"$err")" 2
	# it has listened all the time
	worker "$HOST_TMP/librechat-code-srt-a" "$tool connect /tmp/$name"
	says 'got: hello'
}

case_mongodb_memory_server_with_its_defaults() {
	prepare
	[ -d "$TT_NODE_MODULES/mongodb-memory-server" ] || skip 'mongodb-memory-server could not be installed from npm'
	export MONGOMS_SYSTEM_BINARY=${MONGOMS_SYSTEM_BINARY:-$TT_TESTS/programs/mongod-standin}
	MONGOMS_VERSION=$("$MONGOMS_SYSTEM_BINARY" --version | sed -n 's/^db version v//p')
	export MONGOMS_VERSION
	scratch a
	worker "$SCRATCH" "node $TT_TESTS/programs/memory-server.mjs"
	says 'found nest with 3 legs among 3
mode 140700
ping 1
socket gone'
	# without us
	PATH=$PLAIN_PATH worker "$SCRATCH" "node $TT_TESTS/programs/memory-server.mjs"
	contains 'why it fails in the runtime alone' "$out$err" 'Mongod internal error (fassert() failure)'
}

# Both names are there on the host, with a file of somebody else in them.
CLAUDE='for dir in /tmp/claude /private/tmp/claude; do
	ls -A $dir 2>/dev/null
	cat $dir/other 2>/dev/null
	mkdir -p $dir 2>/dev/null && touch $dir/mine 2>/dev/null && echo "written $dir"
	mv $dir $dir-moved 2>/dev/null && echo "moved $dir"
done
echo done'
case_the_claude_directories_are_neither_read_nor_written() {
	prepare
	scratch a
	exec 9<"$TT_TESTS" && flock 9 # the same case of the other role makes them too
	worker "$SCRATCH" "$CLAUDE"
	says 'done'
	make_missing /tmp/claude other
	[ "$TT_ROLE" = user ] && [ ! -w /private/tmp/claude ] || make_missing /private/tmp/claude other
	worker "$SCRATCH" "$CLAUDE"
	says 'done'
	[ ! -e /tmp/claude/mine ] && [ ! -e /private/tmp/claude/mine ] || fail 'written on the host'
	PATH=$PLAIN_PATH worker "$SCRATCH" "$CLAUDE"
	contains 'what the runtime alone lets through' "$out" 'from another worker'
}

case_tmux_and_ssh_agent_of_the_host_are_out_of_reach() {
	prepare
	need tmux tmux
	need ssh-agent openssh-client
	scratch a
	unset TMUX
	tmux -f /dev/null -S "$HOST_TMP/tmux.sock" new-session -d -s host 'exec sleep 100'
	background agent ssh-agent -D -a "$HOST_TMP/agent.sock"
	eventually 10 test -S "$HOST_TMP/agent.sock"
	local escape="tmux -S $HOST_TMP/tmux.sock new-window -d 'touch $TT_WORK/escaped' 2>/dev/null
		SSH_AUTH_SOCK=$HOST_TMP/agent.sock ssh-add -l 2>&1 | grep -o 'no identities' || true"
	worker "$SCRATCH" "$escape"
	says ''
	PATH=$PLAIN_PATH worker "$SCRATCH" "$escape"
	says 'no identities'
	eventually 10 test -e "$TT_WORK/escaped"
	rm "$TT_WORK/escaped"
	worker "$SCRATCH" "$escape"
	says ''
	tmux -S "$HOST_TMP/tmux.sock" display-message -p up # still there to be asked
	tmux -S "$HOST_TMP/tmux.sock" kill-server
	[ ! -e "$TT_WORK/escaped" ] || fail 'a window of the host ran the command'
}

# A web server of the host; its port in $PORT.
web_server() {
	mkdir "$TT_WORK/www"
	echo 'page of the host' >"$TT_WORK/www/index.html"
	background web python3 -uc 'import http.server, functools, sys
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1]))
print("port", s.server_port, flush=True)
s.serve_forever()' "$TT_WORK/www"
	wait_for_line web port
	PORT=$(sed -n 's/^port //p' "$TT_WORK/web.log")
}

case_the_proxy_lets_through_refuses_and_is_the_only_way() {
	prepare
	need curl curl
	scratch a
	web_server
	local get='curl -s -m 20 --noproxy "" -x "$HTTP_PROXY"' plain
	local commands=("$get http://localhost:$PORT/"
		"$get -o /dev/null -w '%{http_code}\\n' http://denied.example:$PORT/"
		"curl -s -m 5 --noproxy '*' http://127.0.0.1:$PORT/ || echo direct \$?")
	PATH=$PLAIN_PATH worker --allow localhost "$SCRATCH" "${commands[@]}"
	plain=$out
	worker --allow localhost "$SCRATCH" "${commands[@]}"
	equal 'as with the runtime alone' "$out" "$plain"
	says 'page of the host
403
direct 7'
}

case_the_seccomp_helper() {
	prepare
	scratch a
	local try='touch /tmp/x && python3 -c "import socket
try:
    socket.socket(socket.AF_UNIX)
    print(\"a socket\")
except PermissionError:
    print(\"no socket\")"; rm /tmp/x'
	worker "$SCRATCH" "$try"
	says 'a socket'
	worker --no-sockets "$SCRATCH" "$try"
	says 'no socket'
	# the runtime is installed below the host's /tmp
	local helper=$HOST_TMP/srt/vendor/seccomp/x64/apply-seccomp
	install -D "$TT_NODE_MODULES/@anthropic-ai/sandbox-runtime/vendor/seccomp/$(node -p process.arch)/apply-seccomp" "$helper"
	worker --no-sockets --helper "$helper" "$SCRATCH" "$try"
	says 'no socket'
}

case_the_runtime_cleans_up() {
	prepare
	scratch a
	worker --deny-write "$WORKSPACE/absent/dir/" --deny-write "$HOST_TMP/absent" --deny-write /tmp/absent-too "$SCRATCH" \
		'touch /tmp/x made' 'true'
	equal 'statuses' "$(xargs <<<"$out")" 'exit 0 exit 0'
	equal 'the workspace' "$(ls -A "$WORKSPACE" | xargs)" made
	equal "the runtime's temporary files" "$(ls -A "$HOST_TMP" | xargs)" librechat-code-srt-a
	seen() {
		bwrap --ro-bind / / --bind "$SCRATCH" "$SCRATCH" --dev /dev --proc /proc --unshare-user --unshare-pid --cap-drop ALL \
			find /tmp -mindepth 1 | sort | xargs
	}
	settled() { [ "$(seen)" = "$HOST_TMP $SCRATCH /tmp/x" ]; }
	eventually 10 settled
}

case_twelve_hundred_denies() {
	prepare
	scratch a
	mkdir many many/"$(printf 'd%.0s' {1..100})"
	local dir=$WORKSPACE/many/$(ls many) i
	for i in $(seq 1200); do : >"$dir/$i"; done
	worker --many-denies "$dir" "$SCRATCH" \
		"touch /tmp/x free && cat /proc/\$PPID/cmdline /proc/1/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o -- '--args' | head -1
		for i in 1 600 1200; do echo x 2>/dev/null >'$dir/'\$i && echo written; done; echo held"
	contains 'the denies' "$out" held
	lacks 'the denies' "$out" written
	equal 'the files' "$(find "$dir" -type f -size +0 | wc -l)" 0
	contains 'a block of words was used' "$out" --args
}

case_bwrap_path_in_the_options() {
	prepare
	scratch a
	PATH=$PLAIN_PATH worker --bwrap "$TT_BUILD/launcher/tmpnest-bwrap" "$SCRATCH" 'df --output=source /tmp | tail -1'
	says tmpnest
}

# The program of the package, as a user has it in a shell.
case_srt() {
	prepare
	local srt=(node "$TT_NODE_MODULES/@anthropic-ai/sandbox-runtime/dist/cli.js" -s settings.json)
	printf '{"network": {"allowedDomains": [], "deniedDomains": [], "allowAllUnixSockets": true},
		"filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}' >settings.json
	runs 0 "${srt[@]}" -c 'df --output=source /tmp | tail -1; echo x >/tmp/x; cat /tmp/x; mktemp'
	equal 'an ephemeral nest' "$(grep -v ^/tmp/tmp. <<<"$out" | xargs)" 'tmpnest x'
	contains 'where mktemp makes its file' "$out" '/tmp/tmp.'
	eventually 10 no_nests
	export TMPNEST_NEST=srt TMPNEST_QUOTA=2M
	runs 0 "${srt[@]}" -c 'echo first >/tmp/x; exit 0'
	runs 7 "${srt[@]}" -c 'cat /tmp/x; df --output=size /tmp | tail -1; exit 7'
	equal 'the second command, the quota' "$(xargs <<<"$out")" 'first 2048'
	TMPNEST_NEST=other runs 1 "${srt[@]}" cat /tmp/x
	tmpnest evict srt other
}

main "$@"
