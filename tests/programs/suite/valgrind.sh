#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:valgrind:valgrind command:gcc:gcc
# long
# limit: 120
. "${0%/*}/lib"

# valgrind's channels to the debugger are fifos and a mapped file in TMPDIR
printf '#include <stdlib.h>\nint main(void) { char *p = malloc(10); p[10] = 1; free(p); return 0; }\n' >p.c
gcc -g -O0 -o p p.c
! valgrind -q --error-exitcode=9 --log-file=/tmp/v.log ./p || fail 'no error was found'
grep -q 'Invalid write' v.log
valgrind --vgdb=yes --vgdb-error=0 ./p >/dev/null 2>&1 &
piped() { [ -n "$(find /tmp -name 'vgdb-pipe-*' -type p)" ]; }
becomes piped
vgdb kill >/dev/null 2>&1 || true
