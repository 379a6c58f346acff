#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:ssh-agent:openssh-client
. "${0%/*}/lib"

eval "$(ssh-agent -s)" >/dev/null
case $SSH_AUTH_SOCK in /tmp/*) ;; *) fail "the socket is $SSH_AUTH_SOCK" ;; esac
equal 'mode of its directory' "$(stat -c %a "${SSH_AUTH_SOCK%/*}")" 700
for kind in ed25519 ecdsa; do
	ssh-keygen -q -t $kind -N '' -C nest-$kind -f key-$kind
	ssh-add -q key-$kind
done
equal keys "$(ssh-add -l | wc -l)" 2
echo text >text
ssh-keygen -Y sign -q -n file -f key-ed25519.pub text
echo "bird $(cat key-ed25519.pub)" >allowed
ssh-keygen -Y verify -n file -f allowed -I bird -s text.sig <text >/dev/null
socket=$SSH_AUTH_SOCK
ssh-agent -k >/dev/null
removed() { [ ! -e "$socket" ]; }
becomes removed
