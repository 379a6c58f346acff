#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A sandbox that sets out to harm the daemon or another nest: floods of names, attributes, lookups
# and open files, renames in cycles, races for the last byte. Each time the daemon stays the same
# process, its memory below the formula of docs/security.md ("Memory of the daemon"), and the
# account what a count of the store says. (Malformed requests, which no kernel sends: wire-malformed
# and the fuzz targets.) A plain user cannot look at his daemon's memory: it is not dumpable.
. "$(dirname "$0")/../lib.sh"
roles root
TT_LIMIT=120

# The formula: bytes that one nest may add. The numbers are those of docs/security.md, from which
# they are read, so that page and test cannot part.
constant() { sed -nE "s/^\| $1 \|.* \| ([0-9]+) B \|\$/\1/p" "$TT_TESTS/../docs/security.md"; }

nest_may_add() { # INODES NAMES LENGTH
	echo $(($(constant 'nest') + $1 * $(constant 'inode') + $2 * ($(constant 'name') + ($3 + 16) / 16 * 16)))
}

threads_may_add() { # the worker grows them when many requests wait
	local n
	n=$(ls "/proc/$(worker_pid)/task" | wc -l)
	echo $((n * $(constant 'thread')))
}

# What all cases begin and end with.
begin() { # OPTIONS...
	own_daemon
	tmpnest run --nest hostile "$@" -- true
	tmpnest create neighbour
	WORKER=$(worker_pid)
	BEFORE=$(worker_memory)
}

stays_within() { # INODES NAMES LENGTH
	local limit
	limit=$((BEFORE + $(nest_may_add "$@") + $(threads_may_add)))
	echo "memory: $BEFORE before, $(worker_memory) now, $limit allowed"
	[ -z "${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}" ] || return 0 # a sanitizer has memory of its own
	at_most 'memory of the worker' "$(worker_memory)" "$limit"
}

finish() {
	equal 'the worker' "$(worker_pid)" "$WORKER"
	runs 0 tmpnest show hostile --json --verify
	runs 0 tmpnest run --nest neighbour -- sh -c 'echo fine >/tmp/x && cat /tmp/x'
	equal 'the neighbour' "$out" fine
	tmpnest evict --force hostile neighbour
	eventually 60 trash_is_empty # behind everybody's back, so late on a busy machine
}

in_nest() { # PYTHON [WORDS...]
	runs 0 tmpnest run --nest hostile -- "$TT_PYTHON" -c "$@"
}

# ---- floods -------------------------------------------------------------------------

# Names as long as they may be, to the last inode; the sandbox stays, so the kernel keeps them.
flood_of_names() { # FILES
	begin --quota 1G --inodes "$1"
	background holder tmpnest run --nest hostile -- "$TT_PYTHON" -c '
import errno, os, sys, time
n = 0
try:
    while n <= int(sys.argv[1]):  # one more is enough to see that nothing stops it
        if n % 2000 == 0:
            os.mkdir("/tmp/d%d" % n)
            at = "/tmp/d%d/" % n
        os.mknod(at + "%0250d" % n)
        n += 1
except OSError as e:
    assert e.errno == errno.ENOSPC, e
print("made", n, flush=True)
time.sleep(1000)' "$1"
	eventually 100 grep -q made "$TT_WORK/holder.log"
	equal 'inodes' "$(nest hostile inodes_used)" "$1"
	stays_within "$1" "$1" 250
	end_background
	finish
}
case_a_flood_of_names_ends_at_the_inode_limit() { flood_of_names 4000; }
long a_flood_of_two_hundred_thousand_names
limit a_flood_of_two_hundred_thousand_names 900
case_a_flood_of_two_hundred_thousand_names() { flood_of_names 200000; }

# Links cost no inode, but room in their directory: that is what bounds them.
case_a_flood_of_links_ends_at_the_byte_limit() {
	local made most=$(((1 << 20) / 264)) # 264 bytes for each in a directory of the disk
	begin --quota 1M --inodes 100
	background holder tmpnest run --nest hostile -- "$TT_PYTHON" -c '
import errno, os, sys, time
os.mkdir("/tmp/d")
os.mknod("/tmp/f")
n = 0
try:
    while n < 2 * int(sys.argv[1]):  # if nothing stops it
        os.link("/tmp/f", "/tmp/d/%0250d" % n)
        n += 1
except OSError as e:
    assert e.errno in (errno.ENOSPC, errno.EMLINK), e
print("made", n, flush=True)
time.sleep(1000)' "$most"
	eventually 100 grep -q made "$TT_WORK/holder.log"
	made=$(sed -n 's/^made //p' "$TT_WORK/holder.log")
	at_most 'links' "$made" "$most"
	stays_within 100 "$made" 250
	end_background
	finish
}

