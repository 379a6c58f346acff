#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What clients of the system's daemon send must not hold it up for others: descriptors on a file
# system that a user serves himself, and that never answers.
. "$(dirname "$0")/../lib.sh"
roles root
TT_SHARED_DAEMON=no

# A file system with one file; it says nothing to whoever closes it, or asks about it.
write_server() {
	cat >"$TT_WORK/server.py" <<'END'
import ctypes, os, struct, sys
where = sys.argv[1]
fuse = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fuse
if libc.mount(b"deaf", where.encode(), b"fuse.deaf", 0, options.encode()) < 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
def attr(ino, mode): return struct.pack("<QQQQQQIIIIIIIIII", ino, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
def reply(unique, error, data=b""): os.write(fuse, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
while True:
    try: request = os.read(fuse, 1 << 20)
    except OSError: break
    _, op, unique, node = struct.unpack_from("<IIQQ", request)
    if op == 26: reply(unique, 0, struct.pack("<IIIIHHIIHHI", 7, 31, 65536, 0, 8, 8, 65536, 1, 0, 0, 0) + bytes(28))
    elif op == 1: reply(unique, 0, struct.pack("<QQQQII", 2, 0, 10**6, 10**6, 0, 0) + attr(2, 0o100666))
    elif op == 3 and node == 1: reply(unique, 0, struct.pack("<QII", 10**6, 0, 0) + attr(1, 0o40777))
    elif op == 14: reply(unique, 0, struct.pack("<QII", 0, 0, 0))
    elif op in (25, 17, 3, 39, 40):
        print("asked: %d" % op, flush=True)  # and gets no answer
    elif op in (2, 36, 42): pass
    else: reply(unique, 38)
END
	cat >"$TT_WORK/send.py" <<'END'
import array, os, socket, struct, sys
place, attach, control, times = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
fds = array.array("i", [os.open(place, os.O_RDWR)] * 3)
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
for i in range(times):
    for path, kind, text in ((attach, socket.SOCK_SEQPACKET, bytes(120)), (control, socket.SOCK_STREAM, b'{"method":"org.tmpnest.Control.ListNests"}\0')):
        s = socket.socket(socket.AF_UNIX, kind)
        s.connect(path)
        try:
            s.sendmsg([text], rights)
            s.settimeout(5)
            s.recv(65536)
        except OSError as e: print("send: %s" % e)
        s.close()
print("sent", flush=True)
os.kill(os.getpid(), 9)  # it does not close them itself
END
	cat >"$TT_WORK/flood.py" <<'END'
import array, os, socket, sys, time
place, attach, control = sys.argv[1:4]
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [os.open(place, os.O_RDWR)] * 15))]
many = []
for path, kind in ((attach, socket.SOCK_SEQPACKET), (control, socket.SOCK_STREAM)):
    for i in range(10):
        s = socket.socket(socket.AF_UNIX, kind)
        s.connect(path)
        many.append(s)
time.sleep(1)  # all are accepted: nothing speaks against them yet
for i in range(40):  # on the last one again and again; no message is ever whole
    for s in many[-1:] if i else many:
        try: s.sendmsg([b"x"], rights)
        except OSError: pass  # turned away
print("sent", flush=True)
os.kill(os.getpid(), 9)
END
	chmod 644 "$TT_WORK"/*.py
}

serve_deaf() {
	write_server
	mkdir "$TT_WORK/deaf"
	background server "$TT_PYTHON" "$TT_WORK/server.py" "$TT_WORK/deaf"
	trap 'status=$?; end_background; umount -l "$TT_WORK/deaf" 2>/dev/null || true; set +e; (exit $status); end_case' EXIT
	wait_for_line server mounted
}

# Descriptors of the worker on the file system that never answers, but for those that are being
# closed: each has a thread then. To look asks nobody.
strange_descriptors() { find "/proc/$WORKER/fd" -lname '*/file' | wc -l; }
no_strange_descriptor() { [ "$(strange_descriptors)" -eq 0 ]; }
threads() { ls "/proc/$WORKER/task" | wc -l; }
threads_are_fewer_than() { [ "$(threads)" -lt "$1" ]; }

case_a_descriptor_that_cannot_be_closed_holds_nobody_up() {
	own_daemon
	tmpnest run --nest before -- true
	serve_deaf
	as_user_words
	background sender "${AS_USER[@]}" "$TT_PYTHON" "$TT_WORK/send.py" "$TT_WORK/deaf/file" \
		"$TMPNEST_RUNTIME_DIR/attach.sock" "$TMPNEST_RUNTIME_DIR/control.sock" 8
	wait_for_line sender sent
	wait_for_line server 'asked: 25'
	# others are served: a start, a look, and the one that was there
	runs 0 timeout 30 tmpnest run -- true
	runs 0 timeout 30 tmpnest ls
	runs 0 timeout 30 tmpnest run --nest before -- true
	# when it goes, all is closed, and its user is welcome again
	end_background
	umount -l "$TT_WORK/deaf" || true
	eventually 20 as_user timeout 10 tmpnest ls --system
	tmpnest evict --force before
}

# Nor do many of them: what waits of one user is little, the rest is not received, and none is left
# open. On connections that he made before, and again and again on one, as well.
case_a_flood_of_them_leaves_none() {
	local before
	own_daemon
	tmpnest run -- true
	WORKER=$(worker_pid) # it cannot be asked for when everybody is turned away
	before=$(threads)
	serve_deaf
	as_user_words
	background sender "${AS_USER[@]}" "$TT_PYTHON" "$TT_WORK/flood.py" "$TT_WORK/deaf/file" \
		"$TMPNEST_RUNTIME_DIR/attach.sock" "$TMPNEST_RUNTIME_DIR/control.sock"
	wait_for_line sender sent
	wait_for_line server 'asked: 25'
	runs 0 timeout 30 tmpnest run -- true
	runs 0 timeout 30 tmpnest ls
	# on each socket less than WAITING_OF_UID and one message more; the control socket closes the
	# proofs of the connections as well, when their time is over
	sleep 11
	echo "threads: $before before, $(threads) now; descriptors: $(strange_descriptors)"
	at_least 'threads that close' "$(threads)" $((before + 8))
	at_most 'threads that close' "$(threads)" $((before + 2 * (3 + 16) + 10))
	no_strange_descriptor || fail "$(strange_descriptors) descriptors are left open"
	end_background
	umount -l "$TT_WORK/deaf" || true
	eventually 20 threads_are_fewer_than $((before + 4))
	no_strange_descriptor || fail "$(strange_descriptors) descriptors are left open"
	eventually 20 as_user timeout 10 tmpnest ls --system
}

main "$@"
