#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:python3:python3
# long
# limit: 180
. "${0%/*}/lib"

/usr/bin/python3 -m venv env
mkdir -p pkg/nestlib
printf 'from setuptools import setup\nsetup(name="nestlib", version="1.2.3", packages=["nestlib"], entry_points={"console_scripts": ["nestrun=nestlib:run"]})\n' >pkg/setup.py
printf 'def run():\n    print("ran", 42)\n' >pkg/nestlib/__init__.py
(cd pkg && ../env/bin/python setup.py -q sdist --formats=gztar,zip 2>/dev/null)
env/bin/pip install -q --no-index --no-build-isolation ./pkg 2>log || { cat log; fail pip; }
equal output "$(env/bin/nestrun)" 'ran 42'
env/bin/pip list --no-index 2>/dev/null | grep -q '^nestlib *1.2.3'
env/bin/pip uninstall -q -y nestlib
[ ! -e env/bin/nestrun ]
env/bin/python -m compileall -q -j 2 env/lib/python3*/site-packages/pip/_internal
env/bin/python -m zipapp pkg -o app.pyz -m 'nestlib:run'
equal zipapp "$(env/bin/python app.pyz)" 'ran 42'
