#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The bench runs, and its results have the shape that its readers count on. No time is
# looked at: those mean something only next to each other, on a quiet machine.
. "$(dirname "$0")/../lib.sh"
roles root
TT_SHARED_DAEMON=no

run_bench() { TMPNEST_BUILD=$TT_BUILD "$TT_TESTS/../bench/run.sh" --no-install "$@"; }

case_the_smallest_run_and_its_results() {
	runs 0 run_bench --quick --subjects tmpfs,tmpnest --operations create,hot --output r.json
	contains 'the table' "$out" 'create, close, unlink'
	"$TT_PYTHON" - r.json <<-'END' || fail 'the results have another shape'
		import json, sys
		result = json.load(open(sys.argv[1]))
		assert result["format"] == 1 and result["command"].startswith("bench/run.sh --no-install --quick")
		assert {"kernel", "processors", "model", "load"} <= set(result["host"])
		assert [subject["name"] for subject in result["subjects"]] == ["tmpfs", "tmpnest"]
		rows = result["micro"]
		assert [row["operation"] for row in rows] == ["create", "hot"]
		for row in rows:
		    assert row["placement"] == "free" and row["unit"] == "us" and row["words"]
		    assert list(row["subjects"]) == ["tmpfs", "tmpnest"]
		    for found in row["subjects"].values():
		        assert len(found["values"]) == result["settings"]["rounds"] == 2
		        assert 0 < found["low"] <= found["median"] <= found["high"]
		requests = rows[0]["requests"]["tmpnest"]
		assert requests["MKNOD"] == 1 and requests["UNLINK"] == 1, requests
		assert not rows[1]["requests"]["tmpnest"], "a hot file costs requests"
		kinds = result["launch"]["kinds"]
		assert set(kinds) == {"bwrap", "run", "run-new", "create", "evict"}
		assert all(len(found["values"]) == 3 for found in kinds.values())
		assert {"added", "ratio"} <= set(kinds["run"]) & set(kinds["run-new"])
	END
}

case_what_is_asked_for_wrongly_is_said() {
	runs 2 run_bench --only nonsense
	contains 'the message' "$err" 'nonsense: no such part'
	runs 2 run_bench --frobnicate 1
	contains 'the message' "$err" 'unknown option'
	runs 1 run_bench --quick --subjects nobody --output r.json
	contains 'the message' "$err" 'nobody: unknown'
	runs 1 run_bench --quick --peer other=/no/such/program --output r.json
	contains 'the message' "$err" 'not a program'
}

main "$@"
