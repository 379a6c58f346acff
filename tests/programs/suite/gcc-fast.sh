#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:gcc:gcc
. "${0%/*}/lib"

printf '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%%d\\n", twice(21)); return 0; }\n' >main.c
printf 'int twice(int n) { return 2 * n; }\n' >twice.c
gcc -save-temps=obj -o program main.c twice.c
equal program "$(./program)" 42
gcc -shared -fPIC -o libtwice.so twice.c
gcc -o dynamic main.c -L. -ltwice -Wl,-rpath,/tmp
equal 'with a library' "$(./dynamic)" 42
printf '#include <unistd.h>\nint main(void) { return pause(); }\n' >pause.c
gcc -o pause pause.c
./pause &
sleep 0.2
! (: >pause) 2>error || fail 'a running program could be written'
grep -q 'Text file busy' error
rm pause
equal 'no file of the compiler is left' "$(ls /tmp | grep -c '^cc' || true)" 0