# A directory that does not fit has grown all the same: it may be once too large, and then nothing
# grows it any further, whoever goes on and on.
GROWTH=$((4 * 4096))
case_who_goes_on_after_enospc_gets_no_more() {
	begin --quota 256K --inodes 1200
	in_nest '
import errno, os
def attempt(call, *words):
    try: call(*words)
    except OSError as e: assert e.errno in (errno.ENOSPC, errno.EMLINK), e
for k in range(20): os.mkdir("/tmp/e%d" % k)
os.mkdir("/tmp/d")
os.mknod("/tmp/f")
for i in range(3000): attempt(os.link, "/tmp/f", "/tmp/d/%0250d" % i)
for i in range(500): attempt(os.mknod, "/tmp/d/m%0250d" % i)
at = "/tmp/d"
for k in range(20):  # the same names in one directory after the other
    for n in os.listdir(at)[:300]: attempt(os.rename, at + "/" + n, "/tmp/e%d/%s" % (k, n))
    if len(os.listdir("/tmp/e%d" % k)) > 200: at = "/tmp/e%d" % k'
	at_most 'bytes' "$(nest hostile bytes_used)" $(((256 << 10) + GROWTH))
	finish
}

case_a_flood_of_attributes_ends_at_the_byte_limit() {
	begin --quota 4M --inodes 2000
	in_nest '
import errno, os
full = 0
for i in range(1500):
    name = "/tmp/f%d" % i
    try:
        os.mknod(name)
        for k in range(3): os.setxattr(name, "user.%0200d" % k, b"v" * 900)
    except OSError as e:
        assert e.errno in (errno.ENOSPC, errno.EDQUOT), e
        full += 1
assert full > 0
for i in range(1500):  # those that are there get no more either
    try: os.setxattr("/tmp/f%d" % i, "user.more", b"m" * 400)
    except OSError as e: assert e.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT), e
for i in range(50):  # the same one over and over
    try: os.setxattr("/tmp/f0", "user.again", os.urandom(i * 8))
    except OSError as e: assert e.errno == errno.ENOSPC, e'
	at_most 'bytes' "$(nest hostile bytes_used)" $(((4 << 20) + GROWTH))
	stays_within 1600 1600 10
	finish
}

# Names that are not there: nothing of them is kept in the daemon. What threads and the nest need once
# would hide it, so the second half is compared with the first, when the threads have given their
# buffers back (SLOT_IDLE_MS).
lookups() { # PROCESSES EACH
	local half first
	begin
	for half in a b; do
		in_nest '
import os, sys
processes, each = map(int, sys.argv[1:3])
for p in range(processes):
    if os.fork() == 0:
        for i in range(each):
            assert not os.path.lexists("/tmp/absent-%s-%d-%d" % (sys.argv[3], p, i))
            if i % 100 == 0 and os.fork() == 0: os._exit(0)
        os._exit(0)
for p in range(processes): assert os.wait()[1] == 0' "$1" $(($2 / 2)) $half
		sleep 4
		[ $half = b ] || first=$(worker_memory)
	done
	stays_within 10 10 20
	echo "memory: $first after half of them, $(worker_memory) after all"
	[ -n "${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}" ] ||
		at_most 'memory of the second half' "$(worker_memory)" $((first + $1 * $2 * 16))
	finish
}
case_a_fork_bomb_of_lookups_leaves_nothing() { lookups 16 800; }
long a_long_fork_bomb_of_lookups
limit a_long_fork_bomb_of_lookups 600
case_a_long_fork_bomb_of_lookups() { lookups 64 20000; }

# ---- open files -----------------------------------------------------------------------

