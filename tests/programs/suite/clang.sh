#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:clang:clang
# long
. "${0%/*}/lib"

echo '#pragma once' >h.h
printf 'int f(void);\n' >>h.h
printf '#include "h.h"\nint f(void) { return 7; }\n' >f.c
printf '#include <stdio.h>\n#include "h.h"\nint main(void) { printf("%%d\\n", f()); }\n' >main.c
clang -O2 -o program main.c f.c
equal output "$(./program)" 7
clang -x c-header h.h -o h.pch
clang -include-pch h.pch -c f.c -o f.o
clang -fmodules -fmodules-cache-path=/tmp/modules -c main.c -o main.o
clang -o again main.o f.o
equal 'with a precompiled header' "$(./again)" 7
