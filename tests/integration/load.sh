#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Many writers, many files, many open files: nothing is left afterwards, and the daemon's
# memory and descriptors stay within their bounds. (A plain user cannot look at his daemon's
# descriptors: it is not dumpable.)
. "$(dirname "$0")/../lib.sh"
roles root
TT_LIMIT=120

# The same once its threads have given back the buffers of large requests: idle for three seconds.
idle_memory() {
	sleep 4
	worker_memory
}
worker_descriptors() { ls "/proc/$(worker_pid)/fd" | wc -l; }
few_descriptors() { [ "$(worker_descriptors)" -le "$1" ]; }
little_memory() { [ "$(worker_memory)" -le "$1" ]; }

stress() { # STORE SECONDS
	local before descriptors seed=$RANDOM
	own_daemon
	cp "$TT_BUILD/tests/model/stress" stress
	# warm: threads, caches and connections are there
	tmpnest run --nest stressed --store "$1" --quota 16M -- ./stress 1 4 1 /tmp
	tmpnest evict --force stressed
	eventually 10 trash_is_empty
	descriptors=$(worker_descriptors) before=$(worker_memory)
	echo "seed $seed"
	tmpnest create stressed --store "$1" --quota 16M
	runs 0 tmpnest run --nest stressed -- sh -c "
		mkdir /tmp/tree && ./stress $2 4 $seed /tmp/tree && chmod -R u+rwx /tmp/tree && rm -rf /tmp/tree && ls -A /tmp | wc -l"
	equal 'entries left' "$(tail -1 <<<"$out")" 0
	eventually 10 nest_has stressed state idle
	runs 0 tmpnest show stressed --json --verify
	equal 'bytes' "$(nest stressed bytes_used)" 0
	equal 'inodes' "$(nest stressed inodes_used)" 0
	tmpnest evict stressed
	eventually 20 few_descriptors "$descriptors"
	# what malloc keeps for the next time is not a leak; one of a page for each second would show
	eventually 10 little_memory $((before + (1 << 20)))
}

case_four_writers_on_a_dir_store() { stress dir 12; }
case_four_writers_on_a_memory_store() { stress memory 8; }
long four_writers_for_ten_minutes
limit four_writers_for_ten_minutes 900
case_four_writers_for_ten_minutes() { stress dir 600; }

# Clients that die in the middle of what they do: the account is what the store holds.
case_the_account_after_clients_were_killed() {
	local i seed=$RANDOM
	own_daemon
	echo "seed $seed"
	cp "$TT_BUILD/tests/model/stress" stress
	tmpnest create killed --quota 4M
	for i in 1 2 3 4 5 6; do
		# below /tmp: an attribute of /tmp itself would stay, and count
		background writers tmpnest run --nest killed -- sh -c 'mkdir -p /tmp/tree && exec ./stress 20 4 "$1" /tmp/tree' sh $((seed + i))
		sleep "0.$((RANDOM % 8 + 2))"
		end_background
		eventually 5 nest_has killed state idle
		runs 0 tmpnest show killed --json --verify
	done
	runs 0 tmpnest run --nest killed -- sh -c 'chmod -R u+rwx /tmp/tree && rm -rf /tmp/tree && ls -A /tmp | wc -l'
	equal 'entries left' "$(tail -1 <<<"$out")" 0
	eventually 10 nest_has killed state idle
	equal 'bytes' "$(nest killed bytes_used)" 0
	equal 'inodes' "$(nest killed inodes_used)" 0
	tmpnest evict killed
}

