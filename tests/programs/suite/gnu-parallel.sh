#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:parallel:parallel
# long
. "${0%/*}/lib"

mkdir .parallel
export PARALLEL_HOME=/tmp/.parallel
parallel --will-cite -j2 'echo {} >out{}; sleep 0.0{}' ::: 1 2 3 4 5 6
equal results "$(cat out? | xargs)" '1 2 3 4 5 6'
equal 'kept order' "$(parallel --will-cite -k -j3 echo ::: a b c d | xargs)" 'a b c d'
seq 20000 | parallel --will-cite --pipe --block 20k -j2 'wc -l' >counts
equal 'by blocks' "$(awk '{n += $1} END {print n}' counts)" 20000
parallel --will-cite --results /tmp/results -j2 'echo {}' ::: x y >/dev/null
equal 'results' "$(cat /tmp/results/1/x/stdout)" x
sem --will-cite --id nest -j1 'echo one >>sem' && sem --will-cite --id nest -j1 'echo two >>sem' && sem --will-cite --id nest --wait
equal semaphore "$(sort sem | xargs)" 'one two'
