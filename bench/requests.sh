#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Counts the FUSE requests of each user operation, from the daemon's own counters, and
# times it inside a sandbox.  bench/requests.sh [ROUNDS [OPTION-OF-RUN...]]
#
# The requests of a run with 0 rounds (starting a sandbox, preparing the scene) are taken
# off; FORGET and BATCH_FORGET have no reply and are listed, not counted.
. "$(dirname "$0")/lib.sh"
ROUNDS=${1:-1000}
OPTIONS=("${@:2}")
bench_begin
cp "$BUILD/bench/ops" ops

counts() { # OPERATION ROUNDS: the daemon's counters of a new nest that has run it, then the time
	local us
	us=$(tmpnest run --nest counted --no-var-tmp "${OPTIONS[@]}" -- ./ops "$1" "$2" /tmp)
	tmpnest show counted --json
	echo "$us" >us
	tmpnest evict --force counted >/dev/null
}

printf '%-30s %9s %9s   %s\n' operation requests us which
./ops list | while IFS=: read -r name words; do
	counts "$name" 0 >base.json
	counts "$name" "$ROUNDS" >full.json
	"$PYTHON" - "$ROUNDS" "$words" "$(cat us)" <<'END'
import json, sys

rounds, words, us = int(sys.argv[1]), sys.argv[2].strip(), sys.argv[3]
base, full = (json.load(open(name))["operations"] for name in ("base.json", "full.json"))
per = {k: (v - base.get(k, 0)) / rounds for k, v in full.items()}
per = {k: v for k, v in per.items() if round(v, 1) > 0}
total = sum(v for k, v in per.items() if "FORGET" not in k)
which = "  ".join(f"{k} {v:.1f}".removesuffix(".0") for k, v in sorted(per.items()))
print(f"{words:30} {total:9.1f} {us:>9}   {which}")
END
done
