#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What operators see of a nest's content: files, du, cat, cp, export.
. "$(dirname "$0")/../lib.sh"

long a_directory_of_a_million_entries
limit a_directory_of_a_million_entries 1800
limit a_directory_of_two_thousand_entries 400 # on a busy machine

# A nest with one of everything, and names that are hostile to a terminal.
make_zoo() { # NAME
	tmpnest run --nest "$1" -- sh -ec '
		cd /tmp
		mkdir -p d/e mode0
		echo hi >d/e/f
		ln d/e/f hard
		setfattr -n user.note -v "some value" d/e/f 2>/dev/null || true
		chmod 0640 d/e/f
		printf abc >"$(printf "a\nb\033[31m\377\\\\c")"
		ln -s /etc/passwd link
		ln -s /etc linkd
		mkfifo fifo
		truncate -s 10G sparse
		printf abc | dd of=sparse bs=1 seek=100000000 conv=notrunc 2>/dev/null
		echo z >mode0/z
		chmod 0 mode0
		echo v >/var/tmp/v'
	eventually 5 nest_has "$1" state idle
}

case_files_shows_everything_and_escapes_names() {
	make_zoo zoo
	runs 0 tmpnest files zoo
	contains 'the escaped name' "$out" 'a\x0ab\x1b[31m\xff\\c'
	contains 'a link' "$out" 'link -> /etc/passwd'
	equal 'lines' "$(wc -l <<<"$out")" 8
	equal 'control characters' "$(tr -d '[:print:]\n' <<<"$out" | wc -c)" 0
	runs 0 tmpnest files zoo --recursive --json
	equal 'paths' "$(json 'sorted(e["path"] for e in d)' <<<"$out")" \
		'["a\nb\u001b[31m\\xff\\\\c", "d", "d/e", "d/e/f", "fifo", "hard", "link", "linkd", "mode0", "mode0/z", "sparse"]'
	equal 'one entry' "$(json '[[e["type"], e["size"], e["links"], e["mode"]] for e in d if e["path"] == "d/e/f"]' <<<"$out")" \
		'[["file", 3, 2, 416]]'
	runs 0 tmpnest files zoo /var/tmp
	contains 'the other subtree' "$out" v
	runs 1 tmpnest files zoo linkd
	one_message
	runs 1 tmpnest files zoo nothing
	runs 3 tmpnest files nothing
	runs 2 tmpnest files
	tmpnest evict zoo
}

case_du_shows_the_largest_first() {
	tmpnest run --nest big -- sh -ec '
		cd /tmp
		mkdir sub
		head -c 300000 /dev/zero >sub/inner
		head -c 200000 /dev/zero >middle
		echo x >small
		head -c 100000 /dev/zero >/var/tmp/other'
	runs 0 tmpnest du big --json
	equal 'entries' "$(json '[[e["name"], e["bytes"]] for e in d["entries"]]' <<<"$out")" \
		'[["sub", 303104], ["middle", 200704], ["small", 4096]]'
	equal 'files' "$(json '[e["path"] for e in d["files"]]' <<<"$out")" '["sub/inner", "middle", "small"]'
	equal 'sum' "$(json '[d["bytes"], d["inodes"], d["complete"]]' <<<"$out")" '[507904, 4, true]'
	runs 0 tmpnest du big --top 1
	contains 'the rest' "$out" 'and 2 smaller ones'
	runs 0 tmpnest du big --files
	contains 'by path' "$out" sub/inner
	runs 0 tmpnest du big /var/tmp --json
	equal 'the other subtree' "$(json 'd["bytes"]' <<<"$out")" 102400
	runs 2 tmpnest du big --top 0
	tmpnest evict big
}

held_bytes() { tmpnest du "$1" --json | json 'd["held_bytes"]'; }
held_bytes_are() { [ "$(held_bytes "$1")" = "$2" ]; }

case_du_counts_what_is_deleted_but_held() {
	background holder tmpnest run --nest held -- sh -c '
		head -c 1000000 /dev/zero >/tmp/gone; exec 7</tmp/gone; rm /tmp/gone; echo ready; sleep 60'
	wait_for_line holder ready
	equal 'held' "$(held_bytes held)" 1003520
	runs 0 tmpnest du held
	contains 'the words' "$out" 'deleted, still in use'
	end_background
	eventually 10 held_bytes_are held 0
	tmpnest evict held
}

case_cat_reads_files_only() {
	make_zoo zoo
	runs 0 tmpnest cat zoo d/e/f
	equal 'content' "$out" hi
	runs 0 tmpnest cat zoo:/tmp/hard
	runs 0 tmpnest cat zoo "$(printf 'a\nb\033[31m\377\\c')"
	equal 'content' "$out" abc
	local path
	for path in link linkd/passwd fifo d d/e/../../../../etc/passwd ../../etc/passwd /etc/passwd nothing; do
		runs 1 tmpnest cat zoo "$path"
		one_message
		equal "what came of $path" "$out" ''
	done
	equal 'bytes of the sparse file' "$(tmpnest cat zoo sparse | head -c 100000004 | tail -c 4 | od -An -c | tr -d ' ')" 'abc\0'
	runs 2 tmpnest cat zoo
	# on a terminal what could steer it is escaped
	need script bsdutils
	runs 0 tmpnest run --nest zoo -- sh -c 'printf "\033]0;title\007 \302\233 end" >/tmp/esc'
	equal 'on a terminal' "$(script -qec 'tmpnest cat zoo esc' /dev/null </dev/null | tr -d '\r')" '\x1b]0;title\x07 \xc2\x9b end'
	tmpnest evict zoo
}

case_cp_copies_trees() {
	make_zoo zoo
	runs 1 tmpnest cp zoo:/tmp tree
	contains 'the fifo' "$err" 'fifo'
	equal 'what came' "$(cd tree && find . -mindepth 1 -printf '%y %P\0' | LC_ALL=C sort -z | tr -d '\000\n\033\377')" \
		'd dd d/ed mode0f ab[31m\cf d/e/ff hardf mode0/zf sparsel linkl linkd'
	equal 'a link is a link' "$(readlink tree/link)" /etc/passwd
	equal 'size' "$(stat -c %s tree/sparse)" 10737418240
	at_most 'blocks of the sparse file' "$(stat -c %b tree/sparse)" 64
	equal 'content' "$(cat tree/d/e/f)" hi
	equal 'mode' "$(stat -c %a tree/d/e/f)" 640
	mkdir into
	runs 0 tmpnest cp zoo:sparse into --json
	equal 'in a directory' "$(stat -c %s into/sparse)" 10737418240
	runs 0 tmpnest cp zoo:mode0/z single
	equal 'one file' "$(cat single)" z
	# nothing is written through a link
	ln -s "$PWD/victim" into/z
	runs 1 tmpnest cp zoo:mode0/z into
	[ ! -e victim ] || fail 'cp followed a link'
	runs 1 tmpnest cp zoo:link other
	runs 2 tmpnest cp zoo other
	runs 3 tmpnest cp nothing:x other
	chmod -R u+rwX tree
	tmpnest evict zoo
}

case_export_writes_a_tar_archive() {
	need tar tar
	make_zoo zoo
	"$TT_PYTHON" -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("s")'
	runs 0 tmpnest run --nest zoo -- "$TT_PYTHON" -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("/tmp/sock")'
	runs 0 tmpnest export zoo -o zoo.tar --json
	equal 'the summary' "$(json '[d["entries"], d["sockets_left_out"], d["lost"]]' <<<"$out")" '[12, 1, 0]'
	contains 'the socket is named' "$err" 'sock: a socket'
	at_most 'size of the archive' "$(stat -c %s zoo.tar)" 65536
	mkdir x
	tar --xattrs --no-same-owner -C x -xf zoo.tar --exclude tmp/mode0
	equal 'the hard link' "$(stat -c %i x/tmp/hard)" "$(stat -c %i x/tmp/d/e/f)"
	equal 'the fifo' "$(stat -c %F x/tmp/fifo)" fifo
	equal 'the link' "$(readlink x/tmp/linkd)" /etc
	equal 'the sparse file' "$(stat -c %s x/tmp/sparse)" 10737418240
	at_most 'its blocks' "$(stat -c %b x/tmp/sparse)" 64
	equal 'its data' "$(tail -c +100000001 x/tmp/sparse | head -c 3)" abc
	equal 'the odd name' "$(cat "$(printf 'x/tmp/a\nb\033[31m\377\\c')")" abc
	equal 'the other subtree' "$(cat x/var/tmp/v)" v
	equal 'the attribute' "$("$TT_PYTHON" -c 'import os; print(os.getxattr("x/tmp/d/e/f", "user.note").decode())')" 'some value'
	equal 'a part' "$(tmpnest export zoo d | tar tf - | LC_ALL=C sort | xargs)" 'tmp/d/e tmp/d/e/f'
	equal 'one file' "$(tmpnest export zoo:/tmp/mode0/z | tar xOf -)" z
	runs 1 tmpnest export zoo -o /no/such/dir/x
	one_message
	runs 2 tmpnest export zoo --json
	tmpnest evict zoo
}

case_nothing_escapes_while_directories_are_swapped() {
	mkdir outside
	echo secret-of-the-host >outside/file
	background swapper tmpnest run --nest swap --bind "$PWD/outside" -- sh -c 'outside=$1
		cd /tmp; mkdir -p real deep/a/b/c; echo inside >real/file; cp -r real deep/a/b/c; echo ready
		while :; do
			mv real kept; ln -s "$outside" real; rm real; mv kept real
			mv deep/a/b/c moved; ln -s "$outside" deep/a/b/c; rm deep/a/b/c; mv moved deep/a/b/c
		done' sh "$PWD/outside"
	wait_for_line swapper ready
	local i
	for i in $(seq 10); do
		tmpnest cat swap real/file 2>/dev/null || true
		tmpnest export swap 2>/dev/null | tar xOf - 2>/dev/null || true
		tmpnest files swap -R 2>/dev/null || true
		tmpnest cp swap:/tmp "copy$i" >/dev/null 2>&1 || true
		tmpnest du swap --json || true
	done >seen
	grep -q inside seen || fail 'nothing was ever read'
	! grep -q secret-of-the-host seen || fail 'a file of the host was read'
	! grep -rq secret-of-the-host copy* || fail 'a file of the host was copied'
	end_background
	tmpnest evict --force swap
}

case_two_users_see_only_their_own() {
	[ "$TT_ROLE" = root ] || skip 'one user cannot make files of another'
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE"
	tmpnest daemon start
	runs 0 tmpnest run --nest mine -- sh -c 'echo root-only >/tmp/f'
	runs 0 as_user tmpnest run --nest theirs -- sh -c 'echo user >/tmp/f'
	local verb
	for verb in 'files mine' 'du mine' 'cat mine f' 'cp mine:f x' 'export mine -o x'; do
		# shellcheck disable=SC2086
		runs 3 as_user tmpnest $verb
		# shellcheck disable=SC2086
		runs 4 as_user tmpnest $verb --owner root
	done
	runs 0 tmpnest cat theirs f --owner "$TT_USER"
	equal 'what root reads' "$out" user
	stop_daemon
}

# Runs a verb; $most becomes the most KiB that it took itself, $most_worker the worker's.
watched() { # COMMAND...
	read -r most most_worker < <("$TT_PYTHON" - "$worker" "$@" <<'END'
import subprocess, sys, time

def anonymous(pid):
    try:
        return max([0] + [int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon")])
    except (FileNotFoundError, ProcessLookupError):
        return 0

worker = int(sys.argv[1])
command = subprocess.Popen(sys.argv[2:], stdout=open("watched.out", "wb"))
most = [0, 0]
while command.poll() is None:
    most = [max(most[0], anonymous(command.pid)), max(most[1], anonymous(worker))]
    time.sleep(0.05)
if command.returncode:
    sys.exit(f"{sys.argv[2:]}: status {command.returncode}")
print(*most)
END
	) || fail "$*"
	echo "$*: $most KiB, the worker $most_worker KiB"
}

many_entries() { # N
	tmpnest create many --inodes 1100000 --quota max
	runs 0 tmpnest run --nest many -- "$TT_PYTHON" -c '
import os, sys
os.mkdir("/tmp/d")
for i in range(int(sys.argv[1])):
    os.mknod("/tmp/d/%07d" % i)
os.symlink("/etc/passwd", "/tmp/d/link")
os.mkfifo("/tmp/d/fifo")' "$1"
	local before worker verb
	worker=$(tmpnest daemon status --json | json 'd["worker_pid"]')
	before=$(awk '/^RssAnon/ { print $2 }' "/proc/$worker/status")
	for verb in 'files many d' 'files many -R --json' 'du many d --json' 'export many' 'cat many d/0001999' \
		'cp many:d/0000001 one' 'show many --verify' 'lsof many'; do
		# shellcheck disable=SC2086
		watched tmpnest $verb
		at_most "growth of the worker in KiB with $verb" $((most_worker - before)) 16384
		at_most "KiB of tmpnest $verb" "$most" 65536
		case $verb in
		'files many d') equal files "$(wc -l <watched.out)" $(($1 + 2)) ;;
		du*) equal du "$(json 'd["entries_total"]' <watched.out)" $(($1 + 2)) ;;
		export*) equal export "$(tar tf watched.out | wc -l)" $(($1 + 3)) ;;
		esac
		rm watched.out
	done
	lacks 'a file of the host' "$(cat one)" root
	status=0
	tmpnest cat many d/link >host 2>/dev/null || status=$?
	equal 'a link out' "$status $(cat host)" '1 '
	tmpnest evict --force many
	eventually 300 trash_is_empty
}

case_a_directory_of_two_thousand_entries() { many_entries 2000; }
case_a_directory_of_a_million_entries() { many_entries 1000000; }

main "$@"
