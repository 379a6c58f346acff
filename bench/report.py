# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of bench/run.sh as text:  report.py FILE.json [--markdown]"""

import json
import sys

OURS = ("tmpnest", "tmpnest-memory")


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def faster(found, ours, other, more_is_better):
    """How many times faster ours is than the other."""
    quotient = found[other]["median"] / found[ours]["median"]
    return 1 / quotient if more_is_better else quotient


def lines_of(rows, key, brief):
    """A header and a line for each row: medians (unless brief, with the quartiles), then ratios."""
    names = list(rows[0]["subjects"])
    native, ours = names[0], [name for name in OURS if name in names]
    others = [name for name in names if name not in OURS and name != native]
    header = [key] + names
    for name in ours:
        header += [f"{name}: slower than {native}"] + [f"faster than {other}" for other in others]
    requests = any(row.get("requests") for row in rows)
    yield header + (["requests"] if requests else [])
    for row in rows:
        found, better = row["subjects"], row["unit"] == "1/s"
        cells = [row["words"] + (f", {row['clients']} at once" if "clients" in row else "")]
        for name in names:
            low, high = number(found[name]["low"]), number(found[name]["high"])
            cells.append(number(found[name]["median"]) + ("" if brief else f" ({low}-{high})"))
        for name in ours:
            cells.append(number(1 / faster(found, name, native, better)))
            cells += [number(faster(found, name, other, better)) for other in others]
        if requests:
            each = row.get("requests", {})
            cells.append(" / ".join(number(sum(each[name].values())) for name in ours if name in each))
        yield cells


def table(lines, markdown):
    lines = list(lines)
    if markdown:
        print("| " + " | ".join(lines[0]) + " |")
        print("|" + "---|" * len(lines[0]))
        for cells in lines[1:]:
            print("| " + " | ".join(cells) + " |")
    else:
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        for cells in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
    print()


def show_launch(launch):
    for name, found in launch["kinds"].items():
        added = f", {found['added']:.2f} more than bwrap, {found['ratio']:.2f} times" if "added" in found else ""
        print(f"{name}: {found['median']:.2f} ms ({found['low']:.2f}-{found['high']:.2f}){added}")
    print()


def show_scale(scale):
    idle = scale["daemon"]["with idle nests"]
    print(f"{scale['nests']} idle nests: {idle['resident_kib'] / 1024:.1f} MiB resident "
          f"({scale['kib_per_nest']:.1f} KiB a nest), {idle['threads']} threads, "
          f"{idle['descriptors']} descriptors, {100 * scale['cpu_when_idle']:.2f} % of a processor")
    for name in ("create", "first_use", "evict"):
        found = scale[name]
        print(f"{name}: first tenth {found['first']:.2f} ms, last {found['last']:.2f} ms, "
              f"{found['ratio']:.2f} times")
    run = scale["run"]
    print(f"run: in the first {run['first']['median']:.2f} ms, in the last {run['last']['median']:.2f} ms, "
          f"{run['ratio']:.2f} times")
    for name in ("ls", "metrics"):
        print(f"{name}: {scale[name]['median']:.1f} ms")
    print()


def show(result, markdown=False):
    for part, key in (("micro", "us"), ("macro", "s"), ("clients", "operations a second")):
        rows = result.get(part, [])
        for placement in dict.fromkeys(row["placement"] for row in rows):
            spread = "medians" if markdown else "median (quartiles)"
            print(f"{part}, placement {placement}: {spread}, {key}\n")
            table(lines_of([row for row in rows if row["placement"] == placement], key, markdown), markdown)
    if "launch" in result:
        show_launch(result["launch"])
    if "scale" in result:
        show_scale(result["scale"])


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        show(json.load(source), "--markdown" in sys.argv[2:])
