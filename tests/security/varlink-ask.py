#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""One call on the control socket, with the descriptor that the caller chooses as its proof.

varlink-ask.py SOCKET own|none|NUMBER [METHOD]: prints the reply's error, or `admitted`.
"""
import array
import json
import os
import socket
import sys

path, proof = sys.argv[1:3]
method = sys.argv[3] if len(sys.argv) > 3 else "org.varlink.service.GetInfo"
sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
sock.settimeout(20)
try:
    sock.connect(path)
except OSError as error:
    sys.exit(f"cannot connect: {error.strerror}")
message = json.dumps({"method": method, "parameters": {}}).encode() + b"\0"
if proof == "none":
    sock.sendall(message)
else:
    fd = os.open("/proc/self/ns/user", os.O_RDONLY) if proof == "own" else int(proof)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]).tobytes())]
    sock.sendmsg([message], ancillary)
data = b""
while b"\0" not in data:
    part = sock.recv(65536)
    if not part:
        sys.exit("closed without a reply")
    data += part
reply = json.loads(data.split(b"\0")[0])
print(reply.get("error", "admitted"), reply.get("parameters", {}).get("reason", ""))
