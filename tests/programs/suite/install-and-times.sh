#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:install:coreutils command:touch:coreutils
. "${0%/*}/lib"

echo x >f
install -D -m 2755 f a/b/c/prog
equal mode "$(stat -c %a a/b/c/prog)" 2755
touch -d '1969-12-31 23:59:58.5 UTC' f
equal 'before 1970' "$(stat -c %.9Y f)" -1.500000000
touch -d '2100-01-01 00:00:00.123456789 UTC' f
equal 'nanoseconds' "$(stat -c %.9Y f)" 4102444800.123456789
touch -r f g
equal reference "$(stat -c %.9Y g)" 4102444800.123456789
cp -p f h
equal preserved "$(stat -c '%.9Y %a' h)" "$(stat -c '%.9Y %a' f)"
[ ! h -nt f ] && [ ! h -ot f ]
equal birth "$(($(stat -c %W g) > 1600000000))" 1
mkdir -m 2770 shared
mkdir shared/sub
equal 'set-gid' "$(stat -c %a shared/sub | cut -c1)" 2
umask 077
: >private
equal umask "$(stat -c %a private)" 600
chmod u+s,g-r,o=x private
equal symbolic "$(stat -c %a private)" 4601
ln f hard && ln -s f soft
equal links "$(stat -c %h f) $(readlink -f soft)" '2 /tmp/f'
mv -T --no-clobber g f
cp --backup=numbered h f
[ -e 'f.~1~' ]
cp -al a linked
equal 'linked tree' "$(stat -c %i a/b/c/prog)" "$(stat -c %i linked/b/c/prog)"
