#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Limits: the exact byte and inode, df, room after removal, live changes.
. "$(dirname "$0")/../lib.sh"

case_dd_stops_at_the_exact_byte_and_rm_makes_room() {
	runs 0 tmpnest run --quota 64M -- sh -c '
		dd if=/dev/zero of=/tmp/big bs=1M 2>/dev/null
		stat -c "size %s" /tmp/big
		df -B1 --output=size,used,avail /tmp | tail -1
		bash -c "echo more >>/tmp/big" || echo "append refused"
		stat -c "size %s" /tmp/big
		rm /tmp/big
		df -B1 --output=avail /tmp | tail -1
		dd if=/dev/zero of=/tmp/again bs=1M count=64 2>/dev/null && stat -c "again %s" /tmp/again'
	equal 'size of the file' "$(sed -n 1p <<<"$out")" 'size 67108864'
	equal 'df' "$(sed -n 2p <<<"$out" | xargs)" '67108864 67108864 0'
	contains 'the shell' "$out" 'append refused'
	contains 'the shell says why' "$err" 'No space left on device'
	equal 'size after the refused append' "$(sed -n 4p <<<"$out")" 'size 67108864'
	equal 'room after rm' "$(sed -n 5p <<<"$out" | xargs)" 67108864
	contains 'again' "$out" 'again 67108864'
}

case_a_write_that_fits_in_part_is_short() {
	runs 0 tmpnest run --quota 1M -- "$TT_PYTHON" -c '
import errno, os
fd = os.open("/tmp/f", os.O_WRONLY | os.O_CREAT)
data = b"x" * (700 << 10)
assert os.write(fd, data) == len(data)
n = os.write(fd, data)
assert n == (324 << 10), n
try:
    os.write(fd, b"y")
    raise SystemExit("written past the limit")
except OSError as e:
    assert e.errno == errno.ENOSPC, e
assert os.fstat(fd).st_size == 1 << 20
back = open("/tmp/f", "rb").read()
assert back == b"x" * (1 << 20)'
}

case_inodes_to_the_last_one() {
	runs 0 tmpnest run --inodes 1000 -- "$TT_PYTHON" -c '
import errno, os, time
def left():
    s = os.statvfs("/tmp")
    return s.f_files, s.f_ffree
assert left() == (1000, 1000), left()
for i in range(1000):
    open("/tmp/%d" % i, "w").close()
assert left() == (1000, 0), left()
for make in (lambda: open("/tmp/x", "w"), lambda: os.mkdir("/var/tmp/x"), lambda: os.symlink("a", "/tmp/y"),
             lambda: os.mkfifo("/tmp/z")):
    try:
        make()
        raise SystemExit("the 1,001st was made")
    except OSError as e:
        assert e.errno == errno.ENOSPC, e
os.link("/tmp/0", "/tmp/link")
os.unlink("/tmp/1")
open("/tmp/x", "w").close()  # there is room at once
os.unlink("/tmp/2")
end = time.time() + 5  # what is free shows with the FORGET of the file
while left() != (1000, 1) and time.time() < end: time.sleep(0.01)
assert left() == (1000, 1), left()
assert len(os.listdir("/tmp")) == 1000'
	runs 0 tmpnest run --inodes 1000 -- sh -c 'mkdir /tmp/d; df --output=itotal,iused,iavail /tmp | tail -1'
	equal 'df -i' "$(xargs <<<"$out")" '1000 1 999'
}

case_holes_are_free_and_unlinked_files_count_until_closed() {
	runs 0 tmpnest run --quota 1M -- "$TT_PYTHON" -c '
import os
def free():
    s = os.statvfs("/tmp")
    return s.f_bavail * s.f_frsize
f = open("/tmp/sparse", "wb"); f.truncate(20 << 30)
assert free() == 1 << 20, free()
f.close(); os.unlink("/tmp/sparse")
g = open("/tmp/open", "wb"); g.write(b"x" * (512 << 10)); g.flush()
os.unlink("/tmp/open")
assert free() == 512 << 10, free()
g.close()
import time
end = time.time() + 5
while free() != 1 << 20 and time.time() < end: time.sleep(0.02)
assert free() == 1 << 20, free()'
}

