#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:dpkg:dpkg command:dpkg-deb:dpkg command:fakeroot:fakeroot
# long
# only: root
. "${0%/*}/lib"

# A whole package database below /tmp: install, upgrade, query, purge
build() { # VERSION
	mkdir -p pkg/DEBIAN pkg/opt/nest pkg/etc
	printf 'Package: nest\nVersion: %s\nArchitecture: all\nMaintainer: Bird <b@nest.example>\nDescription: a nest\n' "$1" >pkg/DEBIAN/control
	echo /etc/nest.conf >pkg/DEBIAN/conffiles
	echo conf >pkg/etc/nest.conf
	for i in $(seq 30); do echo "$1 $i" >pkg/opt/nest/f$i; done
	dpkg-deb --root-owner-group -b pkg nest_$1.deb >/dev/null
}
build 1
build 2
mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info
: >root/var/lib/dpkg/status
: >root/var/lib/dpkg/available
d() { fakeroot dpkg --root=/tmp/root --force-not-root --force-script-chrootless --log=/tmp/dpkg.log "$@"; }
d -i nest_1.deb >/dev/null 2>log || { cat log; fail 'install'; }
d -i nest_2.deb >/dev/null 2>log || { cat log; fail 'upgrade'; }
equal 'a file' "$(cat root/opt/nest/f7)" '2 7'
equal 'version' "$(dpkg-query --admindir=root/var/lib/dpkg -W -f '${Version} ${db:Status-Abbrev}' nest | xargs)" '2 ii'
d --verify nest
d --purge nest >/dev/null 2>log || { cat log; fail 'purge'; }
[ ! -e root/opt/nest ] && [ ! -e root/etc/nest.conf ]
