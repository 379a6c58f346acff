#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:fio:fio
# long
# limit: 120
. "${0%/*}/lib"

for engine in psync sync mmap libaio; do
	fio --name=$engine --directory=/tmp --ioengine=$engine --rw=randrw --bs=512-16k --size=4m --verify=crc32c \
		--do_verify=1 --verify_fatal=1 --numjobs=2 --thread --fallocate=none --random_generator=lfsr \
		--norandommap=0 --output=$engine.log || { cat $engine.log; fail $engine; }
	grep -q 'err= 0' $engine.log
	rm $engine.[0-9]*
done
fio --name=direct --directory=/tmp --ioengine=psync --direct=1 --rw=write --bs=4k --size=4m --verify=md5 --output=direct.log ||
	{ cat direct.log; fail direct; }
