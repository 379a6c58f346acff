#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completion of the command line in bash, zsh and fish, tried in the shells themselves.
. "$(dirname "$0")/../lib.sh"
roles user     # the same for everybody
TT_LIMIT=400   # some hundred processes, on a busy machine

files=${TT_TESTS:-}/../data/completion # unset while the cases are listed

# complete_SHELL LINE...: what each line is completed to, a line of its own: "LINE: CHOICES". A line
# ends with the word that is being typed; one that ends in a blank begins a new word.
complete_bash() {
	bash --norc -c '. "$1" && shift && for line in "$@"; do
		read -r -a COMP_WORDS <<<"$line"
		[ "${line% }" = "$line" ] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_tmpnest
		echo "$line: ${COMPREPLY[*]}"
	done' bash "$files/tmpnest.bash" "$@"
}

complete_zsh() {
	zsh -f -c '
		compadd() { # prints what it is given, with the suffix, where it fits the word
			local suffix word
			while [[ $1 != -- ]]; do
				[[ $1 != -S ]] || { suffix=$2; shift }
				shift
			done
			shift
			for word in "$@"; do [[ $word != $words[CURRENT]* ]] || print -rn -- " $word$suffix"; done
		}
		_files() { print -rn -- " <files>" }
		_users() { print -rn -- " <users>" }
		_normal() { print -rn -- " <command $words[CURRENT]>" }
		file=$1
		shift
		lines=("$@")
		set --
		for line in $lines; do
			words=(${(s: :)line})
			[[ $line != *" " ]] || words+=("")
			CURRENT=$#words
			print -rn -- "$line:"
			. $file
			print
		done' zsh "$files/_tmpnest" "$@"
}

complete_fish() {
	HOME=$TT_WORK XDG_CONFIG_HOME=$TT_WORK XDG_DATA_HOME=$TT_WORK fish -N -c '
		source $argv[1]
		for line in $argv[2..-1]
			echo "$line: "(complete -C $line | string replace -r "\t.*" "" | string join " ")
		end' "$files/tmpnest.fish" "$@"
}

# Each line of the input, "LINE|CHOICES", is completed to those, in any order; all in one shell.
check_lines() { # SHELL
	local lines=() choices=() line rest got n=0
	while IFS='|' read -r line rest; do
		lines+=("$line") choices+=("$rest")
	done
	"complete_$1" "${lines[@]}" >got
	while IFS= read -r got; do
		equal "$1: ${lines[n]}" "$(xargs -n1 <<<"${got#"${lines[n]}":}" | sort | xargs)" "$(xargs -n1 <<<"${choices[n]}" | sort | xargs)"
		n=$((n + 1))
	done <got
	equal "$1: lines" "$n" "${#lines[@]}"
}

check_shell() { # SHELL
	tmpnest create alpha --deny /tmp/secret
	tmpnest create beta
	check_lines "$1" <<-'END'
		tmpnest exp|export
		tmpnest help ex|export
		tmpnest show |alpha beta
		tmpnest show --owner root al|alpha
		tmpnest evict alpha b|beta
		tmpnest cp b|beta:
		tmpnest run --nest a|alpha
		tmpnest create --store |dir memory image
		tmpnest run --quota 1G --net |host none
		tmpnest show --ver|--verify
		tmpnest daemon |start stop status restart upgrade
		tmpnest daemon up|upgrade
		tmpnest deny alpha |ls add rm
		tmpnest read-only alpha a|add
		tmpnest deny alpha rm /tmp/s|/tmp/secret
		tmpnest stubs re|release reclaim
		tmpnest gc --dr|--dry-run
	END
	tmpnest evict alpha
	check_lines "$1" <<<'tmpnest freeze |beta'
	tmpnest evict beta
	check_every_option "$1"
}

# Every verb that help names, and every option that a verb's help names.
check_every_option() { # SHELL
	local verb lines=('tmpnest ')
	tmpnest help | sed -nE 's/^  ([a-z][a-z-]*) .*/\1/p' >verbs
	[ "$(wc -l <verbs)" -ge 24 ] || fail "the verbs of help: $(xargs <verbs)"
	for verb in $(cat verbs); do
		lines+=("tmpnest $verb --")
		tmpnest help "$verb" >"help-$verb"
	done
	"complete_$1" "${lines[@]}" >completed
	"$TT_PYTHON" - completed $(cat verbs) <<'END'
import re, sys

offered = {}
for line in open(sys.argv[1]):
    typed, _, choices = line.partition(":")
    offered[typed] = set(choices.split())
verbs = set(sys.argv[2:])
missing = sorted(verbs - offered["tmpnest "])
for verb in verbs:
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", open("help-" + verb).read()))
    if verb != "help" and not options:
        sys.exit(verb + ": no options in its help")
    missing += [verb + " " + option for option in sorted(options - offered["tmpnest %s --" % verb])]
if missing:
    sys.exit("not offered: " + ", ".join(missing))
END
}

case_bash() { check_shell bash; }

case_zsh() {
	need zsh zsh
	check_shell zsh
	# what another completion does
	equal 'a command' "$(complete_zsh 'tmpnest run -- l')" 'tmpnest run -- l: <command l>'
	equal 'a command behind options' "$(complete_zsh 'tmpnest run --nest x make tes')" 'tmpnest run --nest x make tes: <command tes>'
	equal 'a file' "$(complete_zsh 'tmpnest export x --output ')" 'tmpnest export x --output : <files>'
	equal 'a user' "$(complete_zsh 'tmpnest show --owner ')" 'tmpnest show --owner : <users>'
}

case_fish() {
	need fish fish
	check_shell fish
}

main "$@"
