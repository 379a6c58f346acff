#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:npm:npm
# long
# limit: 120
. "${0%/*}/lib"

mkdir -p lib/bin app
cat >lib/package.json <<-'END'
	{"name": "nest-lib", "version": "1.2.3", "main": "i.js", "bin": {"nest-lib": "bin/run.js"},
	 "scripts": {"postinstall": "node make.js"}}
END
echo 'module.exports = 42' >lib/i.js
echo 'require("fs").writeFileSync("made", "")' >lib/make.js
printf '#!/usr/bin/env node\nconsole.log("run", require(".."))\n' >lib/bin/run.js
(cd lib && npm pack --silent >/dev/null)
cd app
echo '{"name": "app", "version": "1.0.0"}' >package.json
npm install --offline --no-audit --no-fund --loglevel=error ../lib/nest-lib-1.2.3.tgz >/dev/null
equal run "$(node_modules/.bin/nest-lib)" 'run 42'
rm -r node_modules
npm ci --offline --no-audit --no-fund --loglevel=error >/dev/null
[ -e node_modules/nest-lib/made ]
npm cache verify >/dev/null
