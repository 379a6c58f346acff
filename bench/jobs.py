# SPDX-License-Identifier: LGPL-2.1-or-later
"""The whole programs that are timed, and the files they work on."""

import os
import random
import shutil
import subprocess
import tarfile

from subjects import checked

FILES = 10_000

# Chains: each job works where the one before it in the same chain has left off. NAME, WORDS,
# COMMAND ({s} is the directory of sources), NEEDS (a program).
CHAINS = [
    [
        ("untar", "untar 10,000 files", "tar xf {s}/tree.tar", "tar"),
        ("find", "find over 10,000 files", "find tree -type f -size +3 | wc -l", "find"),
        ("tar", "tar of 10,000 files", "tar cf - tree | cat >/dev/null", "tar"),
        ("rm", "rm -rf of 10,000 files", "rm -rf tree", "rm"),
    ],
    [("git-clone", "git clone of 1,000 files", "git clone -q --no-hardlinks {s}/repository clone", "git")],
    [("gcc", "gcc of 8 files, and link",
      'for f in {s}/c/*.c; do n=${{f##*/}}; TMPDIR=. gcc -O1 -c $f -o ${{n%.c}}.o || exit 1; done; '
      "TMPDIR=. gcc *.o -o program && ./program", "gcc")],
    [("npm", "npm install of 500 files", "HOME=$PWD npm install --offline --no-audit --no-fund --ignore-scripts "
      "--loglevel=error --no-update-notifier --cache=$PWD/cache --prefix=$PWD/x {s}/package.tgz", "npm")],
    [("sqlite-rollback", "SQLite, 500 transactions, rollback journal", "sqlite3 t.db <{s}/rollback.sql", "sqlite3")],
    [("sqlite-wal", "SQLite, 2,000 transactions, WAL", "sqlite3 t.db <{s}/wal.sql", "sqlite3")],
    [("sort", "sort of 20 MB that spills", "LC_ALL=C sort -S 2M -T . {s}/lines >sorted", "sort")],
    [("fio", "fio, random 4K reads and writes", "fio --name=bench --directory=. --rw=randrw --bs=4k --size=32m "
      "--ioengine=psync --thread --fallocate=none --randseed=1 --output=/dev/null", "fio")],
]


def make_tree(place, chance):
    root = os.path.join(place, "tree")
    for n in range(FILES):
        folder = os.path.join(root, f"d{n % 20}", f"e{n // 20 % 25}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file-{n}"), "wb") as file:
            file.write(chance.randbytes(int(chance.expovariate(1 / 2048))))
    with tarfile.open(os.path.join(place, "tree.tar"), "w") as tar:
        tar.add(root, "tree")
    shutil.rmtree(root)


def make_repository(place, chance):
    work = os.path.join(place, "checkout")
    os.mkdir(work)
    for n in range(1000):
        folder = os.path.join(work, f"d{n % 40}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"source-{n}.c"), "w", encoding="ascii") as file:
            file.write("".join(f"int value_{n}_{i} = {chance.randrange(10 ** 9)};\n" for i in range(50)))
    git = ["git", "-C", work, "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"], ["gc", "-q"]):
        checked(git + words, "a repository to clone")
    os.rename(os.path.join(work, ".git"), os.path.join(place, "repository"))
    shutil.rmtree(work)


def make_program(place, chance):
    os.mkdir(os.path.join(place, "c"))
    names = [f"unit{n}" for n in range(8)]
    for name in names:
        with open(os.path.join(place, "c", name + ".c"), "w", encoding="ascii") as file:
            file.write("#include <stdio.h>\n#include <stdlib.h>\n")
            for i in range(60):
                file.write(f"int {name}_{i}(int a)\n{{\n\treturn abs(a * {chance.randrange(1000)} + {i});\n}}\n")
            if name == names[0]:
                file.write("int main(void)\n{\n\treturn unit0_1(0) != 1;\n}\n")


def make_package(place, chance):
    root = os.path.join(place, "package")
    for n in range(500):
        folder = os.path.join(root, "lib", f"m{n % 25}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"part{n}.js"), "w", encoding="ascii") as file:
            file.write(f"exports.value = {chance.randrange(10 ** 9)};\n" * 30)
    with open(os.path.join(root, "package.json"), "w", encoding="ascii") as file:
        file.write('{"name": "bench-package", "version": "1.0.0"}\n')
    with tarfile.open(os.path.join(place, "package.tgz"), "w:gz") as tar:
        tar.add(root, "package")
    shutil.rmtree(root)


def make_texts(place, chance):
    for name, mode, transactions in (("rollback", "DELETE", 500), ("wal", "WAL", 2000)):
        with open(os.path.join(place, name + ".sql"), "w", encoding="ascii") as file:
            file.write(f"PRAGMA journal_mode={mode};\nCREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT);\n")
            for _ in range(transactions):
                file.write(f"INSERT INTO t(v) VALUES('{chance.randbytes(50).hex()}');\n")
    with open(os.path.join(place, "lines"), "w", encoding="ascii") as file:
        for _ in range(400_000):
            file.write(f"{chance.randrange(10 ** 12):012d} {chance.randbytes(18).hex()}\n")


def chosen(names):
    """The chains with the jobs of these names (None: all) whose programs are there; and what is left out."""
    chains, missing = [], []
    for chain in CHAINS:
        wanted = [job for job in chain if names is None or job[0] in names]
        absent = [job for job in wanted if not shutil.which(job[3])]
        missing += [f"{job[0]} ({job[3]} is not installed)" for job in absent]
        if wanted and not absent:
            # what comes before in the chain has to be done as well
            last = max(chain.index(job) for job in wanted)
            chains.append(chain[: last + 1])
    return chains, missing


def make_sources(place, chains):
    """The files that the chains work on, the same in every run."""
    makers = {"untar": make_tree, "git-clone": make_repository, "gcc": make_program, "npm": make_package,
              "sqlite-rollback": make_texts, "sqlite-wal": make_texts, "sort": make_texts}
    os.makedirs(place)
    done = set()
    for chain in chains:
        maker = makers.get(chain[0][0])
        if maker and maker not in done:
            maker(place, random.Random(1))
            done.add(maker)
    subprocess.run(["sync", "-f", place], check=False)
