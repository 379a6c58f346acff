#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What tmpnest-bwrap adds to the start of a sandbox: the same line with bwrap and with
# tmpnest-bwrap, side by side. A short line, and one as a runtime makes it; in a nest that is
# there and in a new one. Medians of N interleaved runs, and how many system calls and page
# faults come before bwrap.  bench/front.sh [N]
. "$(dirname "$0")/lib.sh"
N=${1:-100}
bench_begin
tmpnest create there >/dev/null || exit 1
export TMPNEST_NEST_FROM=none TMPNEST_STUBS_LEDGER=$PLACE/ledger.json
unset TMPNEST_NEST TMPDIR

SCRATCH=$(mktemp -d /tmp/tnbench-XXXXXX)
trap 'rm -rf "$SCRATCH"; bench_end' EXIT
mkdir workspace workspace/.git
touch workspace/.bashrc workspace/.profile "$SCRATCH/http.sock"

export N SCRATCH
python3 - "$(command -v bwrap)" "$BUILD/launcher/tmpnest-bwrap" <<'END'
import os, re, resource, shutil, statistics, subprocess, sys, time

bwrap, front = sys.argv[1:]
ws, scratch = os.getcwd() + "/workspace", os.environ["SCRATCH"]
safe = ["--unshare-user", "--unshare-pid", "--cap-drop", "ALL"]
short = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *safe]
runtime = ["--new-session", "--die-with-parent", "--unshare-net", "--bind", scratch + "/http.sock", scratch + "/http.sock",
    "--setenv", "TMPDIR", scratch, "--ro-bind", "/", "/", "--bind", ws, ws, "--bind", scratch, scratch]
for name in ".bashrc", ".profile", ".git":
    runtime += ["--ro-bind", f"{ws}/{name}", f"{ws}/{name}"]
runtime += ["--dev", "/dev", "--unshare-pid", "--unshare-user", "--proc", "/proc"]
command = ["--", "/bin/true", "x"]
there = dict(os.environ, TMPNEST_NEST="there")

kinds = {}
for name, line in ("short line", short), ("a runtime's line", runtime):
    kinds[f"{name}: bwrap"] = ([bwrap, *line, *command], None)
    kinds[f"{name}: in a nest that is there"] = ([front, *line, *command], there)
    kinds[f"{name}: in a new nest"] = ([front, *line, *command], None)
times = {name: [] for name in kinds}
for name, (words, env) in kinds.items():  # warm
    subprocess.run(words, env=env, check=True)
for _ in range(int(os.environ["N"])):
    for name, (words, env) in kinds.items():
        start = time.perf_counter()
        status = subprocess.call(words, env=env)
        times[name].append((time.perf_counter() - start) * 1000)
        if status:
            sys.exit(f"{name}: status {status}")
print(f"{'ms':46} {'median':>8} {'p90':>8} {'added':>8}")
for name, values in times.items():
    median = statistics.median(values)
    if name.endswith("bwrap"):
        base = median
    p90 = sorted(values)[int(len(values) * 0.9)]
    print(f"{name:46} {median:8.2f} {p90:8.2f} {median - base:8.2f}")

if shutil.which("strace"):
    for name, line in ("short line", short), ("a runtime's line", runtime):
        text = subprocess.run(["strace", front, *line, *command], env=there, stderr=subprocess.PIPE, text=True).stderr
        calls = text.splitlines()
        last = next(i for i, c in enumerate(calls) if i and re.match(r'execve\(".*bwrap"', c))
        print(f"{name}: {last} system calls before bwrap")
END
