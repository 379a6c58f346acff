#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# How long `tmpnest evict` of a nest with FILES files takes (its wipe goes on behind it), how soon the
# name is there again, and how long a sandbox still gets answers after `tmpnest evict --force`: until
# a call of a client that does nothing but calls has ended with an error. Medians of ROUNDS, in
# milliseconds, beside the start of the same program without a question.  bench/evict.sh [FILES [ROUNDS]]
. "$(dirname "$0")/lib.sh"
FILES=${1:-100000} ROUNDS=${2:-5}
bench_begin

"$PYTHON" - "$FILES" "$ROUNDS" <<'END'
import os, statistics, subprocess, sys, time

files, rounds = int(sys.argv[1]), int(sys.argv[2])
CLIENT = """
import os, time
print("begun", flush=True)
n = 0
while True:
    try:
        os.close(os.open("/tmp/f", os.O_CREAT | os.O_WRONLY)); os.unlink("/tmp/f")
    except OSError:
        print(time.monotonic(), flush=True)
        break
time.sleep(100)
"""
found = {}

def timed(name, *words):
    begun = time.monotonic()
    subprocess.run(["tmpnest", *words], check=True, stdout=subprocess.DEVNULL)
    found.setdefault(name, []).append((time.monotonic() - begun) * 1000)
    return begun

for _ in range(rounds):
    timed("tmpnest --version (no question)", "--version")
    subprocess.run(["tmpnest", "run", "--nest", "large", "--inodes", "max", "--", "sh", "-c",
        f"cd /tmp; seq {files} | xargs touch"], check=True)
    timed(f"evict of {files:,} files", "evict", "large")
    timed("create under the same name", "create", "large")
    timed("evict of an empty nest", "evict", "large")
    client = subprocess.Popen(["tmpnest", "run", "--nest", "busy", "--", sys.executable, "-c", CLIENT],
        stdout=subprocess.PIPE, text=True)
    client.stdout.readline()
    time.sleep(0.2)
    begun = timed("evict --force under a client", "evict", "--force", "busy")
    ended = float(client.stdout.readline())
    found.setdefault("... until its call ends", []).append((ended - begun) * 1000)
    client.kill()
    client.wait()

print(f"{'ms':34}{'median':>8}{'most':>8}")
for name, times in found.items():
    print(f"{name:34}{statistics.median(times):8.1f}{max(times):8.1f}")
END
