#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:dpkg-deb:dpkg
# long
. "${0%/*}/lib"

mkdir -p pkg/DEBIAN pkg/usr/share/nest
printf 'Package: nest\nVersion: 1\nArchitecture: all\nMaintainer: Bird <bird@nest.example>\nDescription: a nest\n' >pkg/DEBIAN/control
make_tree pkg/usr/share/nest
rm pkg/usr/share/nest/with\ space/new*
dpkg-deb --root-owner-group -Zxz -b pkg out.deb >/dev/null
equal 'package' "$(dpkg-deb -f out.deb Package Version | xargs)" 'Package: nest Version: 1'
dpkg-deb -R out.deb again
same_tree pkg/usr again/usr
dpkg-deb -c out.deb | grep -q './usr/share/nest/run.sh'
ar t out.deb | grep -qx debian-binary
