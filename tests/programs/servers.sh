#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Servers with sockets in /tmp: PostgreSQL, Redis, tmux, ssh-agent.
. "$(dirname "$0")/../lib.sh"

case_postgresql_with_its_socket_in_tmp() {
	local bin as=()
	bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)
	[ -n "$bin" ] && [ -x "$bin/initdb" ] || {
		[ -z "${TT_STRICT:-}" ] || fail 'no PostgreSQL server (package postgresql)'
		skip 'no PostgreSQL server (install postgresql)'
	}
	# PostgreSQL refuses to run as root
	if [ "$TT_ROLE" = root ]; then
		as=(--run-as "$TT_USER")
		tmpnest daemon status || tmpnest daemon start # as root, before run becomes another user
		mkdir work
		chown "$TT_USER:" work
		cd work
	fi
	background server tmpnest run --nest pg "${as[@]}" -- sh -ec "
		$bin/initdb -D /tmp/data -U tester --auth trust --no-sync >/tmp/initdb.log
		exec $bin/postgres -D /tmp/data -k /tmp -c listen_addresses="
	wait_for_line server 'ready to accept connections'
	psql_inside() { tmpnest run --nest pg "${as[@]}" -- psql -h /tmp -U tester -At -d postgres "$@"; }
	psql_inside -c 'create table t (id int primary key, word text)' \
		-c "insert into t select n, 'word ' || n from generate_series(1, 2000) n"
	equal 'rows' "$(psql_inside -c "select count(*), max(length(word)) from t")" '2000|9'
	psql_inside -c 'vacuum full t' -c checkpoint
	equal 'listing' "$(tmpnest run --nest pg "${as[@]}" -- sh -c 'ls -A /tmp | tr "\n" " "')" \
		'.s.PGSQL.5432 .s.PGSQL.5432.lock data initdb.log '
	tmpnest run --nest pg "${as[@]}" -- sh -c "test -S /tmp/.s.PGSQL.5432"
	tmpnest evict --force pg
}

case_redis_on_a_socket() {
	need redis-server redis-server
	background server tmpnest run --nest redis -- \
		redis-server --port 0 --unixsocket /tmp/redis.sock --unixsocketperm 700 --dir /tmp --save 3600 1
	eventually 10 tmpnest run --nest redis -- redis-cli -s /tmp/redis.sock ping
	inside() { tmpnest run --nest redis -- redis-cli -s /tmp/redis.sock "$@"; }
	equal 'set' "$(inside set bird wren)" OK
	equal 'get from another command' "$(inside get bird)" wren
	equal 'a save to disk' "$(inside save)" OK
	tmpnest run --nest redis -- test -s /tmp/dump.rdb
	runs 1 tmpnest run -- redis-cli -s /tmp/redis.sock ping
	tmpnest evict --force redis
}

case_tmux_sessions_are_shared_by_the_commands_of_a_nest() {
	need tmux tmux
	unset TMUX TMUX_TMPDIR
	background server tmpnest run --nest tmux -- sh -c '
		tmux -f /dev/null new-session -d -s work "echo typed; exec sleep 60" && echo started && sleep 60'
	wait_for_line server started
	equal 'sessions' "$(tmpnest run --nest tmux -- tmux ls -F '#{session_name}')" work
	contains 'the pane' "$(tmpnest run --nest tmux -- sh -c 'sleep 0.5; tmux capture-pane -p -t work')" typed
	runs 1 tmpnest run -- tmux ls
	tmpnest run --nest tmux -- tmux kill-server
	tmpnest evict --force tmux
}

case_ssh_agent() {
	need ssh-agent openssh-client
	runs 0 tmpnest run -- sh -ec '
		eval "$(ssh-agent -s)" >/dev/null
		case $SSH_AUTH_SOCK in /tmp/*) ;; *) echo "socket: $SSH_AUTH_SOCK"; exit 1 ;; esac
		ssh-keygen -q -t ed25519 -N "" -C nest-key -f /tmp/key
		ssh-add -q /tmp/key
		ssh-add -l
		ssh-agent -k >/dev/null
		[ ! -e "$SSH_AUTH_SOCK" ]'
	contains 'the key' "$out" nest-key
}

main "$@"
