# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of tmpnest. Verbs, their words and options are asked of tmpnest itself, nests of the
# daemon, so that nothing here has to follow them.

_tmpnest_verbs() { # of `tmpnest help [stubs]`
	tmpnest help "$@" 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'
}

# The words one of which a verb takes, as help has them: a|b|c.
_tmpnest_words() { # VERB
	tmpnest help 2>/dev/null | sed -n "s/^  $1 .*[ ]\([a-z]*|[a-z|]*\) .*/\1/p" | tr '|' '\n'
}

_tmpnest_nests() { # names, as the daemon lists them now
	tmpnest metrics 2>/dev/null | sed -n 's/^tmpnest_nest_used_bytes{nest="\([^"]*\)".*/\1/p'
}

_tmpnest_rules() { # VERB NEST: what `rm` can take away
	tmpnest "$1" "$2" ls --json 2>/dev/null | sed -n 's/.*"pattern" *: *"\([^"\\]*\)".*/\1/p'
}

# Does this option take a word? As help shows it: --option=WORD or --option WORD.
_tmpnest_takes_word() { # HELP OPTION
	grep -qE -- "(^|[ ,(])$2(, --[a-z-]+)?[= ][^] []" <<<"$1"
}

_tmpnest_offer() { # WORD SUFFIX CHOICES
	mapfile -t COMPREPLY < <(compgen -S "$2" -W "$3" -- "$1")
}

_tmpnest_option_word() { # WORD OPTION
	case $2 in
	--nest) _tmpnest_offer "$1" '' "$(_tmpnest_nests)" ;;
	--store) _tmpnest_offer "$1" '' 'dir memory image' ;;
	--net) _tmpnest_offer "$1" '' 'host none' ;;
	--run-as) mapfile -t COMPREPLY < <(compgen -u -- "$1") ;;
	--owner) [ "${COMP_WORDS[1]}" = stubs ] || mapfile -t COMPREPLY < <(compgen -u -- "$1") ;;
	--workspace | --runtime-dir | --store-dir | --cwd | --home | --config-dir | --writable)
		mapfile -t COMPREPLY < <(compgen -d -- "$1")
		;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$1") ;;
	esac
}

_tmpnest_argument() { # VERB WORD ARGUMENT-BEFORE...
	local verb=$1 word=$2
	shift 2
	case $verb:$# in
	help:0) _tmpnest_offer "$word" '' "$(_tmpnest_verbs)" ;;
	stubs:0) _tmpnest_offer "$word" '' "$(_tmpnest_verbs stubs)" ;;
	daemon:0) _tmpnest_offer "$word" '' "$(_tmpnest_words daemon)" ;;
	cp:0) compopt -o nospace 2>/dev/null; _tmpnest_offer "$word" : "$(_tmpnest_nests)" ;;
	df:* | evict:*) _tmpnest_offer "$word" '' "$(_tmpnest_nests)" ;;
	deny:1 | read-only:1) _tmpnest_offer "$word" '' "$(_tmpnest_words "$verb")" ;;
	deny:* | read-only:*)
		[ $# -gt 0 ] || { _tmpnest_offer "$word" '' "$(_tmpnest_nests)" && return; }
		[ "$2" != rm ] || _tmpnest_offer "$word" '' "$(_tmpnest_rules "$verb" "$1")"
		;;
	show:0 | limits:0 | du:0 | files:0 | cat:0 | export:0 | events:0 | lsof:0 | freeze:0 | thaw:0)
		_tmpnest_offer "$word" '' "$(_tmpnest_nests)"
		;;
	esac
}

_tmpnest() {
	local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]-} help i
	local -a before=()
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_tmpnest_offer "$word" '' "$(_tmpnest_verbs)"
		return
	fi
	help=$(tmpnest help "$verb" 2>/dev/null)
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) i=$((i + 1)) && before+=(--) && break ;;
		-*)
			_tmpnest_takes_word "$help" "${COMP_WORDS[i]}" || continue
			i=$((i + 1))
			[ "$i" -lt "$COMP_CWORD" ] || { _tmpnest_option_word "$word" "${COMP_WORDS[i - 1]}" && return; }
			;;
		*)
			before+=("${COMP_WORDS[i]}")
			[ "$verb" != run ] || break
			;;
		esac
	done
	case $verb:${before[*]} in
	run:?* | stubs:*--)
		# what is run has a completion of its own
		! declare -F _command_offset >/dev/null || _command_offset "$i"
		return
		;;
	esac
	case $word in
	-*) _tmpnest_offer "$word" '' "$(grep -oE -- '--[a-z][a-z-]*' <<<"$help" | sort -u)" ;;
	*) _tmpnest_argument "$verb" "$word" "${before[@]}" ;;
	esac
}
complete -o default -F _tmpnest tmpnest
