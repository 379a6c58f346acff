#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Which host directories a command may write.
. "$(dirname "$0")/../lib.sh"

case_the_cwd_is_the_default_workspace() {
	mkdir here
	cd here
	runs 0 tmpnest run -- sh -c 'pwd; echo written >file'
	equal 'cwd inside' "$out" "$TT_WORK/here"
	equal 'content' "$(cat file)" written
	runs 1 tmpnest run -- touch "$TT_WORK/beside"
	[ ! -e "$TT_WORK/beside" ] || fail 'written outside the workspace'
}

case_a_named_workspace_replaces_the_cwd() {
	mkdir one two three
	runs 0 tmpnest run --workspace "$TT_WORK/one" --workspace two -- \
		sh -c "touch $TT_WORK/one/f $TT_WORK/two/f && ! touch $TT_WORK/three/f 2>/dev/null"
	[ -e one/f ] && [ -e two/f ] && [ ! -e three/f ]
}

case_root_is_refused() {
	cd /
	runs 125 tmpnest run -- true
	one_message
	contains message "$err" /
	runs 125 tmpnest run --workspace / -- true
	one_message
}

case_home_must_be_named() {
	cd "$HOME"
	runs 125 tmpnest run -- true
	one_message
	contains message "$err" "$HOME"
	contains 'what to do' "$err" --workspace
	runs 0 tmpnest run --workspace "$HOME" -- sh -c 'touch tn-home-probe && rm tn-home-probe'
	[ ! -e "$HOME/tn-home-probe" ]
}

case_a_directory_that_is_missing_is_refused() {
	runs 125 tmpnest run --workspace "$TT_WORK/missing" -- true
	one_message
	contains message "$err" missing
}

case_a_cwd_below_the_hosts_tmp_is_the_workspace_there() {
	local dir
	dir=$(mktemp -d /tmp/tn-work.XXXXXX)
	mkdir "$dir/sub"
	echo given >"$dir/sub/in"
	cd "$dir/sub"
	capture tmpnest run -- sh -c "pwd; cat in; echo out >out; ls -A /tmp; ls -A $dir"
	local made
	made=$(cat out 2>/dev/null || true)
	cd "$TT_WORK"
	rm -rf "$dir"
	equal status "$status" 0
	equal 'cwd inside' "$(sed -n 1p <<<"$out")" "$dir/sub"
	equal 'read inside' "$(sed -n 2p <<<"$out")" given
	equal 'written inside' "$made" out
	equal 'what else is in /tmp' "$(sed -n 3,4p <<<"$out" | xargs)" "${dir#/tmp/} sub"
}

case_tmp_itself_is_no_workspace_but_may_be_the_cwd() {
	local name
	name=$(unique)
	cd /tmp
	runs 0 tmpnest run -- sh -c "pwd; touch $name; ls -A"
	equal 'inside' "$(xargs <<<"$out")" "/tmp $name"
	[ ! -e "/tmp/$name" ] || fail "made on the host: /tmp/$name"
	runs 125 tmpnest run --workspace /tmp -- true
	one_message
	contains message "$err" /tmp
}

case_a_cwd_that_was_removed() {
	mkdir gone
	cd gone
	rmdir ../gone
	runs 125 tmpnest run -- true
	one_message
}

case_symbolic_links_to_a_workspace() {
	mkdir real
	ln -s real link
	runs 0 tmpnest run --workspace "$TT_WORK/link" -- touch "$TT_WORK/real/f"
	[ -e real/f ]
}

main "$@"
