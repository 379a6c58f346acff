#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:nginx:nginx-light command:curl:curl
. "${0%/*}/lib"

mkdir -p root run
noise 300000 >root/file
cat >conf <<-'END'
	daemon off;
	pid /tmp/run/pid;
	error_log /tmp/run/error.log;
	events {}
	http {
		access_log /tmp/run/access.log;
		client_body_temp_path /tmp/run/body;
		proxy_temp_path /tmp/run/proxy;
		proxy_buffers 2 4k;
		proxy_busy_buffers_size 4k;
		proxy_cache_path /tmp/run/cache keys_zone=k:1m;
		fastcgi_temp_path /tmp/run/f;
		uwsgi_temp_path /tmp/run/u;
		scgi_temp_path /tmp/run/s;
		client_max_body_size 10m;
		client_body_buffer_size 8k;
		server { listen unix:/tmp/run/back; root /tmp/root; }
		server { listen unix:/tmp/run/front;
			location / { proxy_pass http://unix:/tmp/run/back:; proxy_cache k; proxy_cache_valid any 1h; } }
	}
END
as_root=()
[ "$(id -u)" -ne 0 ] || as_root=(-g 'user root root;')
nginx "${as_root[@]}" -c /tmp/conf -p /tmp/run -e /tmp/run/error.log &
server=$!
becomes test -S run/front
for i in 1 2 3; do
	curl -sf --unix-socket /tmp/run/front http://nest/file | cmp - root/file
done
[ -n "$(find run/cache -type f)" ] || fail 'nothing was cached'
mv root/file root/other
curl -sf --unix-socket /tmp/run/front http://nest/file | wc -c | grep -qx 300000 || fail 'not from the cache'
kill -USR1 $server
kill -QUIT $server
wait $server
[ ! -e run/front ] && [ ! -e run/pid ] || fail 'the socket or the pid file is still there'
