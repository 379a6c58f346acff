#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:nvim:neovim
# long
. "${0%/*}/lib"

export TERM=dumb
nvim --clean --headless --listen /tmp/n.sock text &
editor=$!
becomes test -S n.sock
remote() { nvim --clean --server /tmp/n.sock "$@"; }
remote --remote-send 'iwren<Esc>:w<CR>'
becomes grep -qx wren text
equal 'an expression' "$(remote --remote-expr 'line("$")' 2>&1)" 1
equal 'swap file' "$(remote --remote-expr 'filereadable(swapname("%"))' 2>&1)" 1
remote --remote-send ':qa!<CR>' || true # it may end before it answers
becomes gone $editor
[ ! -e n.sock ] || fail 'the socket is still there'
