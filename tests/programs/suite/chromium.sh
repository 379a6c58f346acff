#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:chromium:chromium
# long
# limit: 180
. "${0%/*}/lib"

echo '<body style="background:#0a0"><h1>nest</h1><script>localStorage.a = 1; document.title = "t" + localStorage.a</script>' >page.html
page() {
	timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
		--user-data-dir=/tmp/profile "$@" file:///tmp/page.html 2>log
}
page --screenshot=/tmp/shot.png --window-size=200,100 >/dev/null || { tail -20 log; fail chromium; }
[ "$(head -c 8 shot.png | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ] || fail 'no picture'
[ -d profile/Default ] || fail 'no profile'
page --dump-dom >dom # the profile once more: its locks were given back
grep -q '<title>t1</title>' dom || { tail -20 log; fail "the page: $(cat dom)"; }
[ ! -L profile/SingletonLock ] || fail 'the lock is still there'