# many_files N: made, found, looked at by git, removed; the daemon's memory for each.
many_files() {
	local n=$1 before nodes each at_most=200
	own_daemon
	tmpnest run --nest many --quota 4G --inodes 400000 -- true
	before=$(idle_memory)
	background holder tmpnest run --nest many -- sh -c 'mkdir /tmp/tree; echo ready; exec sleep 1000'
	wait_for_line holder ready
	runs 0 tmpnest run --nest many -- "$TT_PYTHON" -c '
import os, sys
for i in range(int(sys.argv[1])):
    if i % 1000 == 0:
        os.mkdir("/tmp/tree/directory-%d" % (i // 1000))
    os.close(os.open("/tmp/tree/directory-%d/some-file-%d.txt" % (i // 1000, i), os.O_CREAT | os.O_WRONLY))' "$n"
	equal 'find' "$(tmpnest run --nest many -- find /tmp/tree -type f | wc -l)" "$n"
	nodes=$(nest many nodes_cached)
	[ "$nodes" -ge $((n / 2)) ] || echo "the kernel keeps only $nodes"
	each=$((($(idle_memory) - before) / nodes))
	echo "memory for each of $nodes: $each"
	at_most 'bytes of memory for each cached inode' "$each" $at_most
	at_most 'descriptors' "$(worker_descriptors)" 4095
	equal 'git status' "$(tmpnest run --nest many -- sh -c 'cd /tmp/tree && git init -q . &&
		git status --porcelain -uall | wc -l')" "$n"
	at_most 'descriptors after git' "$(worker_descriptors)" 4095
	tmpnest run --nest many -- rm -rf /tmp/tree
	at_most 'descriptors after rm' "$(worker_descriptors)" 4095
	equal 'left' "$(tmpnest run --nest many -- sh -c 'ls -A /tmp | wc -l')" 0
	runs 0 tmpnest show many --json --verify
	equal 'inodes' "$(nest many inodes_used)" 0
	tmpnest evict --force many
}

case_ten_thousand_files() { many_files 10000; }
long two_hundred_thousand_files
limit two_hundred_thousand_files 900
case_two_hundred_thousand_files() { many_files 200000; }

# open_files PROCESSES EACH: all open at once, half of them unlinked; each is itself.
open_files() {
	own_daemon
	background holder tmpnest run --nest open -- "$TT_PYTHON" -c '
import os, sys, time
processes, each = map(int, sys.argv[1:3])
ready_r, ready_w = os.pipe()
go_r, go_w = os.pipe()
for p in range(processes):
    if os.fork() == 0:
        os.close(go_w)
        fds = []
        for i in range(each):
            name = "/tmp/%d-%d" % (p, i)
            fds.append(os.open(name, os.O_CREAT | os.O_RDWR))
            os.write(fds[-1], name.encode())
            if i % 2: os.unlink(name)
        os.write(ready_w, b"x")
        os.read(go_r, 1)
        for i, fd in enumerate(fds):
            assert os.pread(fd, 64, 0).decode() == "/tmp/%d-%d" % (p, i)
            assert os.fstat(fd).st_nlink == 1 - i % 2
        os._exit(0)
os.close(ready_w)
done = 0
while done < processes:
    n = len(os.read(ready_r, processes))
    assert n, "a process has ended"
    done += n
print("all open", flush=True)
while not os.path.exists("/tmp/go-on"): time.sleep(0.05)
os.close(go_w)
for p in range(processes):
    assert os.wait()[1] == 0
print("all right", flush=True)' "$1" "$2"
	eventually 100 grep -q 'all open' "$TT_WORK/holder.log"
	at_most 'descriptors of the daemon' "$(worker_descriptors)" 4095
	runs 0 tmpnest show open --json --verify
	equal 'inodes' "$(nest open inodes_used)" $(($1 * $2))
	tmpnest run --nest open -- touch /tmp/go-on
	eventually 60 grep -q 'all right' "$TT_WORK/holder.log"
	eventually 5 nest_has open state idle
	equal 'inodes left' "$(nest open inodes_used)" $(($1 * $2 / 2 + 1))
	runs 0 tmpnest show open --json --verify
	tmpnest evict open
	eventually 60 trash_is_empty
}

case_eight_processes_with_300_open_files() { open_files 8 300; }
long thirty_two_processes_with_500_open_files
limit thirty_two_processes_with_500_open_files 300
case_thirty_two_processes_with_500_open_files() { open_files 32 500; }

# The disk of the store is smaller than the quota: ENOSPC as well, and nothing breaks.
case_the_disk_of_the_store_is_full() {
	own_daemon
	mkdir "$TMPNEST_STORE_DIR"
	mount -t tmpfs -o size=24m,mode=700 small "$TMPNEST_STORE_DIR"
	trap 'end_small' EXIT
	runs 0 tmpnest run --nest disk --quota 1G -- sh -c '
		dd if=/dev/zero of=/tmp/big bs=64k 2>/tmp/said; tail -1 /tmp/big | wc -c >/dev/null
		dd if=/dev/zero of=/tmp/more bs=64k count=1 2>&1; stat -c "more %s" /tmp/more
		rm /tmp/big && dd if=/dev/zero of=/tmp/again bs=64k count=16 2>/dev/null && echo "room again"'
	contains 'dd' "$out" 'No space left on device'
	contains 'after rm' "$out" 'room again'
	eventually 5 nest_has disk state idle
	runs 0 tmpnest show disk --json --verify
}

end_small() {
	local status=$?
	(stop_daemon) || status=1
	umount "$TMPNEST_STORE_DIR" || status=1
	(exit "$status")
	end_case
}

main "$@"
