#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Files that the kernel reads and writes by itself: which nests have it, that their limits hold,
# that open files outlive workers, and what freezing, rules and evictions do to them. The store
# `image`, and write-back, which is the opposite choice.
. "$(dirname "$0")/../lib.sh"

TT_LIMIT=300
export TMPNEST_PASSTHROUGH=1

only root open_files_need_no_daemon the_limit_is_the_kernels deleted_files_leave_nothing_known
only root open_files_outlive_workers freezing_and_denying_reach_new_opens_only
only root an_eviction_leaves_open_files_to_their_holders a_lowered_limit_is_reached_from_above
only root an_image_is_as_large_as_its_nest images_leave_nothing_when_all_is_killed
only root an_image_can_be_grown_and_shrunk_in_use a_mapping_moves_the_times
only root a_kernel_without_it_is_noticed

path_of() { nest "$1" data_path; }
reason_of() { tmpnest show "$1" --json | json 'd.get("mediated_because", "")'; }
loop_devices() { losetup -a | grep -c 'tmpnest\|/image' || true; }

needs_image() {
	need losetup util-linux
	need mke2fs e2fsprogs
	[ -c /dev/loop-control ] || skip 'there are no loop devices on this machine'
}

case_each_nest_says_which_way_it_goes() {
	own_daemon
	tmpnest create d
	tmpnest create m --store memory
	tmpnest create w --store memory --writeback
	equal 'dir' "$(path_of d): $(reason_of d)" 'mediated: store dir has no limit that the kernel keeps'
	if [ "$TT_ROLE" = root ]; then
		tmpnest create r --store memory --read-only /tmp/x
		equal 'memory' "$(path_of m): $(reason_of m)" 'passthrough: '
		contains 'read-only rules' "$(reason_of r)" 'read-only rules'
		contains 'write-back' "$(reason_of w)" 'write-back'
		contains 'show' "$(tmpnest show m)" 'passthrough, open files: 0'
		tmpnest run --nest m -- sh -c 'echo a >/tmp/f; cat /tmp/f' | grep -qx a
	else
		contains 'a user' "$(reason_of m)" 'only a root daemon may'
		runs 1 tmpnest create i --store image
		one_message
		contains 'the refusal' "$err" 'no right to mount an image'
	fi
	stop_daemon
	unset TMPNEST_PASSTHROUGH
	tmpnest create m --store memory
	equal 'by itself' "$(path_of m)" mediated
	stop_daemon
}

# The nest was made for it, its limit is the kernel's, and the kernel says no at its first use.
case_a_kernel_without_it_is_noticed() {
	own_daemon
	export TMPNEST_PASSTHROUGH=kernel
	tmpnest create m --store memory --quota 1M
	runs 1 tmpnest run --nest m -- sh -c 'head -c 2M /dev/zero >/tmp/f'
	equal 'path' "$(path_of m)" mediated
	contains 'reason' "$(reason_of m)" 'kernel'
	equal 'use' "$(nest m bytes_used)" 1048576
	differ 'quota hits' "$(nest m quota_hits_total)" 0
	grep -q 'nest m: mediated: the kernel does not offer it' "$TMPNEST_RUNTIME_DIR/tmpnestd.log"
	tmpnest show --verify m
	stop_daemon
}

requests_of() { tmpnest show "$1" --json | json "sum(d['operations'].get(o, 0) for o in '$2'.split())"; }

case_open_files_need_no_daemon() {
	own_daemon
	tmpnest create m --store memory
	tmpnest run --nest m -- "$TT_PYTHON" -c '
import os, mmap
fd = os.open("/tmp/f", os.O_RDWR | os.O_CREAT)
for i in range(200): os.pwrite(fd, b"x" * 5000, i * 5000)
for i in range(200): assert os.pread(fd, 5000, i * 5000) == b"x" * 5000
m = mmap.mmap(fd, 1000000)
m[5] = 0x79
assert os.pread(fd, 3, 4) == b"xyx"
assert os.fstat(fd).st_size == 1000000'
	equal 'requests for data' "$(requests_of m 'READ WRITE')" 0
	equal 'opens and releases' "$(requests_of m CREATE) $(requests_of m RELEASE)" '1 1'
	equal 'open files' "$(nest m open_files)" 0
	tmpnest show --verify m
	stop_daemon
}

