#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:python3:python3 command:curl:curl
. "${0%/*}/lib"

cat >server.py <<-'END'
	import http.server, os, socketserver
	os.mkdir("/tmp/root")
	open("/tmp/root/f", "wb").write(os.urandom(200000))
	class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
	    pass
	class Handler(http.server.SimpleHTTPRequestHandler):
	    def __init__(self, *a):
	        super().__init__(*a, directory="/tmp/root")
	    def address_string(self):
	        return "unix"
	Server("/tmp/h.sock", Handler).serve_forever()
END
/usr/bin/python3 server.py 2>log &
becomes test -S h.sock
for i in $(seq 8); do curl -sf --unix-socket h.sock -o got$i http://nest/f & got+=($!); done
for pid in "${got[@]}"; do wait "$pid"; done
for i in $(seq 8); do cmp root/f got$i; done