# Each process has as many as it may; some of them have no name any more. More than the daemon keeps
# open of each kind: 2048 files (FILES_MOST) and 512 without a place (HELD_MOST); the rest is its own.
DESCRIPTORS=$((2048 + 512 + 150))
open_files() { # PROCESSES EACH
	begin --quota 4G --inodes 300000
	background holder tmpnest run --nest hostile -- "$TT_PYTHON" -c '
import os, sys, time
processes, each = map(int, sys.argv[1:3])
r, w = os.pipe()
for p in range(processes):
    if os.fork() == 0:
        fds = []
        for i in range(each):
            name = "/tmp/%d-%d" % (p, i)
            fds.append(os.open(name, os.O_CREAT | os.O_RDWR))
            if i % 4 == 3: os.unlink(name)
        os.write(w, b"x")
        time.sleep(1000)
os.close(w)
done = 0
while done < processes:
    n = len(os.read(r, processes))
    assert n, "a process has ended"
    done += n
print("all open", flush=True)
time.sleep(1000)' "$1" "$2"
	eventually 800 grep -q 'all open' "$TT_WORK/holder.log"
	equal 'inodes' "$(nest hostile inodes_used)" $(($1 * $2))
	echo "descriptors: $(ls "/proc/$(worker_pid)/fd" | wc -l), $DESCRIPTORS allowed"
	at_most 'descriptors of the daemon' "$(ls "/proc/$(worker_pid)/fd" | wc -l)" "$DESCRIPTORS"
	stays_within $(($1 * $2 + 10)) $(($1 * $2)) 12
	end_background
	eventually 60 nest_has hostile state idle
	finish
}
case_four_thousand_open_files() { open_files 8 500; }
long a_hundred_thousand_open_files
limit a_hundred_thousand_open_files 1500
case_a_hundred_thousand_open_files() { open_files 125 800; }

# ---- renames ----------------------------------------------------------------------------

