#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:zsh:zsh
# long
. "${0%/*}/lib"

cat >script.zsh <<-'END'
	zmodload zsh/files zsh/stat zsh/system zsh/mapfile zsh/net/socket
	print -l {1..500} >n
	diff =(sort -n n) n || exit 1       # a file made for the command, then removed
	mapfile[made]=wren
	[[ $(<made) = wren ]] || exit 2
	zsocket -l /tmp/z.sock; integer l=$REPLY
	zsocket /tmp/z.sock; integer c=$REPLY
	zsocket -a $l; integer s=$REPLY
	print -u $c hello; read -u $s x; [[ $x = hello ]] || exit 3
	touch lock; zsystem flock lock || exit 4
	mkdir -p a/b/{1..20}; [[ $(print -l a/**/*(/) | wc -l) -eq 21 ]] || exit 6
	zstat -H st made; (( st[size] == 4 )) || exit 7
END
zsh -f script.zsh
equal 'left in /tmp' "$(ls /tmp | grep -c "^zsh" || true)" 0
