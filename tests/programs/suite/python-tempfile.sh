#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:python3:python3
. "${0%/*}/lib"

cat >program.py <<-'END'
	import concurrent.futures, dbm.dumb, io, mailbox, mmap, os, pickle, shelve, shutil, sqlite3, stat, tempfile, zipfile
	from multiprocessing import Pool, shared_memory
	assert tempfile.gettempdir() == "/tmp"
	with tempfile.TemporaryFile() as f:
	    f.write(b"y" * 5000)
	    assert os.fstat(f.fileno()).st_nlink == 0
	    m = mmap.mmap(f.fileno(), 0) if f.flush() is None else None
	    assert m[4999] == ord("y")
	fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o600)
	os.write(fd, b"linked later")
	os.link(f"/proc/self/fd/{fd}", "/tmp/later", src_dir_fd=os.open("/", os.O_RDONLY), follow_symlinks=True)
	assert open("/tmp/later").read() == "linked later"
	with tempfile.NamedTemporaryFile() as f:
	    f.write(b"x"); f.flush()
	    assert stat.S_IMODE(os.stat(f.name).st_mode) == 0o600
	assert not os.path.exists(f.name)
	with shelve.open("/tmp/shelf") as s:
	    for i in range(200): s[str(i)] = list(range(i))
	with shelve.open("/tmp/shelf") as s:
	    assert len(s) == 200 and s["7"] == list(range(7))
	box = mailbox.Maildir("/tmp/mail"); box.add("Subject: wren\n\nbody"); assert len(mailbox.Maildir("/tmp/mail")) == 1
	mb = mailbox.mbox("/tmp/mbox"); mb.lock(); mb.add("Subject: a\n\nb"); mb.flush(); mb.unlock(); mb.close()
	assert not os.path.exists("/tmp/mbox.lock")
	with zipfile.ZipFile("/tmp/a.zip", "w") as z:
	    for i in range(50): z.writestr(f"d/{i}", "x" * i)
	zipfile.ZipFile("/tmp/a.zip").extractall("/tmp/unzipped")
	assert len(os.listdir("/tmp/unzipped/d")) == 50
	shutil.copytree("/tmp/unzipped", "/tmp/copied"); shutil.move("/tmp/copied", "/tmp/moved"); shutil.rmtree("/tmp/moved")
	def work(i):
	    with tempfile.NamedTemporaryFile("w", delete=False, dir="/tmp/unzipped") as f: f.write(str(i))
	    os.replace(f.name, "/tmp/unzipped/same")
	    return i
	with Pool(3) as p: assert sum(p.map(work, range(60))) == 1770
	assert open("/tmp/unzipped/same").read().isdigit()
	with concurrent.futures.ThreadPoolExecutor(4) as t:
	    def append(i):
	        with open("/tmp/log", "a") as f: f.write(f"line {i}\n")
	    list(t.map(append, range(200)))
	assert sorted(open("/tmp/log")) == sorted(f"line {i}\n" for i in range(200))
	assert shutil.disk_usage("/tmp").total == os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize
	for entry in os.scandir("/tmp"): assert entry.inode() == entry.stat(follow_symlinks=False).st_ino
END
/usr/bin/python3 program.py
