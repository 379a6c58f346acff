#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The life cycle: what evicts a nest and what does not, freezing, the wipe, the disk below.
. "$(dirname "$0")/../lib.sh"

only root a_full_disk_is_told_from_the_quota_and_heals
only root a_durable_nest_survives_a_power_cut
only root immutable_files_are_reported_and_tried_again
long five_hundred_sandboxes_killed_at_random_leave_nothing
long a_million_files_are_wiped_while_others_work
long evictions_and_creations_at_once
limit five_hundred_sandboxes_killed_at_random_leave_nothing 1200
limit a_million_files_are_wiped_while_others_work 1800
limit evictions_and_creations_at_once 300

store_of() { tmpnest daemon status --json | json "d['store']['$1']"; }
worker_is_new() { [ "$(worker_pid)" != "$1" ]; }
log() { cat "$TMPNEST_RUNTIME_DIR/tmpnestd.log"; }
nothing_is_wiped() { [ "$(store_of wiping)" = 0 ]; }

# A command as one who may enter the store by its path (nests/ has mode 0000).
in_store() {
	chmod 700 "$TMPNEST_STORE_DIR/nests" "$TMPNEST_STORE_DIR/trash"
	"$@"
	chmod 0 "$TMPNEST_STORE_DIR/nests" "$TMPNEST_STORE_DIR/trash"
}

kill_keeper() {
	local worker
	worker=$(worker_pid)
	kill -9 "$(daemon_pid)"
	eventually 10 eval "! kill -0 $worker 2>/dev/null || grep -q 'State:.*Z' /proc/$worker/status"
}

fill() { # NEST MIB
	tmpnest run --nest "$1" -- dd if=/dev/zero of=/tmp/fill bs=1M count="$2" status=none
	eventually 10 nest_has "$1" attachments 0
}

case_the_least_recently_used_idle_nest_goes_first() {
	own_daemon
	export TMPNEST_STORE_QUOTA=20M
	tmpnest daemon start
	fill first 6
	fill second 6
	fill third 6
	eventually 5 nest_has first state idle
	tmpnest run --nest first -- true # the second is the oldest now
	eventually 5 nest_has first state idle
	background holder tmpnest run --nest third -- sh -c 'echo in; exec sleep 100'
	wait_for_line holder in
	fill fourth 6
	eventually 5 eval '! nest_names | grep -qx second'
	equal nests "$(nest_names | sort | tr '\n' ' ')" 'first fourth third '
	contains 'the log' "$(log)" 'nest second of uid'
	# one that is frozen stays, and so does one in use: then a new one finds no room
	tmpnest freeze first
	tmpnest freeze fourth
	fill fifth 1
	tmpnest freeze fifth
	background full tmpnest run --nest sixth -- sh -c 'dd if=/dev/zero of=/tmp/f bs=64k; echo in; exec sleep 100'
	wait_for_line full in
	contains 'the end of the room' "$(cat full.log)" 'No space left'
	runs 1 tmpnest create seventh
	one_message
	contains message "$err" 'quota is used up'
	runs 125 tmpnest run -- true
	contains message "$err" 'no room in the store'
	differ 'refusals' "$(store_of refusals_total)" 0
	tmpnest thaw fourth
	runs 0 tmpnest create seventh
	equal 'nests' "$(nest_names | sort | tr '\n' ' ')" 'fifth first seventh sixth third '
	stop_daemon
}

case_the_policy_is_read_from_the_file_and_again_when_it_changes() {
	[ "$(id -u)" -ne 0 ] || skip 'a system daemon reads /etc alone'
	own_daemon
	export XDG_CONFIG_HOME=$TT_WORK/config
	mkdir -p config/tmpnest
	printf '[store]\nquota = 40M\nreserve = 1M\nquotum = 3\n' >config/tmpnest/tmpnest.conf
	tmpnest daemon start
	equal 'the limit' "$(store_of bytes_limit)" $((40 << 20))
	equal 'the reserve' "$(store_of reserve)" $((1 << 20))
	contains 'the log' "$(log)" quotum
	fill one 10
	printf '[store]\nquota = 4M\n' >config/tmpnest/tmpnest.conf
	eventually 5 no_nests
	equal 'the limit' "$(store_of bytes_limit)" $((4 << 20))
	stop_daemon
}

