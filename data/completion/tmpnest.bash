# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion of tmpnest. Verbs and options are asked of tmpnest itself, nests of the daemon.
_tmpnest() {
	local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]-}
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(tmpnest help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')" -- "$word")
		return
	fi
	case $word in
	-*)
		mapfile -t COMPREPLY < <(compgen -W "$(tmpnest help "$verb" 2>/dev/null | grep -oE -- '--[a-z][a-z-]*')" -- "$word")
		return
		;;
	esac
	case $verb in
	help) mapfile -t COMPREPLY < <(compgen -W "$(tmpnest help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')" -- "$word") ;;
	daemon) mapfile -t COMPREPLY < <(compgen -W 'start stop status' -- "$word") ;;
	run) [ "${COMP_WORDS[COMP_CWORD - 1]}" != --nest ] || _tmpnest_nests "$word" ;;
	show | limits | df | du | files | cat | export | events | lsof | evict | freeze | thaw | deny | read-only) _tmpnest_nests "$word" ;;
	cp) _tmpnest_nests "$word" : ;;
	esac
}

# Names of nests, as the daemon lists them now.
_tmpnest_nests() { # WORD [SUFFIX]
	mapfile -t COMPREPLY < <(compgen -S "${2-}" -W "$(tmpnest metrics 2>/dev/null | sed -n 's/^tmpnest_nest_used_bytes{nest="\([^"]*\)".*/\1/p')" -- "$1")
}
complete -o default -F _tmpnest tmpnest