case_the_limit_is_the_kernels() {
	own_daemon
	tmpnest create m --store memory --quota 1M --inodes 20
	tmpnest run --nest m -- "$TT_PYTHON" -c '
import errno, os, mmap, signal, subprocess, sys
fd = os.open("/tmp/f", os.O_WRONLY | os.O_CREAT)
assert os.write(fd, b"a" * 1000000) == 1000000
n = os.write(fd, b"b" * 100000)
assert n == 48576, n
try: os.write(fd, b"c"); sys.exit("a byte too much")
except OSError as e: assert e.errno == errno.ENOSPC, e
st = os.statvfs("/tmp")
assert st.f_blocks * st.f_frsize == 1048576 and st.f_bavail == 0, st
assert open("/tmp/f", "rb").read(1000001)[-1:] == b"b"
os.unlink("/tmp/f")
os.close(fd)
open("/tmp/g", "wb").write(b"d" * 1048576)
os.truncate("/tmp/g", 4096)
def holes():
    fd = os.open("/tmp/h", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 4 << 20)
    m = mmap.mmap(fd, 4 << 20)
    for at in range(0, 4 << 20, 4096): m[at] = 1
pid = os.fork()
if pid == 0: holes(); os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGBUS
for i in range(17): open("/tmp/i%d" % i, "w").close()
try: open("/tmp/more", "w"); open("/tmp/more2", "w"); sys.exit("an inode too much")
except OSError as e: assert e.errno == errno.ENOSPC, e'
	equal 'use' "$(nest m bytes_used)" 1048576
	tmpnest show --verify m
	stop_daemon
}

# What the kernel was given a file for is given back: else its pages would stay in use.
case_deleted_files_leave_nothing_known() {
	own_daemon
	tmpnest create m --store memory --quota 4M
	tmpnest run --nest m -- "$TT_PYTHON" -c '
import os
for i in range(50):
    with open("/tmp/f%d" % i, "wb") as a, open("/tmp/f%d" % i, "rb") as b:
        a.write(b"x" * 1000000)
        a.flush()
        os.unlink(a.name)
        assert len(b.read()) == 1000000'
	equal 'open files' "$(nest m open_files)" 0
	eventually 5 nest_has m bytes_used 0
	stop_daemon
}

case_a_lowered_limit_is_reached_from_above() {
	own_daemon
	tmpnest create m --store memory --quota 4M
	background view tmpnest run --nest m -- sh -c '
		head -c 3M /dev/zero >/tmp/f; echo made; until [ -e '"$TT_WORK"'/go ]; do sleep 0.1; done
		head -c 4K /dev/zero >/tmp/g; echo "status $?"; rm /tmp/f; sleep 2.5
		head -c 2M /dev/zero >/tmp/h; ls -s --block-size=1 /tmp; exec sleep 100'
	wait_for_line view made
	tmpnest limits m --quota 1M
	touch go
	wait_for_line view 'status 1'
	wait_for_line view '1048576 h'
	tmpnest limits m --quota 2M
	equal 'use' "$(nest m bytes_used)" 1048576
	end_background
	stop_daemon
}