case_freeze_refuses_changes_and_thaw_allows_them() {
	tmpnest run --nest cold -- sh -c 'echo one >/tmp/f; mkdir /tmp/d'
	background writer tmpnest run --nest cold -- sh -c 'exec 3>>/tmp/open; echo made
		until [ -e '"$TT_WORK"'/go ]; do sleep 0.05; done
		echo x >&3 || echo "refused: $?"
		mv /tmp/f /tmp/g; rm -r /tmp/d; chmod 0 /tmp/f; cat /tmp/f; echo end'
	wait_for_line writer made
	runs 0 tmpnest freeze cold
	equal state "$(nest cold state)" frozen
	touch go
	wait_for_line writer end
	equal 'refusals' "$(grep -c 'Read-only file system' writer.log)" 3
	contains 'a write to an open file' "$(cat writer.log)" refused
	contains 'reading' "$(cat writer.log)" one
	runs 0 tmpnest show cold --verify
	runs 0 tmpnest thaw cold
	runs 0 tmpnest run --nest cold -- sh -c 'rm -r /tmp/f /tmp/d && ls -s /tmp/open'
	runs 3 tmpnest freeze none
	runs 2 tmpnest thaw
	end_background
	tmpnest evict --force cold
}

# What a shared mapping held before the freeze is in the store after it.
case_freeze_writes_back_shared_mappings() {
	background mapper tmpnest run --nest mapped -- "$TT_PYTHON" -c '
import mmap, time
f = open("/tmp/map", "w+b"); f.truncate(1 << 20)
m = mmap.mmap(f.fileno(), 1 << 20)
for i in range(0, 1 << 20, 4096): m[i] = 77
print("mapped", flush=True)
time.sleep(100)'
	wait_for_line mapper mapped
	tmpnest freeze mapped
	end_background
	eventually 10 nest_has mapped attachments 0
	runs 0 tmpnest run --nest mapped -- "$TT_PYTHON" -c '
d = open("/tmp/map", "rb").read()
assert len(d) == 1 << 20 and all(d[i] == 77 for i in range(0, 1 << 20, 4096))'
	tmpnest thaw mapped
	eventually 10 nest_has mapped attachments 0
	runs 0 tmpnest show mapped --verify
	tmpnest evict --force mapped
}

case_a_frozen_nest_outlives_its_time_and_its_sandbox() {
	background view tmpnest run --ttl 2s -- sh -c 'echo kept >/tmp/f; echo made; exec sleep 3'
	wait_for_line view made
	local name
	name=$(nest_names)
	tmpnest freeze "$name"
	sleep 5
	equal 'the nest' "$(nest_names)" "$name"
	equal 'its use' "$(nest "$name" inodes_used)" 1
	tmpnest thaw "$name"
	eventually 10 no_nests
}

case_a_ttl_waits_for_the_end_of_the_use() {
	background view tmpnest run --nest brief --ttl 1s -- sh -c 'echo made; sleep 4; echo x >/tmp/x && echo wrote'
	wait_for_line view made
	wait_for_line view wrote
	eventually 10 no_nests
}

case_gc_takes_what_nobody_has_used() {
	tmpnest create old
	background view tmpnest run --nest busy -- sh -c 'echo made; exec sleep 100'
	wait_for_line view made
	sleep 2
	runs 0 tmpnest gc
	equal 'what goes by itself' "$out" ''
	runs 0 tmpnest gc --unused-for 1h
	runs 0 tmpnest gc --dry-run --unused-for 1s
	contains 'what would go' "$out" 'would evict old'
	lacks 'what would go' "$out" busy
	equal 'nests' "$(nest_names | sort | tr '\n' ' ')" 'busy old '
	runs 0 tmpnest gc --unused-for 1s --json
	equal 'evicted' "$(json '[n["name"] for n in d["evicted"]]' <<<"$out")" '["old"]'
	equal 'nests' "$(nest_names)" busy
	runs 2 tmpnest gc --unused-for soon
	tmpnest evict --force busy
}

