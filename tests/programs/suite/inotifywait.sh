#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:inotifywait:inotify-tools
. "${0%/*}/lib"

mkdir watched
inotifywait -m -r -q --format '%e %w%f' watched >seen 2>error &
sees() { : >watched/probe && grep -q probe seen; }
becomes sees
echo x >watched/one
mv watched/one watched/two
mkdir watched/sub
chmod 600 watched/two
rm watched/two
ln -s x watched/link
rmdir watched/sub
saw() { grep -qxF -- "$1" seen; }
for event in 'CREATE watched/one' 'MODIFY watched/one' 'CLOSE_WRITE,CLOSE watched/one' \
	'MOVED_FROM watched/one' 'MOVED_TO watched/two' 'CREATE,ISDIR watched/sub' \
	'ATTRIB watched/two' 'DELETE watched/two' 'CREATE watched/link' 'DELETE,ISDIR watched/sub'; do
	becomes saw "$event"
done
