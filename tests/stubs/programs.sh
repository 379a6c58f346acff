#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Filled stubs lie where programs look for their files: an agent's programs read each of them as if it
# were not there.
. "$(dirname "$0")/../lib.sh"

roles user # as agents run

# A home directory with nothing but filled stubs.
filled_home() {
	export TMPNEST_STUBS_LEDGER=$TT_WORK/state/ledger.json HOME=$TT_WORK/home
	mkdir "$HOME"
	"$TT_BUILD/launcher/tmpnest-stubs" hold --owner f --pid $$ --cwd "$HOME" --home "$HOME" --filled >/dev/null
	local name
	for name in .gitconfig .gitmodules .bashrc .bash_profile .profile .zshrc .zprofile .ripgreprc .mcp.json; do
		[ -s "$HOME/$name" ] || fail "no filled $name"
	done
}

case_git() {
	filled_home
	runs 1 git config --global user.name # it has none
	equal 'what it says' "$out$err" ''
	runs 0 git config --global --list
	runs 0 git config --file "$HOME/.gitmodules" --list
	git init -q "$TT_WORK/tree"
	cp "$HOME/.gitmodules" "$TT_WORK/tree/"
	runs 0 git -C "$TT_WORK/tree" -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
	runs 0 git -C "$TT_WORK/tree" submodule status
	equal 'what it says' "$out$err" ''
}

case_shells() {
	need zsh zsh
	filled_home
	local shell
	for shell in 'bash -i' 'bash -l' 'zsh -i' 'zsh -l' 'zsh -il'; do
		# shellcheck disable=SC2086  # words
		runs 0 $shell -c 'echo fine'
		equal "$shell" "$out" fine
		lacks "what $shell says" "$err" "$HOME"
	done
	runs 0 sh -c '. "$HOME/.profile" && echo fine'
	equal sh "$out" fine
}

case_json() {
	need node nodejs
	filled_home
	local files=("$HOME"/.*.json "$HOME"/.claude/*.json)
	at_most 'files missing' $((5 - ${#files[@]})) 0
	runs 0 "$TT_PYTHON" -c 'import json,sys
for name in sys.argv[1:]: assert json.load(open(name)) == {}, name' "${files[@]}"
	runs 0 node -e 'for (const f of process.argv.slice(1)) if (Object.keys(JSON.parse(require("fs").readFileSync(f))).length) throw f' "${files[@]}"
}

case_ripgrep() {
	need rg ripgrep
	filled_home
	echo needle >"$TT_WORK/hay"
	RIPGREP_CONFIG_PATH=$HOME/.ripgreprc runs 0 rg --no-filename needle "$TT_WORK/hay"
	equal 'what it finds' "$out" needle
	equal 'what it says' "$err" ''
}

main "$@"
