#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Who may use which daemon, and with which rights a payload runs.
. "$(dirname "$0")/../lib.sh"

only root root_payloads_cannot_mount_and_are_in_a_user_namespace the_root_daemon_serves_root_and_a_plain_user \
	a_root_nest_gives_files_their_callers_ids
only user the_users_daemon_is_for_its_user_only another_group_is_refused_with_both_named

case_a_payload_has_no_capabilities_and_no_new_privileges() {
	runs 0 tmpnest run -- grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status
	equal 'effective' "$(awk '/CapEff/ { print $2 }' <<<"$out")" 0000000000000000
	equal 'permitted' "$(awk '/CapPrm/ { print $2 }' <<<"$out")" 0000000000000000
	equal 'ambient' "$(awk '/CapAmb/ { print $2 }' <<<"$out")" 0000000000000000
	equal 'no_new_privs' "$(awk '/NoNewPrivs/ { print $2 }' <<<"$out")" 1
}

case_root_payloads_cannot_mount_and_are_in_a_user_namespace() {
	runs 0 tmpnest run -- readlink /proc/self/ns/user
	differ 'the user namespace' "$out" "$(readlink /proc/self/ns/user)"
	capture tmpnest run -- mount -t tmpfs none /mnt
	differ 'status of mount' "$status" 0
	runs 0 tmpnest run --keep-caps -- grep CapEff /proc/self/status
	differ 'effective with --keep-caps' "$(awk '{ print $2 }' <<<"$out")" 0000000000000000
}

case_run_as_changes_the_ids_first() {
	[ "$TT_ROLE" = root ] || {
		runs 125 tmpnest run --run-as root -- true
		one_message
		return
	}
	mkdir -p user
	chown "$TT_USER:" user
	cd user
	runs 0 tmpnest run --run-as "$TT_USER" -- sh -c 'id -u; id -g; touch /tmp/f ./g; stat -c %u /tmp/f; stat -c "%u %a" /tmp'
	equal 'ids' "$(xargs <<<"$out")" "$(id -u "$TT_USER") $(id -g "$TT_USER") $(id -u "$TT_USER") $(id -u "$TT_USER") 1777"
	equal 'owner on the host' "$(stat -c %U g)" "$TT_USER"
	runs 125 tmpnest run --run-as no-such-user-here -- true
	one_message
}

case_the_root_daemon_serves_root_and_a_plain_user() {
	own_daemon
	chmod 755 "$TT_WORK" "$TT_BASE"
	tmpnest daemon start
	local me
	me=$(daemon_pid)
	runs 0 tmpnest run --nest mine -- sh -c 'echo root >/tmp/f; id -u'
	runs 0 as_user tmpnest run --nest mine -- sh -c 'ls -A /tmp; echo user >/tmp/f; cat /tmp/f; stat -c %u /tmp/f /tmp; id -u'
	local uid
	uid=$(id -u "$TT_USER")
	equal 'what the user sees' "$(xargs <<<"$out")" "user $uid $uid $uid"
	equal 'it was the same daemon' "$(daemon_pid)" "$me"
	equal 'root sees both' "$(tmpnest ls --json | json 'sorted(n["owner_uid"] for n in d if n["state"] != "evicting")')" "[0, $uid]"
	equal 'the user sees one' "$(as_user tmpnest ls --json | json '[n["owner_uid"] for n in d if n["state"] != "evicting"]')" "[$uid]"
	equal "root's file" "$(tmpnest run --nest mine -- cat /tmp/f)" root
	tmpnest create private
	runs 3 as_user tmpnest show private
	runs 3 as_user tmpnest evict private
	capture as_user tmpnest daemon stop
	equal 'status of daemon stop by the user' "$status" 4
	# two commands of the user meet in one nest
	as_user_words
	background server "${AS_USER[@]}" tmpnest run --nest mine -- "$TT_BUILD/tests/tools/unix-socket" listen /tmp/s
	wait_for_line server listening
	runs 0 as_user tmpnest run --nest mine -- "$TT_BUILD/tests/tools/unix-socket" connect /tmp/s
	runs 0 as_user tmpnest evict --force mine
	end_background
	eventually 5 eval '[ "$(tmpnest ls --json | json "len([n for n in d if n[\"state\"] != \"evicting\"])")" = 2 ]'
	stop_daemon
}

case_a_root_nest_gives_files_their_callers_ids() {
	# with kept capabilities a payload of root can be several users
	runs 0 tmpnest run --keep-caps -- sh -c "
		setpriv --reuid $TT_USER --regid $TT_USER --clear-groups sh -c 'echo x >/tmp/f; mkdir /tmp/d; cat /tmp/f'
		stat -c '%u %g' /tmp/f /tmp/d"
	local ids
	ids="$(id -u "$TT_USER") $(id -g "$TT_USER")"
	equal 'owner' "$(xargs <<<"$out")" "x $ids $ids"
}

case_the_users_daemon_is_for_its_user_only() {
	tmpnest daemon status || tmpnest daemon start
	equal 'mode of the attach socket' "$(stat -c %a "$TMPNEST_RUNTIME_DIR/attach.sock")" 600
	equal 'mode of the control socket' "$(stat -c %a "$TMPNEST_RUNTIME_DIR/control.sock")" 600
	equal 'owner of the daemon' "$(stat -c %U "/proc/$(daemon_pid)")" "$(id -un)"
}

case_another_group_is_refused_with_both_named() {
	[ -n "$TT_GROUP" ] || skip 'the user has no second group (root makes one)'
	tmpnest daemon status || tmpnest daemon start
	runs 125 sg "$TT_GROUP" -c 'tmpnest run -- true'
	one_message
	contains 'its own group' "$err" "$(id -gn)"
	contains 'the other group' "$err" "$TT_GROUP"
}

case_a_sandbox_cannot_talk_to_the_daemon_even_with_the_socket() {
	# a plain bwrap shows the sockets, but its user namespace is another one
	tmpnest daemon status || tmpnest daemon start
	capture bwrap --unshare-user --bind / / --dev-bind /dev /dev tmpnest ls
	differ 'status of ls' "$status" 0
	capture bwrap --unshare-user --bind / / --dev-bind /dev /dev tmpnest run -- echo got-in
	lacks 'run' "$out" got-in
}

case_the_keeper_is_not_dumpable() {
	tmpnest daemon status || tmpnest daemon start
	local pid
	pid=$(daemon_pid)
	if [ "$TT_ROLE" = user ]; then
		capture ls "/proc/$pid/root/"
		differ 'status of looking through the keeper' "$status" 0
		capture nsenter --target "$pid" --user --mount true
		differ 'status of nsenter' "$status" 0
	fi
	equal 'owner of /proc/PID/mem' "$(stat -c %u "/proc/$pid/mem" 2>/dev/null || echo hidden)" 0
}

main "$@"
