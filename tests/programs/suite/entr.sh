#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:entr:entr
. "${0%/*}/lib"

echo one >file
echo file | entr -n -p sh -c 'cat file >>out' >/dev/null 2>&1 &
watches() { echo two >>file && grep -q two out; }
becomes watches
# replaced by rename, as editors save
replaced() {
	echo three >new
	mv new file
	grep -q three out
}
becomes replaced
