#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Several users on one daemon: none takes what the others need.
. "$(dirname "$0")/../lib.sh"

roles root

# A system daemon with limits for each user: start_with KEY=VALUE...
start_with() {
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE" "$TT_OWN"
	env "$@" tmpnest daemon start
}

room() { as_user tmpnest run --nest "$1" -- sh -c "head -c $2 /dev/zero >/tmp/f; stat -c %s /tmp/f"; }

case_one_users_nests_share_his_bytes() {
	start_with TMPNEST_STORE_USER_QUOTA=4M
	as_user_words
	# in use: an idle one would be evicted
	background first "${AS_USER[@]}" tmpnest run --nest a -- sh -c 'head -c 3M /dev/zero >/tmp/f; echo made; exec sleep 100'
	wait_for_line first made
	capture room b 3M
	contains 'the second' "$err" 'No space left'
	at_most 'both together' "$((3145728 + out))" 4194304
	# root is not limited by that, and the user can go on with what he has freed
	runs 0 tmpnest run -- sh -c 'head -c 6M /dev/zero >/tmp/f'
	as_user tmpnest run --nest a -- rm /tmp/f
	runs 0 room b 3M
	equal 'after the first was freed' "$out" 3145728
	end_background
	as_user tmpnest evict --force b a
}

case_memory_nests_count_for_their_user() {
	start_with TMPNEST_STORE_USER_QUOTA=4M
	capture as_user tmpnest run --store memory -- sh -c 'head -c 6M /dev/zero >/tmp/f'
	contains 'memory' "$err" 'No space left'
}

case_idle_nests_of_the_same_user_make_room() {
	start_with TMPNEST_STORE_USER_QUOTA=4M
	tmpnest run --nest roots -- sh -c 'head -c 3M /dev/zero >/tmp/f'
	runs 0 room a 3500K
	# what the user does not use goes first, and nobody else's
	runs 0 as_user tmpnest create b
	runs 0 as_user tmpnest run --nest b -- sh -c 'for i in 1 2 3 4 5 6 7 8; do head -c 2M /dev/zero >/tmp/f && exit; sleep 0.5; done; exit 1'
	equal 'of the user' "$(as_user tmpnest ls --json | json '[n["name"] for n in d if n["state"] != "evicting"]')" '["b"]'
	equal "root's" "$(tmpnest ls --json | json '[n["name"] for n in d if n["state"] != "evicting" and n["owner_uid"] == 0]')" '["roots"]'
	as_user tmpnest evict --force b
	tmpnest evict --force roots
}

case_one_users_inodes_and_nests_are_counted() {
	start_with TMPNEST_STORE_USER_INODES=100 TMPNEST_STORE_USER_NESTS=3
	capture as_user tmpnest run --nest a -- sh -c 'for i in $(seq 200); do touch /tmp/f$i || break; done; ls /tmp | wc -l'
	at_most 'files' "$out" 100
	[ "$out" -ge 80 ] || fail "only $out files"
	as_user tmpnest evict --force a
	as_user tmpnest create b
	as_user tmpnest create c
	as_user tmpnest create d
	capture as_user tmpnest create e
	differ 'status of one nest too many' "$status" 0
	contains 'the reason' "$err" user_nests
	runs 0 tmpnest create f
	as_user tmpnest evict b
	runs 0 as_user tmpnest create e
	as_user tmpnest evict c d e
	tmpnest evict f
}

case_one_users_sandboxes_are_counted() {
	start_with TMPNEST_STORE_USER_SANDBOXES=2
	as_user_words
	background one "${AS_USER[@]}" tmpnest run --nest a -- sh -c 'echo made; exec sleep 60'
	background two "${AS_USER[@]}" tmpnest run --nest a -- sh -c 'echo made; exec sleep 60'
	wait_for_line one made
	wait_for_line two made
	capture as_user tmpnest run -- true
	differ 'status of the third' "$status" 0
	contains 'the reason' "$err" 'too many sandboxes of this user'
	runs 0 tmpnest run -- true
	end_background
	eventually 10 as_user tmpnest run -- true
	as_user tmpnest evict --force a
}

# Connections that say nothing: a user has 16 on each socket, and the others theirs.
case_idle_connections_of_one_user_keep_nobody_out() {
	start_with A=
	as_user_words
	background hog "${AS_USER[@]}" "$TT_PYTHON" -c '
import select, socket, sys, time
held = []
for kind, name in ((socket.SOCK_STREAM, "control"), (socket.SOCK_SEQPACKET, "attach")) * 100:
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(5)
    try:
        s.connect(sys.argv[1] + "/" + name + ".sock")
        held.append(s)
    except OSError:
        pass
time.sleep(1)
away = select.select(held, [], [], 0)[0]  # they were told so, or closed
print("held %d" % (len(held) - len(away)), flush=True)
time.sleep(60)' "$TMPNEST_RUNTIME_DIR"
	wait_for_line hog held
	at_most 'connections of one user' "$(sed -n 's/^held //p' "$TT_WORK/hog.log")" 32
	runs 0 tmpnest ls
	runs 0 tmpnest run -- true
}

# A nest that writes names and data as fast as it can, from many processes: the other's requests
# are served all the same. How fast is bench/fairness.sh's concern.
case_a_flooding_nest_does_not_stop_another() {
	start_with A=
	as_user_words
	background flood "${AS_USER[@]}" tmpnest run --nest busy --inodes 100000 -- sh -c '
		cd /tmp
		for i in 1 2 3 4 5 6 7 8; do
			(while :; do for j in 1 2 3 4 5 6 7 8 9; do : >f$i-$j; mv f$i-$j g$i-$j; rm g$i-$j; done; done) &
			(while :; do dd if=/dev/zero of=d$i bs=256k count=8 conv=notrunc 2>/dev/null; done) &
		done
		echo made; wait'
	wait_for_line flood made
	runs 0 timeout 60 tmpnest run --nest quiet -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >/tmp/f$i; cat /tmp/f$i; done'
	equal 'what the other nest did' "$(xargs <<<"$out")" '1 2 3 4 5 6 7 8 9 10'
	runs 0 timeout 60 tmpnest ls
	end_background
	as_user tmpnest evict --force busy
	tmpnest evict --force quiet
}

main "$@"
