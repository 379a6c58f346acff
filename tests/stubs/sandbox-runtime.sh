#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The stub keeper against a real, unmodified sandbox-runtime, which finds the front as `bwrap`
# in its PATH. Installs the runtime from npm, once per machine.
. "$(dirname "$0")/../lib.sh"

TT_LIMIT=300
limit a_thousand_starts_do_not_fail 900
limit the_bypass_is_impossible_in_a_thousand_rounds 1800
long starts_fail_without_us a_thousand_starts_do_not_fail the_bypass_is_impossible_in_a_thousand_rounds

runtime_setup() {
	need node nodejs
	need rg ripgrep
	need socat socat
	need bwrap bubblewrap
	node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
		skip "sandbox-runtime needs a newer Node.js than $(node --version)"
	export TT_STUBS_NODE_MODULES=${TT_STUBS_NODE_MODULES:-${XDG_CACHE_HOME:-$HOME/.cache}/tmpnest-stub-tests}
	if [ ! -d "$TT_STUBS_NODE_MODULES/node_modules/@anthropic-ai/sandbox-runtime" ]; then
		mkdir -p "$TT_STUBS_NODE_MODULES"
		cp "$TT_TESTS/stubs/package.json" "$TT_TESTS/stubs/package-lock.json" "$TT_STUBS_NODE_MODULES/"
		(cd "$TT_STUBS_NODE_MODULES" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
			skip 'sandbox-runtime could not be installed from npm'
	fi
	STUBS=$TT_BUILD/launcher/tmpnest-stubs
	export TMPNEST_STUBS_LEDGER=$TT_WORK/state/ledger.json
	export STUB_FRONT_RUNTIME=$TT_WORK/run STUB_FRONT_REAPER=$STUBS STUB_FRONT_BWRAP
	STUB_FRONT_BWRAP=$(command -v bwrap)
	mkdir -p "$TT_WORK/run" "$TT_WORK/bin" "$TT_WORK/w"
	printf '#!/bin/sh\nexec %q "$@"\n' "$TT_BUILD/tests/tools/stub-front" >"$TT_WORK/bin/bwrap"
	chmod +x "$TT_WORK/bin/bwrap"
}

with_front() { PATH=$TT_WORK/bin:$PATH "$@"; }

runtime() { (cd "$TT_WORK/w" && exec node "$TT_TESTS/stubs/runtime.mjs" "$@"); }

start_many() { # PROCESSES COMMANDS: the sum of failed starts in $failed
	local i pids=()
	for i in $(seq "$1"); do
		runtime many "$2" >"$TT_WORK/many$i" 2>&1 </dev/null &
		pids+=($!)
	done
	wait "${pids[@]}"
	grep -h "^bwrap" "$TT_WORK"/many* | sed "s|$TT_WORK/w|.|g" | sort | uniq -c || :
	equal 'processes that came to their end' "$(grep -lh '^failed' "$TT_WORK"/many* | wc -l)" "$1"
	failed=$(sed -n 's/^failed //p' "$TT_WORK"/many* | paste -sd+ | bc)
}

bypass() { # ROUNDS: how often the second one could write, in $written
	runtime first "$1" >"$TT_WORK/first" 2>&1 </dev/null &
	runtime second "$1" >"$TT_WORK/second" 2>&1 </dev/null
	wait $!
	written=$(sed -n 's/^written //p' "$TT_WORK/second")
	[ -n "$written" ] || fail "the second one: $(cat "$TT_WORK/second" "$TT_WORK/first")"
}

nothing_left() { [ -z "$(ls -A "$TT_WORK/w")" ]; }

case_starts_fail_without_us() {
	runtime_setup
	start_many 4 30
	echo "$failed of 120 starts failed"
	[ "$failed" -gt 0 ]
}

case_starts_do_not_fail() {
	runtime_setup
	with_front start_many 4 5
	equal 'failed starts' "$failed" 0
	eventually 10 nothing_left
}

case_a_thousand_starts_do_not_fail() {
	runtime_setup
	with_front start_many 8 125
	equal 'failed starts' "$failed" 0
	eventually 10 nothing_left
}

case_a_deny_is_bypassed_without_us() {
	runtime_setup
	bypass 3
	echo "written in $written of 3 rounds"
	[ "$written" -gt 0 ]
}

case_the_bypass_is_impossible() {
	runtime_setup
	with_front bypass 10
	equal 'rounds in which the denied path was written' "$written" 0
}

case_the_bypass_is_impossible_in_a_thousand_rounds() {
	runtime_setup
	with_front bypass 1000
	equal 'rounds in which the denied path was written' "$written" 0
}

# What a real sandbox denies, with every path there, is what the profile knows but for the
# agent's own, which this runtime alone does not deny.
case_audit_of_a_real_sandbox() {
	runtime_setup
	local profile=$TT_WORK/profile.json
	cat >"$profile" <<-'EOF'
		{"name": "runtime", "source": "@anthropic-ai/sandbox-runtime", "version": "0.0.83",
		 "directories": [".claude"],
		 "sets": [{"where": "cwd", "paths": [".gitconfig", ".gitmodules", ".bashrc", ".bash_profile",
		  ".zshrc", ".zprofile", ".profile", ".ripgreprc", ".mcp.json", ".vscode", ".idea",
		  ".claude/commands", ".claude/agents"]}],
		 "also_denied": [{"where": "cwd", "paths": [".claude"]}]}
	EOF
	runtime mountinfo >mountinfo
	capture "$STUBS" audit --mountinfo mountinfo --cwd "$TT_WORK/w" --home "$TT_WORK" --profile "$profile"
	equal 'differences from the right profile' "$out" ''
	equal status "$status" 0
	sed -i 's/".zshrc", //; s/".idea"/".idea", ".new"/' "$profile"
	capture "$STUBS" audit --mountinfo mountinfo --cwd "$TT_WORK/w" --home "$TT_WORK" --profile "$profile" --json
	equal status "$status" 1
	equal 'denied only' "$(json 'd["denied_only"]' <<<"$out")" "[\"$TT_WORK/w/.zshrc\"]"
	equal 'profile only' "$(json 'd["profile_only"]' <<<"$out")" "[\"$TT_WORK/w/.new\"]"
}

main "$@"