# Directories are moved into each other by many at once, deeper and deeper: it stays a tree.
renames() { # PROCESSES SECONDS
	begin --inodes 5000
	in_nest '
import errno, os, random, sys, time
processes, seconds = map(int, sys.argv[1:3])
names = ["d%d" % i for i in range(12)]
for n in names: os.mkdir("/tmp/" + n)
allowed = {errno.EINVAL, errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
def place(rng):
    return "/tmp/" + "/".join(rng.choice(names) for _ in range(rng.randint(1, 6)))
for p in range(processes):
    if os.fork() == 0:
        rng, end = random.Random(p), time.monotonic() + seconds
        while time.monotonic() < end:
            try: os.rename(place(rng), place(rng))
            except OSError as e: assert e.errno in allowed, e
            if rng.random() < 0.1:
                try: os.mkdir(place(rng))
                except OSError as e: assert e.errno in allowed, e
        os._exit(0)
for p in range(processes): assert os.wait()[1] == 0
seen = set()
for dir, dirs, files in os.walk("/tmp"):
    ino = os.stat(dir).st_ino
    assert ino not in seen, dir
    seen.add(ino)
def deep(path, n):  # a chain that paths cannot name
    for i in range(n):
        os.mkdir("x"); os.chdir("x")
os.chdir("/tmp"); os.mkdir("chain"); os.chdir("chain"); deep(".", 1500)
os.chdir("/tmp"); os.rename("chain", "d-moved"); os.rename("d-moved", "chain")
try: os.rename("chain", "chain/x/chain"); assert False
except OSError as e: assert e.errno == errno.EINVAL, e' "$1" "$2"
	stays_within 5000 10000 10
	finish
}
case_renames_in_cycles_leave_a_tree() { renames 8 4; }
long renames_in_cycles_for_two_minutes
limit renames_in_cycles_for_two_minutes 400
case_renames_in_cycles_for_two_minutes() { renames 32 120; }

# ---- the last byte -----------------------------------------------------------------------

# 32 threads write, grow, punch and delete around the limit: it is never passed, and what is
# charged in the end is what lies there.
quota_race() { # SECONDS
	begin --quota 1M --inodes 64
	in_nest '
import errno, os, random, sys, threading, time
seconds = int(sys.argv[1])
end = time.monotonic() + seconds
bad, full = [], [0]
def one(k):
    rng = random.Random(k)
    path = "/tmp/f%d" % (k % 12)
    while time.monotonic() < end and not bad:
        try:
            fd = os.open(path, os.O_CREAT | os.O_RDWR)
            try:
                kind = rng.randrange(4)
                if kind == 0: os.pwrite(fd, b"x" * rng.choice([1, 4096, 65536, 300000]), rng.randrange(1 << 20))
                elif kind == 1: os.ftruncate(fd, rng.randrange(1 << 20))
                elif kind == 2: os.posix_fallocate(fd, rng.randrange(1 << 19), 65536)
                else: os.unlink(path)
            finally: os.close(fd)
        except OSError as e:
            if e.errno in (errno.ENOSPC, errno.EDQUOT): full[0] += 1
            elif e.errno != errno.ENOENT: bad.append(e)
def watch():
    while time.monotonic() < end:
        fs = os.statvfs("/tmp")
        if fs.f_bfree > fs.f_blocks or fs.f_ffree > fs.f_files: bad.append("statvfs")
        time.sleep(0.01)
threads = [threading.Thread(target=one, args=(k,)) for k in range(32)] + [threading.Thread(target=watch)]
for t in threads: t.start()
for t in threads: t.join()
assert not bad, bad
assert full[0] > 0, "never full"
# Then all only take, page by page, round after round: never one page too many.
for f in os.listdir("/tmp"): os.unlink("/tmp/" + f)
def fill(k):
    fd = os.open("/tmp/g%d" % k, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        while True: os.write(fd, b"x" * 4096)
    except OSError as e:
        if e.errno != errno.ENOSPC: bad.append(e)
    finally: os.close(fd)
end = time.monotonic() + seconds / 2
while time.monotonic() < end:
    threads = [threading.Thread(target=fill, args=(k,)) for k in range(32)]
    for t in threads: t.start()
    for t in threads: t.join()
    taken = sum(os.stat("/tmp/g%d" % k).st_size for k in range(32))
    assert not bad and taken <= 1 << 20, (bad, taken)
    for k in range(32): os.truncate("/tmp/g%d" % k, 0)' "$1"
	at_most 'bytes' "$(nest hostile bytes_used)" $((1 << 20))
	stays_within 64 64 10
	finish
}
case_thirty_two_threads_race_for_the_last_byte() { quota_race 4; }
long thirty_two_threads_race_for_a_minute
limit thirty_two_threads_race_for_a_minute 300
case_thirty_two_threads_race_for_a_minute() { quota_race 60; }

# ---- memory pressure ----------------------------------------------------------------------

# The sandbox takes the memory of its control group, again and again; the group holds the daemon
# too, so that its pages are wanted. What is killed is not the daemon, and views go on.
case_memory_pressure_spares_the_daemon() {
	GROUP=/sys/fs/cgroup/memory/tmpnest-test-$$
	mkdir "$GROUP" 2>/dev/null || skip 'no memory control group can be made here'
	trap end_pressure EXIT
	[ -f "$GROUP/memory.limit_in_bytes" ] || skip 'the memory control group has no limit'
	echo 64M >"$GROUP/memory.limit_in_bytes"
	begin --quota 1G
	daemon_pid >"$GROUP/cgroup.procs"
	echo "$WORKER" >"$GROUP/cgroup.procs"
	in_nest '
import os, sys
with open("/tmp/data", "wb") as f:
    for i in range(80): f.write(os.urandom(1 << 20))
with open("/tmp/data", "rb") as f:
    while f.read(1 << 20): pass'
	runs 0 bash -c 'echo $$ >"$1/cgroup.procs" && exec tmpnest run --nest hostile -- sh -c "
		for i in 1 2 3; do $2 -c \"x = bytearray(200 << 20)\" 2>/dev/null; done; echo survived \$? >/tmp/end; cat /tmp/end"' - "$GROUP" "$TT_PYTHON"
	contains 'the shell' "$out" survived
	finish
}

end_pressure() {
	local status=$? pid
	set +e
	# not with those in it; they are the daemon's, which is ended next
	while read -r pid; do echo "$pid" >/sys/fs/cgroup/memory/cgroup.procs; done <"$GROUP/cgroup.procs" 2>/dev/null
	rmdir "$GROUP" || { sleep 1 && rmdir "$GROUP"; }
	(exit "$status")
	end_case
}

main "$@"
