# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is measured: file systems that a sandbox has at /tmp, and the client in it."""

import json
import os
import shutil
import subprocess
import sys


class Failure(Exception):
    """What was attempted, on what, why it failed; one line."""


def checked(words, what):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise Failure(f"{what}: {' '.join(words[:3])}: {reason[-1] if reason else done.returncode}")
    return done.stdout


def children(pid):
    """The processes below pid, at any depth."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except FileNotFoundError:
            pass
    return found + [deeper for child in found if os.path.exists(f"/proc/{child}") for deeper in children(child)]


def pin(pids, cpus):
    """All threads of the processes run on these processors from now on; so do their later ones."""
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                os.sched_setaffinity(int(task), cpus)
            except ProcessLookupError:
                pass


class Agent:
    """`ops agent` in a sandbox: see bench/agent.h for what it understands."""

    def __init__(self, words):
        self.words = words
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer("start")

    def _answer(self, line):
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("failed"):
            raise Failure(f"{' '.join(self.words[:4])} ...: {line}: {answer or 'the client ended'}")
        return answer

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer(line)

    def microseconds(self, line):
        return float(self.say(line))

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


def plain_bwrap(work):
    """What `tmpnest run` passes to bwrap, without a view."""
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", work, work]
    words += ["--unshare-pid", "--chdir", work]
    return words + (["--unshare-user", "--cap-drop", "ALL"] if os.getuid() == 0 else [])


class Directory:
    """A directory of the kernel's own file systems, bind-mounted into the sandbox."""

    requests = None

    def __init__(self, name, words, path):
        self.name, self.words, self.path = name, words, path

    def start(self, bench):
        os.makedirs(self.path, exist_ok=True)
        os.chmod(self.path, 0o1777)
        self.agent = Agent(
            plain_bwrap(bench.work) + ["--bind", self.path, "/tmp", "--", bench.ops, "agent", "/tmp"])

    def pids(self):
        return []

    def stop(self):
        self.agent.end()
        shutil.rmtree(self.path, ignore_errors=True)


class Peer(Directory):
    """Another FUSE file system: `command` has %s for the directory that it shows, %m for the mount point."""

    def __init__(self, name, words, place, command):
        super().__init__(name, words, os.path.join(place, name))
        self.command = command

    def start(self, bench):
        backing, mounted = os.path.join(self.path, "backing"), os.path.join(self.path, "mounted")
        for path in (backing, mounted, os.path.join(self.path, "lower"), os.path.join(self.path, "work")):
            os.makedirs(path)
        words = [word.replace("%s", backing).replace("%m", mounted).replace("%d", self.path)
                 for word in self.command]
        before = set(children(os.getpid()))
        self.server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        for _ in range(200):
            if os.path.ismount(mounted):
                break
            if self.server.poll() not in (None, 0):
                break
            try:
                self.server.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        if not os.path.ismount(mounted):
            raise Failure(f"{self.name}: {' '.join(words)}: does not mount (what it says is above)")
        self.mounted = mounted
        # One that goes into the background becomes our child (measure.py is a subreaper).
        self.servers = [pid for pid in children(os.getpid()) if pid not in before]
        os.chmod(mounted, 0o1777)
        self.agent = Agent(
            plain_bwrap(bench.work) + ["--bind", mounted, "/tmp", "--", bench.ops, "agent", "/tmp"])

    def pids(self):
        return [pid for pid in self.servers if os.path.exists(f"/proc/{pid}")]

    def stop(self):
        if hasattr(self, "agent"):
            self.agent.end()
        if hasattr(self, "mounted"):
            subprocess.run(["umount", self.mounted], check=False)
        shutil.rmtree(self.path, ignore_errors=True)


class Nest:
    """A nest of our own daemon."""

    def __init__(self, name, words, options):
        self.name, self.words, self.options = name, words, options
        self.nest = "bench-" + name

    def start(self, bench):
        self.agent = Agent(["tmpnest", "run", "--nest", self.nest, "--no-var-tmp", "--quota", "16G",
                            "--inodes", "1000000", *self.options, "--", bench.ops, "agent", "/tmp"])

    def pids(self):
        keeper = json.loads(checked(["tmpnest", "daemon", "status", "--json"], "the daemon"))["keeper_pid"]
        return [keeper] + children(keeper)

    def requests(self):
        """What the daemon has counted: opcode -> number. FORGETs wait for no answer."""
        show = json.loads(checked(["tmpnest", "show", self.nest, "--json"], self.name))
        return {code: n for code, n in show["operations"].items() if "FORGET" not in code}

    def stop(self):
        if hasattr(self, "agent"):
            self.agent.end()
        subprocess.run(["tmpnest", "evict", "--force", self.nest], stdout=subprocess.DEVNULL, check=False)


def file_system_of(path):
    return checked(["stat", "-f", "-c", "%T", path], "the file system of a directory").strip()


def choose(bench, wanted, peers):
    """The subjects of this run, ours last; what cannot be had is said and left out."""
    fast, disk = bench.backing, os.path.join(bench.place, "disk")
    os.makedirs(disk, exist_ok=True)
    kind = file_system_of(disk).replace("ext2/ext3", "ext4")
    subjects = [
        Directory("tmpfs", "a directory on a tmpfs", os.path.join(bench.tmpfs, "native")),
        Directory(kind, f"a bind-mounted directory on {kind}", os.path.join(disk, "native")),
    ]
    if shutil.which("fuse-overlayfs"):
        # The Debian package, as a user would start it, with its layers on the same backing as ours.
        subjects.append(Peer("fuse-overlayfs", "fuse-overlayfs, upper layer on " + bench.backing_words, fast, [
            "fuse-overlayfs", "-f", "-o", "lowerdir=%d/lower,upperdir=%s,workdir=%d/work", "%m"]))
    else:
        print("fuse-overlayfs is not installed: left out", file=sys.stderr)
    for name, command in peers:
        words = command.split()
        if not os.access(words[0], os.X_OK):
            raise Failure(f"--peer {name}: {words[0]}: not a program (give NAME=PATH)")
        subjects.append(Peer(name, command, fast, words if "%m" in command else words + ["%s", "%m"]))
    subjects.append(Nest("tmpnest", "store dir on " + bench.backing_words, ["--store", "dir"]))
    subjects.append(Nest("tmpnest-memory", "store memory", ["--store", "memory"]))
    if wanted:
        unknown = set(wanted) - {subject.name for subject in subjects}
        if unknown:
            raise Failure(f"--subjects: {', '.join(sorted(unknown))}: unknown (there are: "
                          f"{', '.join(subject.name for subject in subjects)})")
        subjects = [subject for subject in subjects if subject.name in wanted]
    return subjects
