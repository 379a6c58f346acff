#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:m4:m4 command:perl:perl-base
# long
. "${0%/*}/lib"

# m4 diverts through anonymous temporary files once its buffers are full
awk 'BEGIN{for (i = 0; i < 40000; i++) print "line " i " of the diversion"}' >long
m4 -s - >out <<-'END'
	divert(1)
	include(long)
	divert(2)
	include(long)
	divert(0)
	undivert(2)undivert(1)
END
equal lines "$(grep -c 'of the diversion' out)" 80000
