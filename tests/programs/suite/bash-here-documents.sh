#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:bash:bash command:dash:dash
. "${0%/*}/lib"

# long here-documents and here-strings are unlinked files of TMPDIR
long=$(seq 30000)
equal 'here-string' "$(wc -l <<<"$long")" 30000
equal 'here-document' "$(cat <<END | tail -1
$long
END
)" 30000
diff <(seq 1000) <(seq 1000)
seq 2000 | tee >(wc -l >one) >(tail -1 >two) >/dev/null
becomes test -s one
becomes test -s two
equal 'process substitution' "$(cat one two | xargs)" '2000 2000'
cat <<-END >script
	exec 5<>/tmp/both
	echo wren >&5
	read -r x </tmp/both
	set -C
	! (: >/tmp/both) 2>/dev/null || exit 1
	echo "\$x" >>/tmp/appended
	: >|/tmp/both
END
for shell in bash dash; do $shell -e script; rm -f both; done
equal appended "$(xargs <appended)" 'wren wren'
exec 6>log
rm log
echo gone >&6
equal 'an unlinked file' "$(cat /proc/self/fd/6)" gone
mapfile -t lines < <(ls -1 /tmp)
[ "${#lines[@]}" -ge 4 ]
equal 'left in /tmp' "$(ls /tmp | grep -c '^sh-thd' || true)" 0
coproc { tr a-z A-Z; }
echo wren >&"${COPROC[1]}"
eval "exec ${COPROC[1]}>&-"
read -r answer <&"${COPROC[0]}"
equal coproc "$answer" WREN
