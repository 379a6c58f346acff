# SPDX-License-Identifier: LGPL-2.1-or-later
"""The measurement of bench/run.sh: everything interleaved in one run, written as JSON.

In each round every subject is measured once, one after the other, so that whatever else the
machine does meets all of them; what counts are ratios of medians within one run.
"""

import argparse
import ctypes
import datetime
import json
import os
import platform
import shutil
import statistics
import sys
import time

import jobs
import launching
import report
from subjects import Agent, Directory, Failure, Nest, checked, choose, pin

PR_SET_CHILD_SUBREAPER = 36

# Operation -> rounds of it in one measurement, and what the kernel drops from its caches before.
MICRO = {
    "create": (200, None), "symlink": (200, None), "mkdir": (200, None), "rename": (400, None),
    "write4k": (150, None), "compiler": (60, None), "hot": (2000, None), "stat": (5000, None),
    "missing": (5000, None), "readlink": (5000, None), "readdir": (4, "names"), "append": (1000, None),
    "random": (1000, None), "socket": (150, None), "whole": (2, None), "read": (2, "pages"),
}
QUICK = {"create": (20, None), "hot": (100, None), "append": (50, None)}
DROP = {"pages": "1", "names": "2"}
CLIENTS = {"create": 150, "write4k": 100, "append": 500, "hot": 1000, "whole": 1}


class Bench:
    """The directories and settings that everything shares."""

    def __init__(self, arguments):
        self.place, self.ops = arguments.place, arguments.ops
        self.work = os.path.join(self.place, "work")
        self.tmpfs = os.path.join(self.place, "tmpfs")
        self.sources = os.path.join(self.place, "sources")
        on_disk = arguments.backing == "disk"
        self.backing = os.path.join(self.place, "disk" if on_disk else "tmpfs")
        self.backing_words = "the disk" if on_disk else "a tmpfs"
        self.quick, self.rounds = arguments.quick, arguments.rounds


def say(text):
    print(time.strftime("%H:%M:%S "), text, file=sys.stderr, flush=True)