# What open files can do, with a worker's death between any two steps.
cat_script() {
	cat <<'PYTHON'
import ctypes, errno, fcntl, mmap, os, sys
os.chdir("/tmp")
libc = ctypes.CDLL(None, use_errno=True)
def step(text):
    print(text, flush=True)
    sys.stdin.readline()
def fallocate(fd, mode, at, size):
    if libc.fallocate(fd, mode, ctypes.c_long(at), ctypes.c_long(size)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")
a = os.open("a", os.O_RDWR | os.O_CREAT | os.O_APPEND)
os.write(a, b"one")
gone = os.open("gone", os.O_RDWR | os.O_CREAT)
os.write(gone, b"still here")
os.unlink("gone")
unnamed = os.open(".", os.O_TMPFILE | os.O_RDWR)
m = os.open("m", os.O_RDWR | os.O_CREAT)
os.ftruncate(m, 1 << 20)
view = mmap.mmap(m, 1 << 20)
step("opened")
os.write(a, b"two")
assert os.pread(a, 10, 0) == b"onetwo"
assert os.fstat(a).st_size == 6
assert os.pread(gone, 20, 0) == b"still here" and os.fstat(gone).st_nlink == 0
again = os.open("/proc/self/fd/%d" % gone, os.O_RDONLY)
assert os.pread(again, 5, 0) == b"still"
os.write(unnamed, b"nameless")
assert libc.linkat(-100, b"/proc/self/fd/%d" % unnamed, -100, b"named", 0x400) == 0
view[0:4] = b"mmap"
view[500000] = 7
assert os.pread(m, 4, 0) == b"mmap"
step("written")
os.fsync(a)
os.ftruncate(a, 2)
assert os.pread(a, 10, 0) == b"on" and os.stat("a").st_size == 2
os.write(a, b"end")
assert open("a", "rb").read() == b"onend"
assert open("named", "rb").read() == b"nameless"
view[4096:4100] = b"more"
view.flush()
assert open("m", "rb").read()[4096:4100] == b"more"
step("truncated")
b = os.open("b", os.O_RDWR | os.O_CREAT)
os.write(b, b"z" * 65536)
fallocate(b, 3, 8192, 8192)
assert os.lseek(b, 0, os.SEEK_HOLE) == 8192 and os.lseek(b, 8192, os.SEEK_DATA) == 16384
fallocate(b, 0, 65536, 4096)
assert os.fstat(b).st_size == 69632 and os.pread(b, 2, 8191) == b"z\0"
c = os.open("c", os.O_RDWR | os.O_CREAT)
assert os.copy_file_range(b, c, 65536, 0, 0) == 65536
assert os.pread(c, 65536, 0) == os.pread(b, 65536, 0)
d = os.open("c", os.O_RDWR | os.O_DIRECT)
buffer = mmap.mmap(-1, 4096)
buffer[:] = b"d" * 4096
os.pwritev(d, [buffer], 4096)
assert os.pread(c, 4096, 4096) == b"d" * 4096
try: os.open("c", os.O_CREAT | os.O_EXCL); sys.exit("O_EXCL")
except FileExistsError: pass
os.rename("c", "e")
os.pwrite(c, b"renamed", 0)
assert open("e", "rb").read(7) == b"renamed"
step("copied")
for fd in (a, b, c, d, gone, again, unnamed, m): os.close(fd)
view[8192:8196] = b"last"
assert open("m", "rb").read()[8192:8196] == b"last"
view.close()
for name in ("a", "b", "e", "m", "named"): os.unlink(name)
step("closed")
PYTHON
}

# outlive STORE: the script above, without a death and with one after each step
outlive() {
	own_daemon
	cat_script >script.py
	tmpnest create --store "$1" --quota 16M open
	equal 'path' "$(path_of open)" passthrough
	printf '\n\n\n\n\n' | tmpnest run --nest open -- "$TT_PYTHON" "$TT_WORK/script.py"
	mkfifo pipe
	background view sh -c 'exec tmpnest run --nest open -- "$@" <pipe' - "$TT_PYTHON" "$TT_WORK/script.py"
	exec 9>pipe
	local word
	for word in opened written truncated copied; do
		wait_for_line view "$word"
		kill -9 "$(worker_pid)"
		[ "$word" = written ] || eventually 10 tmpnest daemon status
		echo >&9
	done
	wait_for_line view closed
	equal 'open files' "$(nest open open_files)" 0
	exec 9>&-
	eventually 5 nest_has open bytes_used 0
	equal 'files left' "$(tmpnest run --nest open -- ls -A /tmp)" ''
	tmpnest show --verify open
	lacks 'the log' "$(cat "$TMPNEST_RUNTIME_DIR/tmpnestd.log")" 'views are lost'
	stop_daemon
}

case_open_files_outlive_workers() { outlive memory; }

# Nobody sees what is stored through a mapping, so that nothing may be kept of the times.
case_a_mapping_moves_the_times() {
	own_daemon
	tmpnest run --store memory -- "$TT_PYTHON" -c '
import mmap, os, time
fd = os.open("/tmp/f", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 8192)
before = os.stat("/tmp/f").st_mtime_ns
m = mmap.mmap(fd, 8192)
os.close(fd)
time.sleep(0.05)
assert os.stat("/tmp/f").st_mtime_ns == before
m[0] = 1
assert os.stat("/tmp/f").st_mtime_ns > before
assert os.stat("/tmp/f").st_blocks == 8
m[4096] = 1
assert os.stat("/tmp/f").st_blocks == 16
m.close()
assert open("/tmp/f", "rb").read(1) == b"\1"'
	stop_daemon
}

case_freezing_and_denying_reach_new_opens_only() {
	own_daemon
	tmpnest create m --store memory
	mkfifo pipe
	background view sh -c 'exec tmpnest run --nest m -- "$@" <pipe' - "$TT_PYTHON" -c '
import os, sys
def step(text):
    print(text, flush=True)
    sys.stdin.readline()
def error(call, *arguments):
    try: call(*arguments); return 0
    except OSError as e: return e.errno
w = os.open("/tmp/f", os.O_RDWR | os.O_CREAT)
r = os.open("/tmp/f", os.O_RDONLY)
step("opened")
print("frozen", os.write(w, b"x"), error(os.open, "/tmp/f", os.O_WRONLY), error(os.ftruncate, w, 0),
      error(os.open, "/tmp/g", os.O_CREAT | os.O_WRONLY), len(open("/tmp/f").read()))
step("done with frozen")
print("denied", os.write(w, b"y"), os.pread(r, 9, 0), error(os.open, "/tmp/f", os.O_RDONLY),
      error(os.ftruncate, w, 0))
step("done with denied")'
	exec 9>pipe
	wait_for_line view opened
	equal 'open files, writers' "$(nest m open_files) $(nest m open_writers)" '2 1'
	contains 'show' "$(tmpnest show m)" 'open files: 2, of them for writing: 1'
	tmpnest freeze m
	echo >&9
	wait_for_line view 'frozen 1 30 30 30 1'
	tmpnest thaw m
	tmpnest deny m add /tmp/f
	echo >&9
	wait_for_line view "denied 1 b'xy' 2 13"
	equal 'writers' "$(nest m open_writers)" 1
	echo >&9
	exec 9>&-
	eventually 5 nest_has m open_files 0
	stop_daemon
}

# evict_open STORE: who has a file open goes on with it, whoever asks for a name gets ENOTCONN
evict_open() {
	own_daemon
	cat /proc/self/mounts >before
	tmpnest create m --store "$1" --quota 16M
	mkfifo pipe
	background view sh -c 'exec tmpnest run --nest m -- "$@" <pipe' - "$TT_PYTHON" -c '
import mmap, os, sys
w = os.open("/tmp/f", os.O_RDWR | os.O_CREAT)
os.write(w, b"x" * 8192)
m = mmap.mmap(w, 8192)
print("opened", flush=True)
sys.stdin.readline()
try: os.stat("/tmp/f"); sys.exit("a name is still there")
except OSError as e: print("stat", e.errno)
m[0:3] = b"abc"
assert os.pread(w, 4, 0) == b"abcx"
print("written", os.write(w, b"yy"), flush=True)
sys.stdin.readline()'
	exec 9>pipe
	wait_for_line view opened
	runs 1 tmpnest evict m
	tmpnest evict --force m
	no_nests
	echo >&9
	wait_for_line view 'written 2'
	grep -q 'stat 107' view.log
	echo >&9
	exec 9>&-
	eventually 10 cmp before /proc/self/mounts
}

case_an_eviction_leaves_open_files_to_their_holders() {
	evict_open memory
	stop_daemon
}

case_an_image_is_as_large_as_its_nest() {
	needs_image
	own_daemon
	local before
	before=$(loop_devices)
	tmpnest create i --store image --quota 8M --inodes 100
	equal 'path' "$(path_of i)" passthrough
	equal 'loop devices' "$(loop_devices)" $((before + 1))
	equal 'use' "$(nest i bytes_used)" 0
	tmpnest show --verify i
	tmpnest run --nest i -- "$TT_PYTHON" -c '
import errno, os, sys
st = os.statvfs("/tmp")
assert st.f_blocks * st.f_frsize == st.f_bavail * st.f_frsize == 8 << 20, st
fd = os.open("/tmp/f", os.O_WRONLY | os.O_CREAT)
assert os.write(fd, b"a" * (4 << 20)) == 4 << 20
total = 4 << 20
try:
    while True: total += os.write(fd, b"b" * 65536)
except OSError as e: assert e.errno == errno.ENOSPC, e
assert total == 8 << 20, total
assert os.statvfs("/tmp").f_bavail == 0
os.unlink("/tmp/f")
os.close(fd)
open("/tmp/g", "wb").write(b"c" * (4 << 20))
for i in range(99): open("/tmp/%d" % i, "w").close()
try: open("/tmp/more", "w"); sys.exit("an inode too much")
except OSError as e: assert e.errno == errno.ENOSPC, e'
	tmpnest show --verify i
	tmpnest evict i
	eventually 10 eval '[ "$(loop_devices)" = '"$before"' ]'
	stop_daemon
}

case_an_image_can_be_grown_and_shrunk_in_use() {
	needs_image
	own_daemon
	tmpnest create i --store image --quota 4M
	background view tmpnest run --nest i -- sh -c '
		head -c 6M /dev/zero >/tmp/f; stat -c "first %s" /tmp/f; until [ -e '"$TT_WORK"'/go ]; do sleep 0.1; done
		head -c 60M /dev/zero >/tmp/f; stat -c "then %s" /tmp/f; df -B1 --output=size /tmp; exec sleep 100'
	wait_for_line view 'first 4194304'
	tmpnest limits i --quota 64M
	touch go
	wait_for_line view 'then 62914560'
	wait_for_line view 67108864
	tmpnest show --verify i
	tmpnest limits i --quota 61M
	runs 1 tmpnest run --nest i -- sh -c 'head -c 2M /dev/zero >/tmp/g'
	equal 'use' "$(nest i bytes_used)" $((61 << 20))
	tmpnest run --nest i -- rm /tmp/f /tmp/g
	eventually 5 nest_has i bytes_used 0
	tmpnest show --verify i
	end_background
	stop_daemon
}

case_images_leave_nothing_when_all_is_killed() {
	needs_image
	local before
	before=$(loop_devices)
	evict_open image
	eventually 10 eval '[ "$(loop_devices)" = '"$before"' ]'
	tmpnest create i --store image --quota 8M
	background view tmpnest run --nest i -- sh -c 'echo made >/tmp/f; cat /tmp/f; exec sleep 100'
	wait_for_line view made
	local keeper worker
	keeper=$(daemon_pid) worker=$(worker_pid)
	kill -9 "$keeper"
	kill -9 "$worker" 2>/dev/null || true
	end_background
	eventually 10 eval '[ "$(loop_devices)" = '"$before"' ]'
	eventually 10 cmp before /proc/self/mounts
	tmpnest daemon start
	no_nests
	eventually 10 trash_is_empty
	stop_daemon
}

# Excludes passthrough, and says so; what it gives up is in docs/semantics.md.
case_write_back_is_a_choice() {
	own_daemon
	tmpnest create w --writeback --quota 1M
	tmpnest run --nest w -- "$TT_PYTHON" -c '
import errno, os, sys
for i in range(300):
    with open("/tmp/log", "ab", buffering=0) as f: f.write(b"x" * 100)
fd = os.open("/tmp/f", os.O_RDWR | os.O_CREAT)
for i in range(1000): os.pwrite(fd, b"%04d" % i, i * 4)
assert os.pread(fd, 4, 3996) == b"0999"
os.fsync(fd)
big = os.open("/tmp/big", os.O_WRONLY | os.O_CREAT)
os.write(big, b"z" * (2 << 20))
try: os.fsync(big); sys.exit("nobody was told that it does not fit")
except OSError as e: assert e.errno == errno.ENOSPC, e'
	equal 'write-back' "$(nest w writeback)" true
	at_most 'WRITE requests' "$(requests_of w WRITE)" 600
	at_most 'use' "$(nest w bytes_used)" 1048576
	tmpnest show --verify w
	tmpnest create plain --quota 1M
	equal 'write-back' "$(nest plain writeback)" false
	tmpnest run --writeback -- sh -c 'echo a >/tmp/a; cat /tmp/a' | grep -qx a
	stop_daemon
}

main "$@"
