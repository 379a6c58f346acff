#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:vim:vim
. "${0%/*}/lib"

export TERM=dumb
vim=(vim -u NONE -i NONE -N -es)
printf 'one\ntwo\n' >text
"${vim[@]}" -c 'set backup writebackup undofile' -c '1s/one/1/' -c 'wq' text
equal text "$(xargs <text)" '1 two'
[ -e text~ ] && [ -e .text.un~ ]
# a killed editor leaves its swap file, from which the text is recovered
mkfifo keys
"${vim[@]}" -c 'set noswapfile | set swapfile' text <keys >/dev/null 2>&1 &
editor=$!
exec 7>keys
printf '%s\n' '$put =\"lost\"' 'preserve' >&7
swap() { strings -a .text.swp 2>/dev/null | grep -q lost || grep -qa lost .text.swp; }
becomes swap
kill -9 $editor
wait $editor 2>/dev/null || true
"${vim[@]}" -r -c 'w! recovered' -c 'q!' text >/dev/null 2>&1 || true
equal recovered "$(xargs <recovered)" '1 two lost'
