#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Draws the results of bench/run.sh: how many times slower than the first subject (tmpfs)
# each other one is, operation by operation.  bench/plot.sh FILE.json FILE.svg [PLACEMENT]
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -ge 2 ] || { echo "usage: bench/plot.sh FILE.json FILE.svg [one|two|free]" >&2 && exit 2; }
case $1 in /*) results=$1 ;; *) results=$OLDPWD/$1 ;; esac
case $2 in /*) picture=$2 ;; *) picture=$OLDPWD/$2 ;; esac
placement=${3:-free}
. launcher/packages.sh
tn_install_missing command:gnuplot:gnuplot-nox command:python3:python3 || exit 1
data=$(mktemp)
trap 'rm -f "$data"' EXIT

python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" - "$results" "$placement" >"$data" <<'END' || exit 1
import json, sys

result = json.load(open(sys.argv[1]))
rows = [row for part in ("micro", "macro") for row in result.get(part, []) if row["placement"] == sys.argv[2]]
if not rows:
    sys.exit(f"bench/plot.sh: {sys.argv[1]}: nothing with placement {sys.argv[2]} in it")
names = list(rows[0]["subjects"])
print("operation", *(f'"{name}"' for name in names[1:]))
for row in rows:
    base = row["subjects"][names[0]]["median"]
    print(row.get("operation") or row["job"], *(f"{row['subjects'][name]['median'] / base:.3f}" for name in names[1:]))
END
columns=$(head -1 "$data" | wc -w)
gnuplot <<END
set terminal svg size 1200,520 font "sans,11" background "white"
set output "$picture"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.85 noborder
set logscale y
set grid ytics
set ylabel "times slower than tmpfs (log)"
set xtics rotate by -40 noenhanced
set key outside top center horizontal noenhanced
set title "placement: $placement"
plot for [i=2:$columns] "$data" using i:xtic(1) title columnheader(i)
END
[ -s "$picture" ] && echo "written: $picture"