case_default_limits() {
	tmpnest create plain
	equal 'bytes_limit' "$(nest plain bytes_limit)" $((1 << 30))
	equal 'inodes_limit' "$(nest plain inodes_limit)" 262144
	equal 'df' "$(tmpnest run --nest plain -- df -B1 --output=size /tmp | tail -1 | xargs)" $((1 << 30))
	eventually 5 nest_has plain state idle
	tmpnest evict plain
}

case_limits_change_while_programs_run() {
	background writer tmpnest run --nest live --quota 1M -- sh -c '
		dd if=/dev/zero of=/tmp/f bs=64k 2>/dev/null; echo full
		until dd if=/dev/zero of=/tmp/g bs=64k count=16 2>/dev/null; do sleep 0.05; done
		echo grown; sleep 30'
	wait_for_line writer full
	equal 'used' "$(nest live bytes_used)" $((1 << 20))
	tmpnest limits live --quota 4M
	wait_for_line writer grown
	equal 'limit' "$(nest live bytes_limit)" $((4 << 20))
	# below the present use: nothing grows, nothing is lost
	tmpnest limits live --quota 1M
	runs 2 tmpnest run --nest live -- sh -c 'echo x >/tmp/new'
	contains 'why' "$err" 'No space left'
	equal 'free blocks' "$(tmpnest run --nest live -- df -B1 --output=avail /tmp | tail -1 | xargs)" 0
	equal 'data' "$(tmpnest run --nest live -- sh -c 'cat /tmp/f /tmp/g | wc -c')" $((2 << 20))
	tmpnest limits live --inodes 2
	runs 1 tmpnest run --nest live -- mkdir /tmp/dir
	tmpnest limits live --inodes 10 --quota max
	runs 0 tmpnest run --nest live -- sh -c 'mkdir /tmp/dir && echo x >/tmp/dir/f'
	tmpnest evict --force live
}

case_another_nest_is_unharmed_by_a_full_one() {
	tmpnest run --nest full --quota 1M -- sh -c 'dd if=/dev/zero of=/tmp/f bs=64k 2>/dev/null' || true
	runs 0 tmpnest run --quota 1M -- dd if=/dev/zero of=/tmp/f bs=64k count=16
	eventually 5 nest_has full state idle
	equal 'quota_hits_total above zero' "$([ "$(nest full quota_hits_total)" -gt 0 ] && echo yes)" yes
	tmpnest evict full
}

# What a close gives back is there for the very next write, also while other nests are full.
case_a_close_makes_room_at_once_in_many_nests_at_a_time() {
	cat >fill.py <<-'END'
		import os
		data = b"x" * (1 << 20)
		for i in range(150):
		    fd = os.open("/tmp/f", os.O_WRONLY | os.O_CREAT)
		    os.unlink("/tmp/f")
		    n = os.write(fd, data)
		    assert n == len(data), "round %d: %d" % (i, n)
		    os.close(fd)
	END
	local i pids=()
	for i in 1 2 3 4 5; do
		tmpnest run --quota 1M -- "$TT_PYTHON" fill.py &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || fail 'no room'; done
}

case_the_same_limits_on_a_memory_store() {
	runs 0 tmpnest run --store memory --quota 8M --inodes 10 -- sh -c '
		dd if=/dev/zero of=/tmp/big bs=1M 2>/dev/null; stat -c %s /tmp/big
		rm /tmp/big
		for i in 0 1 2 3 4 5 6 7 8 9; do touch /tmp/$i || exit 9; done
		! touch /tmp/10 2>/dev/null'
	equal 'size' "$out" 8388608
}

case_the_account_agrees_with_a_recount() {
	tmpnest run --nest counted -- sh -c '
		cd /tmp && mkdir -p a/b/c && dd if=/dev/urandom of=a/x bs=1000 count=77 2>/dev/null
		ln a/x a/b/y; ln -s "$(printf %0300d 1)" a/long; mkfifo a/p
		truncate -s 5M a/holes; dd if=/dev/zero of=a/holes bs=4k seek=100 count=3 conv=notrunc 2>/dev/null
		for i in $(seq 300); do echo $i >a/b/c/$i; done; rm a/b/c/1*; mv a/b/c a/d; : >a/d/2'
	eventually 5 nest_has counted state idle
	runs 0 tmpnest show counted --json --verify
	tmpnest evict counted
}

main "$@"
