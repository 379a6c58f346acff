#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:xz:xz-utils command:zstd:zstd command:bzip2:bzip2 command:gzip:gzip
# long
. "${0%/*}/lib"

{ seq 30000; noise 50000; } >data
touch -d '2001-02-03 04:05:06' data
chmod 640 data
for tool in gzip 'xz -0' 'zstd -q --rm' bzip2; do
	cp -p data file
	$tool file
	[ ! -e file ]
	case $tool in gzip) ending=gz ;; xz*) ending=xz ;; zstd*) ending=zst ;; *) ending=bz2 ;; esac
	equal "mode and time by $tool" "$(stat -c '%a %Y' file.$ending)" "$(stat -c '%a %Y' data)"
	${tool%% *} -q -d file.$ending
	cmp file data
	rm -f file file.$ending
done
