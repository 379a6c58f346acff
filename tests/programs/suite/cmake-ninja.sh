#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:cmake:cmake command:ninja:ninja-build command:gcc:gcc
# long
# limit: 120
. "${0%/*}/lib"

mkdir src
cat >src/CMakeLists.txt <<-'END'
	cmake_minimum_required(VERSION 3.10)
	project(nest C)
	add_library(f SHARED f.c)
	add_executable(program main.c)
	target_link_libraries(program f)
	enable_testing()
	add_test(NAME runs COMMAND program)
	install(TARGETS program f)
END
echo 'int f(void) { return 0; }' >src/f.c
echo 'int f(void); int main(void) { return f(); }' >src/main.c
cmake -S src -B build -G Ninja >cmake.log
cmake --build build -j1 >build.log
(cd build && ctest --output-on-failure >ctest.log)
cmake --install build --prefix /tmp/installed >/dev/null
[ -x installed/bin/program ]
equal 'a second build' "$(cmake --build build)" 'ninja: no work to do.'
