#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:gpg:gpg command:gpg-agent:gpg-agent command:gpgconf:gpgconf
# long
. "${0%/*}/lib"

export GNUPGHOME=/tmp/gpg
mkdir -m 700 gpg
gpg --batch --quiet --passphrase '' --quick-generate-key bird@nest.example ed25519 default never 2>/dev/null
[ -S gpg/S.gpg-agent ] || [ -S "$(gpgconf --list-dirs agent-socket)" ] || fail 'no socket of the agent'
echo text >text
gpg --batch --quiet --detach-sign --armor text
gpg --batch --quiet --verify text.asc text 2>/dev/null
gpg --batch --quiet --symmetric --passphrase word --pinentry-mode loopback -o text.gpg text
equal decrypted "$(gpg --batch --quiet --decrypt --passphrase word --pinentry-mode loopback text.gpg 2>/dev/null)" text
gpg --export-secret-keys --batch --quiet bird@nest.example | wc -c | grep -qv '^0$'
gpgconf --kill all
