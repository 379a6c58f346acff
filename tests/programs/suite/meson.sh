#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:meson:meson command:ninja:ninja-build command:gcc:gcc
# long
# limit: 120
. "${0%/*}/lib"

mkdir src
cat >src/meson.build <<-'END'
	project('nest', 'c')
	l = static_library('f', 'f.c')
	e = executable('program', 'main.c', link_with: l, install: true)
	test('runs', e)
	configure_file(output: 'config.h', configuration: {'A': 1})
END
echo 'int f(void) { return 0; }' >src/f.c
echo 'int f(void); int main(void) { return f(); }' >src/main.c
meson setup build src >log
meson test -C build >>log
DESTDIR=/tmp/d meson install -C build >>log
[ -n "$(find d -name program -perm -u+x)" ]
grep -q '#define A 1' build/config.h
equal 'a second build' "$(ninja -C build | tail -1)" 'ninja: no work to do.'
