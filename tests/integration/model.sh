#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The model test (tests/model): random operations on a view and on a native tmpfs of the same
# size make no difference. Short here; --long runs 500 seeds of 2,000 operations on each store.
. "$(dirname "$0")/../lib.sh"

TT_LIMIT=150
export TMPNEST_BUILD=${TT_BUILD:-}
SHARE=20 # seconds for each store
[ "${TT_ROLE:-}" = root ] || SHARE=8

model() { # STORE ARGUMENT...
	capture "$TT_TESTS/model/run.sh" --store "$@"
	equal 'status' "$status" 0
	out=$(tail -1 <<<"$out")
	differ 'seeds' "${out%% *}" 0
}

# The same ones every time: a run of every commit must not fail by chance for what that commit
# did not touch.
case_seeds_on_a_dir_store() { model dir --jobs 2 --seconds $SHARE 500 2000; }
case_seeds_on_a_memory_store() { model memory --jobs 2 --seconds $SHARE 500 2000; }

long seeds_on_an_image
only root seeds_on_an_image
case_seeds_on_an_image() { model image --jobs 2 --seconds $SHARE 500 2000; }

# Other seeds with each run: a failure names the one to replay.
fresh_seed() { echo $((1000 + $(date +%s) % 1000000)); }

long new_seeds_on_a_dir_store new_seeds_on_a_memory_store
case_new_seeds_on_a_dir_store() { model dir --first "$(fresh_seed)" --jobs 2 --seconds 60 1000 2000; }
case_new_seeds_on_a_memory_store() { model memory --first "$(fresh_seed)" --jobs 2 --seconds 60 1000 2000; }

long five_hundred_seeds_on_a_dir_store five_hundred_seeds_on_a_memory_store
limit five_hundred_seeds_on_a_dir_store 7200
limit five_hundred_seeds_on_a_memory_store 7200
case_five_hundred_seeds_on_a_dir_store() { model dir --jobs 4 500 2000; }
case_five_hundred_seeds_on_a_memory_store() { model memory --jobs 4 500 2000; }

# The comparison itself finds differences: the two sides have limits that differ by more.
case_a_difference_is_found() {
	cp "$TT_BUILD/tests/model/model" model
	runs 1 tmpnest run --quota 1M --bwrap-arg --size --bwrap-arg $((2 << 20)) --bwrap-arg --perms --bwrap-arg 1777 \
		--bwrap-arg --tmpfs --bwrap-arg /mnt -- ./model 5 300 /tmp /mnt
	contains 'what differs' "$out" 'free blocks'
}

main "$@"
