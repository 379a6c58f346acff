#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Times the start of a sandbox that runs `true`: bwrap alone with the same namespaces and
# host mounts, `tmpnest run` in a nest that is there, and `tmpnest run` with a new one.
# Medians of N interleaved runs.  bench/launch.sh [N]
. "$(dirname "$0")/lib.sh"
N=${1:-50}
bench_begin
tmpnest create there >/dev/null || exit 1

# What run passes to bwrap, without the view: host read-only, cwd writable, own pids.
plain=(bwrap --ro-bind / / --dev /dev --proc /proc --bind "$PWD" "$PWD" --unshare-pid --chdir "$PWD")
[ "$(id -u)" -ne 0 ] || plain+=(--unshare-user --cap-drop ALL)

export N
python3 - "${plain[@]}" -- true <<'END'
import os, statistics, subprocess, sys, time

kinds = {
    "bwrap alone": sys.argv[1:],
    "tmpnest run, the nest is there": ["tmpnest", "run", "--nest", "there", "--", "true"],
    "tmpnest run, a new nest": ["tmpnest", "run", "--", "true"],
}
times = {name: [] for name in kinds}
for name, words in kinds.items():  # warm
    subprocess.run(words, check=True)
for _ in range(int(os.environ["N"])):
    for name, words in kinds.items():
        start = time.perf_counter()
        status = subprocess.call(words)
        times[name].append((time.perf_counter() - start) * 1000)
        if status:
            sys.exit(f"{name}: status {status}")
base = statistics.median(times["bwrap alone"])
print(f"{'ms':32} {'median':>8} {'p90':>8} {'added':>8}")
for name, values in times.items():
    median = statistics.median(values)
    p90 = sorted(values)[int(len(values) * 0.9)]
    print(f"{name:32} {median:8.2f} {p90:8.2f} {median - base:8.2f}")
END
