#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a service manager does for a unit with FileDescriptorStoreMax=: keeps what the service
sends with FDSTORE=1 and gives it back at the next start.

service-manager.py DIRECTORY COMMAND...   starts COMMAND; at SIGHUP stops it with SIGTERM and
starts it again; at SIGTERM ends it for good. DIRECTORY/starts counts the starts that became
ready, DIRECTORY/stored tells how many descriptors are kept.
"""
import array
import os
import select
import signal
import socket
import subprocess
import sys

directory, command = sys.argv[1], sys.argv[2:]
path = os.path.join(directory, "notify")
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sock.bind(path)
stored = []  # (name, descriptor)
wanted = {"restart": False, "stop": False}
starts = 0


def note(name, number):
    with open(os.path.join(directory, name), "w") as file:
        file.write(f"{number}\n")


def receive():
    data, ancillary, _, _ = sock.recvmsg(4096, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    fields = dict(line.split("=", 1) for line in data.decode().splitlines() if "=" in line)
    if fields.get("FDSTORE") == "1" and fds:
        stored.append((fields.get("FDNAME", "stored"), fds[0]))
    else:
        for fd in fds:  # BARRIER=1: whoever waits sees it closed
            os.close(fd)
    return fields


def start():
    """The service with everything that is kept as descriptors 3, 4, ..."""
    given = list(stored)
    stored.clear()

    def arrange():
        high = [os.dup2(fd, 10000 + i) for i, (_, fd) in enumerate(given)]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i, inheritable=True)
        os.closerange(3 + len(high), 20000)
        os.environ["LISTEN_PID"] = str(os.getpid())

    env = dict(os.environ, NOTIFY_SOCKET=path)
    if given:
        env.update(LISTEN_FDS=str(len(given)), LISTEN_FDNAMES=":".join(n for n, _ in given))
        # The process itself must be the one that LISTEN_PID names.
        env["GIVEN"] = "yes"
    words = ["sh", "-c", '[ -z "${GIVEN:-}" ] || export LISTEN_PID=$$; exec "$@"', "sh"] + command
    process = subprocess.Popen(words, env=env, preexec_fn=arrange, close_fds=False)
    for _, fd in given:
        os.close(fd)
    return process


signal.signal(signal.SIGHUP, lambda *_: wanted.update(restart=True))
signal.signal(signal.SIGTERM, lambda *_: wanted.update(restart=True, stop=True))
note("pid", os.getpid())
process = start()
while True:
    readable, _, _ = select.select([sock], [], [], 0.02)
    if readable:
        if receive().get("READY") == "1":
            starts += 1
            note("starts", starts)
        continue
    if wanted["restart"]:
        wanted["restart"] = False
        process.send_signal(signal.SIGTERM)
        while process.poll() is None:
            if select.select([sock], [], [], 0.02)[0]:
                receive()
        while select.select([sock], [], [], 0)[0]:
            receive()
        note("stored", len(stored))
        if wanted["stop"]:
            sys.exit(0)
        process = start()
    elif process.poll() is not None:
        sys.exit(1)
