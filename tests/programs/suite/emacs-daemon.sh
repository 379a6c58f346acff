#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:emacs:emacs-nox command:emacsclient:emacs-bin-common
# long
# limit: 120
. "${0%/*}/lib"

unset XDG_RUNTIME_DIR
export TERM=dumb
emacs -Q --daemon=nest >emacs.log 2>&1
socket=/tmp/emacs$(id -u)/nest
[ -S "$socket" ] || fail "no socket: $(ls -lR /tmp/emacs* 2>&1)"
client() { emacsclient -s "$socket" --eval "$1"; }
equal sum "$(client '(+ 20 22)')" 42
client '(with-temp-file "/tmp/made" (insert "text"))' >/dev/null
equal 'the file' "$(cat made)" text
# a changed buffer: lock link and auto-save file; saving removes both
client '(progn (find-file "/tmp/made") (insert "more ") (do-auto-save) t)' >/dev/null
[ -L .#made ] || fail 'no lock'
[ -f '#made#' ] || fail 'no auto-save file'
client '(progn (set-buffer "made") (save-buffer) t)' >/dev/null
equal saved "$(cat made)" 'more text'
[ ! -L .#made ] && [ ! -e '#made#' ] || fail "after saving: $(ls -A)"
client '(kill-emacs)' >/dev/null || true
removed() { [ ! -e "$socket" ]; }
becomes removed
