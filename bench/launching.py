# SPDX-License-Identifier: LGPL-2.1-or-later
"""How long sandboxes take to start and nests to go, and what a thousand nests cost."""

import json
import os
import statistics
import subprocess
import time

from subjects import Failure, checked, children, plain_bwrap

IDLE_SECONDS = 5


def milliseconds(words):
    start = time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    took = (time.perf_counter() - start) * 1000
    if done.returncode:
        raise Failure(f"{' '.join(words[:4])}: status {done.returncode}: {done.stderr.strip()}")
    return took


def spread(values):
    ordered = sorted(values)
    return {"median": statistics.median(ordered), "low": ordered[(len(ordered) - 1) // 4],
            "high": ordered[len(ordered) - 1 - (len(ordered) - 1) // 4],
            "values": [round(value, 3) for value in values]}


def launch(bench):
    """Milliseconds: bwrap alone, `tmpnest run` in a nest that is there and in a new one, evict."""
    rounds = 3 if bench.quick else bench.rounds * 5
    checked(["tmpnest", "create", "there"], "create")
    kinds = {
        "bwrap": plain_bwrap(bench.work) + ["--", "true"],
        "run": ["tmpnest", "run", "--nest", "there", "--", "true"],
        "run-new": ["tmpnest", "run", "--", "true"],
    }
    found = {name: [] for name in [*kinds, "create", "evict"]}
    for words in kinds.values():
        milliseconds(words)
    for _ in range(rounds):
        for name, words in kinds.items():
            found[name].append(milliseconds(words))
        found["create"].append(milliseconds(["tmpnest", "create", "gone"]))
        checked(["tmpnest", "run", "--nest", "gone", "--", "sh", "-c", "echo a >/tmp/a"], "run")
        found["evict"].append(milliseconds(["tmpnest", "evict", "gone"]))
    checked(["tmpnest", "evict", "there"], "evict")
    result = {name: spread(values) for name, values in found.items()}
    base = result["bwrap"]["median"]
    for name in ("run", "run-new"):
        result[name]["added"] = result[name]["median"] - base
        result[name]["ratio"] = result[name]["median"] / base
    return {"unit": "ms", "kinds": result}


# --- many nests -----------------------------------------------------------------------------------

def daemon_processes():
    keeper = json.loads(checked(["tmpnest", "daemon", "status", "--json"], "the daemon"))["keeper_pid"]
    return [keeper] + children(keeper)


def resident_kib(pids):
    """What the daemon keeps in memory: its processes' own pages, and all of its memfds, mapped or not."""
    own, files = 0, {}
    for pid in pids:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            own += sum(int(line.split()[1]) for line in file if line.startswith(("RssAnon", "RssFile")))
    for fd in os.listdir(f"/proc/{pids[0]}/fd"):
        try:
            path = f"/proc/{pids[0]}/fd/{fd}"
            if os.readlink(path).startswith("/memfd:"):
                st = os.stat(path)
                files[st.st_ino] = st.st_blocks // 2
        except FileNotFoundError:
            pass
    return own + sum(files.values())


def state(pids):
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            ticks += sum(int(word) for word in file.read().rsplit(")", 1)[1].split()[11:13])
    return {
        "threads": sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids),
        "descriptors": len(os.listdir(f"/proc/{pids[0]}/fd")),  # one table for both
        "resident_kib": resident_kib(pids),
        "cpu_seconds": ticks / os.sysconf("SC_CLK_TCK"),
    }


def idle_cpu(pids):
    before = state(pids)["cpu_seconds"]
    time.sleep(IDLE_SECONDS)
    return (state(pids)["cpu_seconds"] - before) / IDLE_SECONDS


def compare(rounds, first, last):
    """The same command for the first nest and for the last, in turns."""
    values = ([], [])
    for _ in range(rounds):
        for name, found in zip((first, last), values):
            found.append(milliseconds(["tmpnest", "run", "--nest", name, "--", "true"]))
    return {"first": spread(values[0]), "last": spread(values[1]),
            "ratio": statistics.median(values[1]) / statistics.median(values[0])}


def ends(values):
    """The first and the last tenth of a series."""
    n = max(1, len(values) // 10)
    first, last = statistics.median(values[:n]), statistics.median(values[-n:])
    return {"first": first, "last": last, "ratio": last / first}


def scale(bench, n, say):
    """What `n` named nests cost that have been used once and are idle."""
    pids = daemon_processes()
    empty = state(pids)
    names = [f"many-{i}" for i in range(n)]
    created, attached, evicted = [], [], []
    say(f"creating {n} nests")
    for name in names:
        created.append(milliseconds(["tmpnest", "create", name]))
    fresh = state(pids)
    say("using each once")
    for name in names:
        attached.append(milliseconds(["tmpnest", "run", "--nest", name, "--", "touch", "/tmp/a"]))
    time.sleep(4)  # what serving threads keep for a while goes
    used = state(pids)
    result = {
        "nests": n,
        "unit": "ms",
        "daemon": {"without nests": empty, "with new nests": fresh, "with idle nests": used},
        "kib_per_nest": (used["resident_kib"] - empty["resident_kib"]) / n,
        "cpu_when_idle": idle_cpu(pids),
        "create": ends(created),
        "first_use": ends(attached),
        "run": compare(5 if bench.quick else 40, names[0], names[-1]),
        "ls": spread([milliseconds(["tmpnest", "ls"]) for _ in range(3)]),
        "metrics": spread([milliseconds(["tmpnest", "metrics"]) for _ in range(3)]),
    }
    say("evicting them")
    for name in names:
        evicted.append(milliseconds(["tmpnest", "evict", name]))
    result["evict"] = ends(evicted)
    return result
