#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:python3:python3
. "${0%/*}/lib"

cat >program.py <<-'END'
	import fcntl, os, struct, sys, time
	def cell(path):  # what apt and dpkg do: a write lock on the whole lock file
	    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o640)
	    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
	    return fd
	fd = cell("/tmp/lock-frontend")
	pid = os.fork()
	if pid == 0:
	    try:
	        cell("/tmp/lock-frontend")
	    except (BlockingIOError, PermissionError):
	        other = os.open("/tmp/lock-frontend", os.O_RDWR)
	        who = fcntl.fcntl(other, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
	        os._exit(0 if struct.unpack("hhqqi4x", who)[4] == os.getppid() else 2)
	    os._exit(1)
	assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
	# byte ranges, many processes, one counter each under its own lock
	data = os.open("/tmp/data", os.O_RDWR | os.O_CREAT)
	os.pwrite(data, bytes(64), 0)
	pids = []
	for k in range(4):
	    pid = os.fork()
	    if pid == 0:
	        mine = os.open("/tmp/data", os.O_RDWR)
	        for i in range(100):
	            at = (i % 8) * 8
	            fcntl.lockf(mine, fcntl.LOCK_EX, 8, at)
	            n = struct.unpack("q", os.pread(mine, 8, at))[0]
	            os.pwrite(mine, struct.pack("q", n + 1), at)
	            fcntl.lockf(mine, fcntl.LOCK_UN, 8, at)
	        os._exit(0)
	    pids.append(pid)
	for pid in pids:
	    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
	assert sum(struct.unpack("8q", os.pread(data, 64, 0))) == 400
	# open file description locks: two descriptors of one process exclude each other
	OFD_SETLK = 37
	a, b = (os.open("/tmp/ofd", os.O_RDWR | os.O_CREAT) for _ in range(2))
	whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
	fcntl.fcntl(a, OFD_SETLK, whole)
	try:
	    fcntl.fcntl(b, OFD_SETLK, whole)
	    sys.exit("two holders")
	except BlockingIOError:
	    pass
	os.close(a)
	fcntl.fcntl(b, OFD_SETLK, whole)
	# lock, then compare inodes: the idiom against a removed lock file
	x = os.open("/tmp/x", os.O_RDWR | os.O_CREAT); fcntl.flock(x, fcntl.LOCK_EX); os.unlink("/tmp/x")
	y = os.open("/tmp/x", os.O_RDWR | os.O_CREAT); fcntl.flock(y, fcntl.LOCK_EX | fcntl.LOCK_NB)
	assert os.fstat(x).st_ino != os.fstat(y).st_ino == os.stat("/tmp/x").st_ino
	assert os.fstat(x).st_nlink == 0
END
/usr/bin/python3 program.py
