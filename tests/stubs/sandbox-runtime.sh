#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The stub keeper against a real, unmodified sandbox-runtime, which finds tmpnest-bwrap as
# `bwrap` in its PATH.
. "$(dirname "$0")/../lib.sh"

roles user # as agents run; the plain cases of tests/integration/stubs.sh are root's too
limit starts_fail_without_us 300
limit a_thousand_starts_do_not_fail 900
limit the_bypass_is_impossible_in_a_thousand_rounds 3600
long starts_fail_without_us a_thousand_starts_do_not_fail the_bypass_is_impossible_in_a_thousand_rounds

runtime_setup() {
	need node nodejs
	need rg ripgrep
	need socat socat
	need bwrap bubblewrap
	[ -d "$TT_NODE_MODULES/@anthropic-ai/sandbox-runtime" ] || {
		[ -z "${TT_STRICT:-}" ] || fail 'sandbox-runtime is not installed'
		skip 'sandbox-runtime could not be installed from npm'
	}
	node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' ||
		skip "sandbox-runtime needs a newer Node.js than $(node --version)"
	unset TMPNEST_NEST TMPNEST_NEST_FROM CLAUDE_CODE_TMPDIR CLAUDE_TMPDIR CLAUDE_CONFIG_DIR
	HOST_TMP=$(mktemp -d /tmp/tnstubs-XXXXXX)
	trap 'STATUS=$?; rm -rf "$HOST_TMP"; (exit "$STATUS"); end_case' EXIT
	STUBS=$TT_BUILD/launcher/tmpnest-stubs
	export TMPNEST_STUBS_LEDGER=$TT_WORK/state/ledger.json TMPDIR=$HOST_TMP
	mkdir -p "$TT_WORK/bin" "$TT_WORK/w"
	ln -s "$TT_BUILD/launcher/tmpnest-bwrap" "$TT_WORK/bin/bwrap"
}

with_front() { PATH=$TT_WORK/bin:$PATH "$@"; }

runtime() { (cd "$TT_WORK/${WHERE:-w}" && exec node "$TT_TESTS/stubs/runtime.mjs" "$@"); }

start_many() { # PROCESSES COMMANDS: the sum of failed starts in $failed
	local i pids=()
	for i in $(seq "$1"); do
		runtime many "$2" >"$TT_WORK/many$i" 2>&1 </dev/null &
		pids+=($!)
	done
	wait "${pids[@]}"
	grep -h "^bwrap" "$TT_WORK"/many* | sed "s|$TT_WORK/w|.|g" | sort | uniq -c || :
	equal 'processes that came to their end' "$(grep -lh '^failed' "$TT_WORK"/many* | wc -l)" "$1"
	failed=$(($(sed -n 's/^failed //p' "$TT_WORK"/many* | paste -sd+)))
}

bypass() { # ROUNDS [PAIRS]: how often a second one could write, in $written
	local pair pids=()
	for pair in $(seq "${2:-1}"); do
		mkdir "$TT_WORK/w$pair"
		WHERE=w$pair runtime first "$1" >"$TT_WORK/first$pair" 2>&1 </dev/null &
		WHERE=w$pair runtime second "$1" >"$TT_WORK/second$pair" 2>&1 </dev/null &
		pids+=($!)
	done
	for pair in "${!pids[@]}"; do
		wait "${pids[pair]}" || fail "$(tail "$TT_WORK"/first* "$TT_WORK"/second*)"
	done
	equal 'pairs that came to their end' "$(grep -lx 'written [0-9]*' "$TT_WORK"/second* | wc -l)" "${2:-1}"
	written=$(($(sed -n 's/^written //p' "$TT_WORK"/second* | paste -sd+)))
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
	with_front start_many 4 3
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
	bypass 2
	echo "written in $written of 2 rounds"
	[ "$written" -gt 0 ]
}

case_the_bypass_is_impossible() {
	runtime_setup
	with_front bypass 3
	equal 'rounds in which the denied path was written' "$written" 0
}

case_the_bypass_is_impossible_in_a_thousand_rounds() {
	runtime_setup
	with_front bypass 250 4
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