case_evict_force_ends_a_blocked_call() {
	background view tmpnest run --nest blocked -- "$TT_PYTHON" -c '
import os, sys, time
os.mkfifo("/tmp/p")
open("/tmp/held", "w").write("x")
print("made", flush=True)
n = 0
while True:
    try:
        for i in range(200): os.stat("/tmp/absent%d" % n) if os.path.exists("/tmp/absent%d" % n) else None; n += 1
    except OSError as e:
        break
    try: open("/tmp/f%d" % n, "w").write("x" * 100)
    except OSError as e:
        print("ended", e.errno, flush=True)
        break
time.sleep(100)'
	wait_for_line view made
	runs 0 tmpnest evict --force blocked
	wait_for_line view ended
	runs 0 tmpnest create blocked # the name is free at once
	end_background
	tmpnest evict blocked
}

case_a_large_tree_is_wiped_behind_the_users_back() {
	own_daemon
	local worker
	runs 0 tmpnest run --nest large -- sh -c 'cd /tmp; mkdir d; cd d; seq 20000 | xargs touch
		mkdir /tmp/shut; touch /tmp/shut/x; chmod 0 /tmp/shut
		i=0; while [ $i -lt 300 ]; do mkdir -p a; cd a; i=$((i + 1)); done; touch end'
	eventually 10 nest_has large attachments 0
	runs 0 tmpnest evict large
	runs 0 tmpnest create large
	tmpnest ls --json >listed
	# killed in the middle, the next one goes on
	worker=$(worker_pid)
	kill -9 "$worker"
	eventually 15 worker_is_new "$worker"
	eventually 60 trash_only_has_the_living
	eventually 10 nothing_is_wiped
	equal 'nests' "$(nest_names)" large
	equal 'its use' "$(nest large inodes_used)" 0
	stop_daemon
}

trash_only_has_the_living() { [ -z "$(in_store ls -A "$TMPNEST_STORE_DIR/trash")" ]; }

