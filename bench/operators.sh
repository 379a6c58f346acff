#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Times what operators ask for while many nests are there: medians of ROUNDS interleaved runs, in
# milliseconds, beside the start of the same program without a question.
#   bench/operators.sh [NESTS [ROUNDS]]
. "$(dirname "$0")/lib.sh"
NESTS=${1:-1000}
ROUNDS=${2:-21}
end_all() {
	kill "$SERVE" 2>/dev/null
	wait "$SERVE" 2>/dev/null
	tmpnest ls --json | python3 -c 'import json,sys; print(*[n["name"] for n in json.load(sys.stdin)])' |
		xargs -r tmpnest evict --force >/dev/null
	bench_end
}
bench_begin
SERVE=
trap end_all EXIT

# All of them over one connection: the calls wait in the socket.
seq "$NESTS" | while read -r i; do
	printf '{"method":"org.tmpnest.Control.CreateNest","parameters":{"name":"nest-%05d","bytes_limit":%d}}\0' "$i" $((i * 1048576))
done | tmpnest bridge | tr '\0' '\n' | grep -c '"error"' | grep -qx 0 || {
	echo 'not every nest could be made' >&2
	exit 1
}
tmpnest serve --listen 127.0.0.1:0 >serve.log &
SERVE=$!
until [ -s serve.log ]; do
	kill -0 "$SERVE" || exit 1
	sleep 0.1
done
sleep 2 # so that it has asked the daemon
tmpnest run --nest nest-00001 -- sh -c 'mkdir /tmp/d; echo x >/tmp/d/f; cat /tmp/d/f' >/dev/null

python3 - "$NESTS" "$ROUNDS" "$(head -1 serve.log)" <<'END'
import statistics, subprocess, sys, time, urllib.request

nests, rounds, url = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def command(*words):
    def run():
        return subprocess.run(("tmpnest",) + words, check=True, stdout=subprocess.PIPE).stdout
    return run

def scrape():
    with urllib.request.urlopen(url + "metrics") as reply:
        return reply.read()

kinds = {
    "tmpnest --version (no question)": (command("--version"), None),
    "tmpnest ls": (command("ls"), b"nest-"),
    "tmpnest ls --json": (command("ls", "--json"), b'"bytes_limit"'),
    "tmpnest df": (command("df"), b"nest-"),
    "tmpnest metrics": (command("metrics"), b"\ntmpnest_nest_used_bytes{"),
    "a scrape of tmpnest serve": (scrape, b"\ntmpnest_nest_used_bytes{"),
}
for name, (run, part) in kinds.items():  # warm, and right
    found = nests if part is None else run().count(part)
    if found != nests:
        sys.exit(f"{name}: shows {found} nests of {nests}")
times = {name: [] for name in kinds}
for _ in range(rounds):
    for name, (run, _) in kinds.items():
        start = time.perf_counter()
        run()
        times[name].append((time.perf_counter() - start) * 1000)
print(f"{nests} nests, {rounds} rounds")
print(f"{'ms':34} {'median':>8} {'min':>8} {'p90':>8}")
for name, values in times.items():
    p90 = sorted(values)[int(len(values) * 0.9)]
    print(f"{name:34} {statistics.median(values):8.1f} {min(values):8.1f} {p90:8.1f}")
END
