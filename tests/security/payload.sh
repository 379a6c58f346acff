#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What a payload can do with the /tmp of its own, now that it is writable, and what it cannot.
. "$(dirname "$0")/../lib.sh"

# One attempt after another; each prints "NAME: what became of it".
attempts() { # OPTIONS-OF-RUN -- PYTHON
	local options=()
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	runs 0 tmpnest run "${options[@]}" -- "$TT_PYTHON" -c "
import ctypes, errno, os, socket, stat, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, call, *words):
    try: print('%s: %s' % (name, call(*words) or 'done'))
    except OSError as e: print('%s: %s' % (name, errno.errorcode[e.errno]))
def c(name, *words):
    if getattr(libc, name)(*words) < 0: raise OSError(ctypes.get_errno(), name)
$2"
}

outcome() { # NAME WANTED
	equal "$1" "$(sed -n "s/^$1: //p" <<<"$out")" "$2"
}

# The file is kept with its bits, and they give nobody anything.
case_set_id_files_give_nothing() {
	attempts -- '
import shutil
shutil.copy("/usr/bin/id", "/tmp/id")
os.chmod("/tmp/id", 0o6755)
print("mode: %o" % stat.S_IMODE(os.stat("/tmp/id").st_mode))
print("flags: %s" % bool(os.statvfs("/tmp").f_flag & os.ST_NOSUID))
for line in open("/proc/self/status"):
    if line.startswith("NoNewPrivs"): print("privileges: " + line.split()[1])
print("same: %s" % (subprocess.check_output(["/tmp/id"]) == subprocess.check_output(["/usr/bin/id"])))'
	outcome mode 6755
	outcome flags True
	outcome privileges 1
	outcome same True
}

case_devices_cannot_be_made_or_used() {
	attempts -- '
attempt("char", os.mknod, "/tmp/c", stat.S_IFCHR | 0o666, os.makedev(1, 3))
attempt("block", os.mknod, "/tmp/b", stat.S_IFBLK | 0o666, os.makedev(7, 0))
print("flags: %s" % bool(os.statvfs("/tmp").f_flag & 4))'
	outcome char EPERM
	outcome block EPERM
	outcome flags True
}

# It has no capabilities: root's are dropped at our word, a user's by bubblewrap. (Those that it gets in
# a namespace below are the kernel's concern: what comes from above is locked there.)
case_the_view_cannot_be_taken_off() {
	attempts -- '
MS_REMOUNT, MS_BIND, MS_MOVE = 32, 4096, 8192
attempt("suid", c, "mount", None, b"/tmp", None, MS_REMOUNT | MS_BIND, None)
attempt("move", c, "mount", b"/tmp", b"/mnt", None, MS_MOVE, None)
attempt("umount", c, "umount2", b"/tmp", 0)
attempt("detach", c, "umount2", b"/tmp", 2)
print("still: " + " ".join(l.split(" - ")[1].split()[0] for l in open("/proc/self/mountinfo") if l.split()[4] == "/tmp"))'
	outcome suid EPERM
	outcome move EPERM
	outcome umount EPERM
	outcome detach EPERM
	outcome still fuse.tmpnest
}

# The kernel's control files for FUSE connections: whoever may write "abort" ends a view. A machine
# without them mounted shows nothing: root mounts them, for this case alone. Only the view's own is
# tried: others are of other programs.
case_connections_cannot_be_aborted_from_inside() {
	local control=/sys/fs/fuse/connections mount_it=
	if ! grep -q " $control fusectl " /proc/self/mounts; then
		[ "$TT_ROLE" = root ] || skip 'fusectl is not mounted here, and only root can mount it'
		mount_it=yes
	fi
	tmpnest create abort # the daemon is not to keep that mount
	# shellcheck disable=SC2016
	runs 0 unshare ${mount_it:+--mount --propagation slave} bash -ec '
		[ -z "$1" ] || mount -t fusectl none "$2"
		exec "${@:3}"' - "$mount_it" "$control" tmpnest run --nest abort -- "$TT_PYTHON" -c '
import os, sys
own = "%s/%d" % (sys.argv[1], os.stat("/tmp").st_dev)
print("shown: %s" % os.path.isdir(own))
def write(path):
    with open(path, "w") as f: f.write("1")
try: write(own + "/abort"); print("abort: done")
except OSError: print("abort: refused")
open("/tmp/still", "w").write("here")
print("view: " + open("/tmp/still").read())' "$control"
	outcome shown True
	outcome abort refused
	outcome view here
	tmpnest evict --force abort
}

# What one command leaves, the next one of the same nest finds: they trust each other. Another nest
# and the host find nothing.
case_commands_of_one_nest_trust_each_other_and_no_others() {
	local name
	name=$(unique mark)
	runs 0 tmpnest run --nest one -- sh -c "echo trap >/tmp/$name; ln -s /etc/passwd /tmp/link"
	runs 0 tmpnest run --nest one -- cat "/tmp/$name"
	equal 'the next command' "$out" trap
	runs 1 tmpnest run --nest two -- cat "/tmp/$name"
	[ ! -e "/tmp/$name" ] || fail 'it is on the host'
	tmpnest evict one two
}

# A link of the sandbox leads nowhere for those who look from outside.
case_links_of_a_sandbox_lead_no_operator_out() {
	local secret=$TT_WORK/secret
	echo secret >"$secret"
	runs 0 tmpnest run --nest links -- sh -c "ln -s '$secret' /tmp/link; ln -s / /tmp/root; ln '$secret' /tmp/hard 2>/dev/null || echo 'no hard link'"
	equal 'hard link' "$out" 'no hard link'
	capture tmpnest cat links /tmp/link
	differ 'status' "$status" 0
	lacks 'cat' "$out" secret
	capture tmpnest cat links "/tmp/root$secret"
	differ 'status' "$status" 0
	lacks 'cat' "$out" secret
	tmpnest evict links
}

main "$@"
