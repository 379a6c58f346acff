#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:gcc:gcc command:make:make
# long
# limit: 120
. "${0%/*}/lib"

for i in $(seq 12); do
	printf 'int f%s(int n) { return n + %s; }\n' $i $i >f$i.c
done
{
	echo '#include <stdio.h>'
	seq -f 'int f%g(int);' 12
	echo 'int main(void) { int n = 0;'
	seq -f 'n += f%g(0);' 12
	echo 'printf("%d\n", n); return 0; }'
} >main.c
cat >Makefile <<-'END'
	.RECIPEPREFIX = >
	objects := main.o $(patsubst %,f%.o,$(shell seq 12))
	program: main.o libf.a
	>gcc -flto -o $@ $^
	libf.a: $(filter-out main.o,$(objects))
	>ar rcs $@ $^
	%.o: %.c
	>gcc -O1 -MMD -g -c -o $@ $<
	-include $(wildcard *.d)
END
make -s -j1 program
equal output "$(./program)" 78
make -q program || fail 'not up to date'
sleep 0.02
echo 'int f3(int n) { return n + 100; }' >f3.c
make -s program
equal 'after a change' "$(./program)" 175
gcc -O0 -g -save-temps -o saved main.c f*.o
gdb_less=$(readelf -h saved | grep -c 'ELF64')
equal 'an ELF file' "$gdb_less" 1
equal 'no file of the compiler is left' "$(ls /tmp | grep -c '^cc' || true)" 0