def spread(values):
    """Median and quartiles, and what they come from."""
    ordered = sorted(values)
    return {
        "median": statistics.median(ordered),
        "low": ordered[(len(ordered) - 1) // 4],
        "high": ordered[len(ordered) - 1 - (len(ordered) - 1) // 4],
        "values": [round(value, 3) for value in values],
    }


def drop_caches(kind):
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write(DROP[kind])


# --- placement ------------------------------------------------------------------------------------

def placements(names):
    """NAME -> (processors of the client, of the daemons), among those this process may use."""
    cpus = sorted(os.sched_getaffinity(0))
    known = {"one": ({cpus[0]}, {cpus[0]}), "free": (set(cpus), set(cpus))}
    if len(cpus) > 1:
        known["two"] = ({cpus[0]}, {cpus[1]})
    for name in names:
        if name not in known:
            raise Failure(f"--placements: {name}: not possible here (possible: {', '.join(known)})")
    return [(name, *known[name]) for name in names]


def place_all(subjects, client, servers):
    word = "any" if client == servers and len(client) > 1 else str(min(client))
    for subject in subjects:
        subject.agent.say("cpu " + word)
        pin(subject.pids(), servers)


# --- one operation, one chain of jobs -------------------------------------------------------------

def measure_operation(bench, subjects, name, n, drop):
    """subject -> microseconds of each round; subject -> requests per operation."""
    values = {subject.name: [] for subject in subjects}
    requests = {}
    for subject in subjects:
        subject.agent.say("prepare " + name)
        if not drop:
            subject.agent.say(f"run {max(1, n // 20)}")  # warm
    counted = {subject.name: subject.requests() for subject in subjects if subject.requests}
    for _ in range(bench.rounds):
        for subject in subjects:
            if drop:
                drop_caches(drop)
            values[subject.name].append(subject.agent.microseconds(f"run {n}") / n)
    for subject in subjects:
        if subject.requests:
            before, after = counted[subject.name], subject.requests()
            requests[subject.name] = {
                code: round((count - before.get(code, 0)) / n / bench.rounds, 2)
                for code, count in after.items()
                if (count - before.get(code, 0)) / n / bench.rounds >= 0.01}
        subject.agent.say("clean")
    return values, requests


def row(placement, key, name, words, values, **more):
    return {"placement": placement, key: name, "words": words, **more,
            "subjects": {subject: spread(found) for subject, found in values.items()}}


def micro(bench, subjects, where, only):
    table = QUICK if bench.quick else MICRO
    words = dict(line.split(": ", 1) for line in checked([bench.ops, "list"], "ops").splitlines())
    rows = []
    for placement, client, servers in where:
        place_all(subjects, client, servers)
        for name, (n, drop) in table.items():
            if only and name not in only:
                continue
            say(f"{placement}: {words[name]}")
            values, requests = measure_operation(bench, subjects, name, n, drop)
            rows.append(row(placement, "operation", name, words[name], values, unit="us", requests=requests))
    return rows


def macro(bench, subjects, where, chains):
    rows = []
    for placement, client, servers in where:
        place_all(subjects, client, servers)
        for chain in chains:
            say(f"{placement}: {chain[0][1]}")
            values = {job[0]: {subject.name: [] for subject in subjects} for job in chain}
            for _ in range(max(1, bench.rounds // 3)):
                for subject in subjects:
                    for number, (name, _, command, _) in enumerate(chain):
                        verb = "again" if number else "shell"
                        took = subject.agent.microseconds(f"{verb} {command.format(s=bench.sources)}")
                        values[name][subject.name].append(took / 1e6)
                    subject.agent.say("clean")
            rows += [row(placement, "job", name, words, values[name], unit="s") for name, words, _, _ in chain]
    return rows


def clients(bench, subjects):
    """Operations per second of all clients together, wherever the kernel puts them."""
    rows = []
    everywhere = set(os.sched_getaffinity(0))
    place_all(subjects, everywhere, everywhere)
    for name, n in CLIENTS.items():
        values = {count: {subject.name: [] for subject in subjects} for count in (1, 2, 4)}
        say(f"1, 2 and 4 clients: {name}")
        for _ in range(bench.rounds):
            for count, found in values.items():
                for subject in subjects:
                    took = subject.agent.microseconds(f"clients {name} {n} {count}")
                    found[subject.name].append(n * count / took * 1e6)
                    subject.agent.say("clean")
        for count, found in values.items():
            rows.append(row("free", "operation", name, name, found, clients=count, unit="1/s"))
    return rows


# --- the whole ------------------------------------------------------------------------------------

def host():
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"kernel": platform.release(), "processors": len(os.sched_getaffinity(0)), "model": model,
            "load": os.getloadavg()[0]}


def parse(words):
    parser = argparse.ArgumentParser(prog="bench/run.sh")
    for name in ("place", "ops", "output", "backing", "parts", "placements", "subjects", "operations", "jobs"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--nests", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--command", default="")
    return parser.parse_args(words)


def several(text):
    return [word for word in text.split(",") if word]


def save(arguments, result):
    """After each part: what has been measured is not lost to what comes later."""
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


def run(arguments, result):
    bench = Bench(arguments)
    parts = several(arguments.parts)
    where = placements(several(arguments.placements))
    peers = [tuple(peer.split("=", 1)) for peer in arguments.peer]
    subjects = choose(bench, several(arguments.subjects), peers)
    started = []
    if "launch" in parts:
        say("starts of sandboxes")
        result["launch"] = launching.launch(bench)
        save(arguments, result)
    if "scale" in parts:
        say(f"{arguments.nests} nests")
        result["scale"] = launching.scale(bench, arguments.nests, say)
    try:
        if {"micro", "macro", "clients"} & set(parts):
            for subject in subjects:
                say(f"starting {subject.name}: {subject.words}")
                started.append(subject)
                subject.start(bench)
            result["subjects"] = [{"name": s.name, "words": s.words} for s in subjects]
        if "micro" in parts:
            result["micro"] = micro(bench, subjects, where, several(arguments.operations))
            save(arguments, result)
        if "clients" in parts:
            result["clients"] = clients(bench, subjects)
            save(arguments, result)
        if "macro" in parts:
            chains, result["left_out"] = jobs.chosen(several(arguments.jobs) or None)
            for what in result["left_out"]:
                say("left out: " + what)
            jobs.make_sources(bench.sources, chains)
            # Of three placements the one in the middle would double the time and tell little more.
            result["macro"] = macro(bench, subjects, [w for w in where if w[0] != "two"] or where, chains)
            save(arguments, result)
    finally:
        for subject in started:
            subject.stop()
        shutil.rmtree(bench.sources, ignore_errors=True)


def main():
    arguments = parse(sys.argv[1:])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    result = {
        "format": 1,
        "command": arguments.command,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "host": host(),
        "settings": {"rounds": arguments.rounds, "backing": arguments.backing, "quick": arguments.quick},
    }
    begun = time.monotonic()
    try:
        run(arguments, result)
    except (Failure, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    result["seconds"] = round(time.monotonic() - begun, 1)
    save(arguments, result)
    report.show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