case_ls_shows_the_progress_of_a_wipe() {
	own_daemon
	tmpnest run --nest large -- sh -c 'cd /tmp; seq 30000 | xargs touch'
	eventually 10 nest_has large attachments 0
	tmpnest evict large
	local seen=0 before=99999999 now
	while now=$(tmpnest ls --json | json '[n["inodes_used"] for n in d if n["state"] == "evicting"]') && [ "$now" != '[]' ]; do
		now=${now//[^0-9]/}
		at_most 'what is left' "$now" "$before"
		before=$now seen=$((seen + 1))
	done
	[ $seen -gt 0 ] || skip 'it was wiped before anybody could look'
	stop_daemon
}

case_a_dead_keeper_loses_and_doubles_nothing() {
	own_daemon
	cat /proc/self/mounts >before
	tmpnest run --nest kept --ttl 1h -- sh -c 'echo one >/tmp/f; dd if=/dev/zero of=/tmp/g bs=1M count=3 status=none'
	tmpnest run --keep -- touch /tmp/post-mortem
	background ephemeral tmpnest run -- sh -c 'echo made; exec sleep 100'
	wait_for_line ephemeral made
	background used tmpnest run --nest used -- sh -c 'exec 3>/tmp/h; rm /tmp/h; echo xxx >&3; echo made; exec sleep 100'
	wait_for_line used made
	tmpnest create frozen && tmpnest freeze frozen
	kill_keeper
	tmpnest daemon start
	equal 'states' "$(tmpnest ls --json | json 'sorted((n["state"], n["ephemeral"]) for n in d if n["state"] != "evicting")')" \
		'[["detached", false], ["detached", false], ["detached", true], ["frozen", false]]'
	equal 'the account' "$(nest kept bytes_used) $(nest kept inodes_used)" "$(((3 << 20) + 4096)) 2"
	runs 0 tmpnest show kept --verify
	equal 'an unlinked file' "$(nest used inodes_used)" 0
	equal 'a limit' "$(nest kept ttl)" 3600
	runs 0 tmpnest run --nest kept -- cat /tmp/f
	equal content "$out" one
	runs 0 tmpnest run --nest used -- touch /tmp/again
	eventually 10 nothing_is_wiped
	equal 'the trash' "$(in_store ls -A "$TMPNEST_STORE_DIR/trash")" ''
	end_background
	cmp before /proc/self/mounts
	stop_daemon
}

# Another boot, as the next daemon sees it.
case_another_boot_wipes_all_but_the_durable() {
	own_daemon
	tmpnest run --nest scratch -- touch /tmp/f
	tmpnest create lasting --durable
	tmpnest run --nest lasting -- sh -c 'echo stays >/tmp/f'
	kill_keeper
	in_store sh -c 'sed -i "s/^boot .*/boot 00000000-1111-2222-3333-444444444444/" "$0"/nests/*/nest' "$TMPNEST_STORE_DIR"
	tmpnest daemon start
	equal nests "$(nest_names)" lasting
	runs 0 tmpnest run --nest lasting -- cat /tmp/f
	equal content "$out" stays
	eventually 10 nothing_is_wiped
	equal 'homes' "$(in_store ls "$TMPNEST_STORE_DIR/nests" | wc -l)" 1
	stop_daemon
}

case_a_damaged_store_starts_and_loses_nothing() {
	own_daemon
	local store=$TMPNEST_STORE_DIR name
	for name in good cut gone link; do tmpnest run --nest $name -- sh -c "echo $name >/tmp/f"; done
	for name in good cut gone link; do eventually 10 nest_has $name attachments 0; done
	tmpnest daemon stop
	eventually 10 daemon_is_gone
	in_store bash -c 'cd "$0/nests"; home() { dirname "$(grep -lx "name $1" */nest)"; }
		cut=$(home cut) gone=$(home gone) link=$(home link)
		truncate -s 40 $cut/nest
		rm $gone/nest
		mv $link/data $link/elsewhere; ln -s elsewhere $link/data
		echo foreign >foreign; mkdir other; echo x >other/file; ln -s /etc away' "$store"
	runs 0 tmpnest daemon start
	equal nests "$(nest_names)" good
	equal 'damaged' "$(store_of damaged)" 6
	for name in foreign other away 'is damaged' 'is missing' 'data is missing'; do
		contains 'the log' "$(log)" "$name"
	done
	runs 0 tmpnest gc
	contains 'gc' "$out" 'damaged: nests/foreign'
	equal 'files' "$(in_store sh -c 'cat "$0"/nests/*/data/tmp/f "$0"/nests/*/elsewhere/tmp/f "$0"/nests/foreign "$0"/nests/other/file' "$store" | sort | tr '\n' ' ')" \
		'cut foreign gone good link link x ' # the link shows what it leads to a second time
	runs 0 tmpnest gc --damaged
	eventually 10 nothing_is_wiped
	equal 'damaged' "$(store_of damaged)" 0
	equal 'homes' "$(in_store ls "$store/nests" | wc -l)" 1
	[ -e /etc/passwd ] || fail 'a link was followed'
	runs 0 tmpnest run --nest good -- cat /tmp/f
	stop_daemon
}

# ---- with a disk of its own ----------------------------------------------------------

own_disk() { # SIZE: a store on an ext4 of that size
	need mkfs.ext4 e2fsprogs
	own_daemon
	truncate -s "$1" disk.img
	mkfs.ext4 -q -E lazy_itable_init=0 disk.img
	mkdir -p "$TT_OWN/disk"
	mount -o loop disk.img "$TT_OWN/disk" || skip 'no loop device here'
	export TMPNEST_STORE_DIR=$TT_OWN/disk/s
}

end_disk() {
	stop_daemon
	umount "$TT_OWN/disk"
}

case_a_full_disk_is_told_from_the_quota_and_heals() {
	own_disk 64M
	trap 'end_background; umount -l "$TT_OWN/disk" 2>/dev/null; end_case' EXIT
	export TMPNEST_STORE_RESERVE=8M
	tmpnest daemon start
	runs 1 tmpnest run --nest full -- sh -c 'dd if=/dev/zero of=/tmp/f bs=64k 2>&1 | grep "No space"; rm -f /tmp/g; echo x >/tmp/g'
	contains 'what the sandbox sees' "$out" 'No space left'
	eventually 10 nest_has full attachments 0
	equal 'quota hits' "$(nest full quota_hits_total)" 0
	differ 'refusals for the disk' "$(nest full store_full_total)" 0
	contains 'the log' "$(log)" "not the nest's quota"
	contains 'show' "$(tmpnest show full)" 'disk full'
	[ "$(df -B1 --output=avail "$TT_OWN/disk" | tail -1)" -ge $((6 << 20)) ] || fail 'the reserve was used up'
	runs 0 tmpnest show full --verify
	# without a reserve the disk itself says no
	end_background
	tmpnest daemon stop
	eventually 10 daemon_is_gone
	export TMPNEST_STORE_RESERVE=0
	tmpnest daemon start
	runs 1 tmpnest run --nest full -- sh -c 'dd if=/dev/zero of=/tmp/h bs=64k 2>/dev/null; i=0
		while mkdir /tmp/$i-$(printf %0200d 0) 2>/tmp/err; do i=$((i + 1)); [ $i -lt 60000 ] || break; done; cat /tmp/err; echo x >/tmp/g'
	eventually 10 nest_has full attachments 0
	equal 'quota hits' "$(nest full quota_hits_total)" 0
	differ 'refusals for the disk' "$(nest full store_full_total)" 0
	runs 0 tmpnest show full --verify
	# space is back
	runs 0 tmpnest run --nest full -- sh -c 'rm /tmp/f /tmp/h && echo x >/tmp/i && cat /tmp/i'
	equal 'what works again' "$out" x
	# a quota's refusal is none of the disk's
	tmpnest create small --quota 1M
	runs 1 tmpnest run --nest small -- dd if=/dev/zero of=/tmp/f bs=64k count=100 status=none
	eventually 10 nest_has small attachments 0
	differ 'quota hits' "$(nest small quota_hits_total)" 0
	equal 'refusals for the disk' "$(nest small store_full_total)" 0
	end_disk
	trap end_case EXIT
}

# The disk as it is at one moment: what a power cut leaves of it.
case_a_durable_nest_survives_a_power_cut() {
	own_disk 64M
	trap 'end_background; umount -l "$TT_OWN/disk" 2>/dev/null; end_case' EXIT
	tmpnest create lasting --durable
	background writer tmpnest run --nest lasting -- "$TT_PYTHON" -c '
import os, time
d = os.open("/tmp", os.O_RDONLY)
f = os.open("/tmp/synced", os.O_RDWR | os.O_CREAT); os.write(f, b"a" * 300000); os.fsync(f); os.fsync(d)
g = os.open("/tmp/by-flag", os.O_WRONLY | os.O_CREAT | os.O_DSYNC); os.write(g, b"b" * 5000)
open("/tmp/tmp-name", "w").write("c" * 10); os.rename("/tmp/tmp-name", "/tmp/renamed")
h = os.open("/tmp/renamed", os.O_RDWR); os.fdatasync(h); os.fsync(d)
import mmap
m = os.open("/tmp/mapped", os.O_RDWR | os.O_CREAT); os.ftruncate(m, 4096); p = mmap.mmap(m, 4096); p[0:3] = b"map"; p.flush(); os.fsync(d)
print("synced", flush=True); time.sleep(100)'
	wait_for_line writer synced
	cp --sparse=always disk.img cut.img # the loop device writes through the page cache of this file
	end_background
	eventually 10 nest_has lasting attachments 0
	stop_daemon
	umount "$TT_OWN/disk"
	mount -o loop cut.img "$TT_OWN/disk"
	in_store sh -c 'sed -i "s/^boot .*/boot another/" "$0"/nests/*/nest' "$TMPNEST_STORE_DIR"
	tmpnest daemon start
	equal nests "$(nest_names)" lasting
	runs 0 tmpnest show lasting --verify
	runs 0 tmpnest run --nest lasting -- sh -c 'cd /tmp; wc -c <synced; wc -c <by-flag; cat renamed; echo; head -c 3 mapped'
	equal 'content' "$(tr '\n' ' ' <<<"$out")" '300000 5000 cccccccccc map '
	end_disk
	trap end_case EXIT
}

case_immutable_files_are_reported_and_tried_again() {
	own_disk 64M
	trap 'end_background; umount -l "$TT_OWN/disk" 2>/dev/null; end_case' EXIT
	need chattr e2fsprogs
	tmpnest run --nest fixed -- sh -c 'mkdir -p /tmp/d/e; echo x >/tmp/d/e/fixed; echo y >/tmp/other'
	eventually 10 nest_has fixed attachments 0
	chattr +i "$TMPNEST_STORE_DIR"/nests/*/data/tmp/d/e/fixed
	runs 0 tmpnest evict fixed
	eventually 10 nothing_is_wiped
	eventually 10 eval '[ "$(store_of stuck)" -gt 0 ]'
	contains 'the log' "$(log)" 'wipe: fixed: Operation not permitted'
	local lines
	lines=$(log | grep -c wipe)
	sleep 3
	equal 'lines in the log' "$(log | grep -c wipe)" "$lines"
	contains status "$(tmpnest daemon status)" 'cannot be removed'
	equal 'what is left' "$(find "$TMPNEST_STORE_DIR/trash" -type f | wc -l)" 1
	chattr -i "$(find "$TMPNEST_STORE_DIR/trash" -type f)"
	runs 0 tmpnest gc
	eventually 10 trash_is_empty
	eventually 10 eval '[ "$(store_of stuck)" = 0 ]'
	end_disk
	trap end_case EXIT
}

# ---- long ----------------------------------------------------------------------------

marked() { grep -lzxF "TT_LIFE=$1" /proc/[0-9]*/environ 2>/dev/null || true; }
none_marked() { [ -z "$(marked "$1")" ]; }
rss_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$(worker_pid)/status"; }

case_five_hundred_sandboxes_killed_at_random_leave_nothing() {
	own_daemon
	local mark i group pids=() fds rss
	mark=$(unique)
	tmpnest daemon start
	# what every daemon has after a first use belongs to its start level
	for i in {1..20}; do tmpnest run -- sh -c 'echo x >/tmp/x'; done
	eventually 20 no_nests
	cat /proc/self/mounts >before
	fds=$(ls "/proc/$(daemon_pid)/fd" | wc -l) rss=$(rss_kib)
	for i in {1..500}; do
		TT_LIFE=$mark setsid tmpnest run -- sh -c '
			while :; do echo x >>/tmp/x; mkdir /tmp/d; mkfifo /tmp/p; rm -r /tmp/d /tmp/p; done' >/dev/null 2>&1 &
		pids+=($!)
		if [ $((i % 4)) -eq 0 ]; then
			sleep "0.0$((RANDOM % 10))"
			for group in "${pids[@]}"; do kill -9 -- "-$group" 2>/dev/null || kill -9 "$group" 2>/dev/null || true; done
			pids=()
			cmp before /proc/self/mounts
		fi
	done
	eventually 60 none_marked "$mark"
	eventually 60 no_nests
	eventually 60 trash_is_empty
	equal 'files' "$(store_entries "$TMPNEST_STORE_DIR")" ''
	eventually 60 eval '[ -z "$(ls -A "$TMPNEST_RUNTIME_DIR/leases")" ]'
	equal 'descriptors' "$(ls "/proc/$(daemon_pid)/fd" | wc -l)" "$fds"
	cmp before /proc/self/mounts
	echo "memory of the worker: $rss KiB before, $(rss_kib) KiB after"
	at_most 'memory of the worker' "$(rss_kib)" $((rss + rss / 4 + 1024))
	stop_daemon
}

case_a_million_files_are_wiped_while_others_work() {
	own_daemon
	runs 0 tmpnest run --nest million --inodes max -- sh -c 'cd /tmp; for d in 0 1 2 3 4 5 6 7 8 9; do mkdir $d; (cd $d; seq 100000 | xargs touch); done'
	eventually 20 nest_has million attachments 0
	equal 'inodes' "$(nest million inodes_used)" 1000010
	runs 0 tmpnest evict million
	runs 0 tmpnest run --nest million -- sh -c 'echo new >/tmp/f; cat /tmp/f'
	eventually 1500 nothing_is_wiped
	equal 'nests' "$(nest_names)" million
	stop_daemon
}

case_evictions_and_creations_at_once() {
	own_daemon
	tmpnest daemon start
	local i pids=()
	for i in {1..8}; do
		(for n in {1..40}; do
			tmpnest run --nest "n$((n % 3))" -- sh -c 'echo x >/tmp/x; cat /tmp/x' || true
			tmpnest evict --force "n$(((n + i) % 3))" || true
			[ $((n % 10)) -ne 0 ] || tmpnest gc --unused-for 1s || true
		done) >"loop$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || true; done
	runs 0 tmpnest daemon status
	for i in 0 1 2; do tmpnest evict --force "n$i" || true; done
	eventually 20 no_nests
	eventually 20 trash_is_empty
	lacks 'the log' "$(log)" 'ended unexpectedly'
	stop_daemon
}

main "$@"
