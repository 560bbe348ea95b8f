#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Layouts are inherited, set and created; pools keep their files on their targets; what would lose data is refused.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 3
[ "$("$ADMIN" stripe get --size "$M")" = 1048576 ] || fail "the default chunk"
refuse "two values at once" 2 'print one value' "$ADMIN" stripe get --count --size "$M"
mkdir "$M/one" && expect "stripe set" "$ADMIN" stripe set -c 1 -S 256Ki "$M/one"
mkdir "$M/one/sub" && head -c 3000000 /dev/urandom >"$M/one/sub/f"; sync "$M/one/sub/f"
[ "$("$ADMIN" stripe get -c "$M/one/sub/f")" = 1 ] || fail "the layout is not inherited"
[ "$("$ADMIN" --json file where "$M/one/sub/f" | jq '.items | map(select(.chunks > 0)) | length')" = 1 ] || fail "one stripe should be on one target"
head -c 3000000 /dev/urandom >"$M/three"; sync "$M/three"
[ "$("$ADMIN" --json file where "$M/three" | jq '.items | map(select(.chunks > 0)) | length')" = 3 ] || fail "three chunks should be on three targets"
# more stripes than targets are said to be fewer, and are more when there are more
mkdir "$M/wide" && [ "$("$ADMIN" stripe set -c 5 "$M/wide" 2>&1)" = "aifs-admin: warning: $M/wide: pool default has 3 targets: files get 3 stripes, not 5" ] || fail "stripe set beyond the targets"
"$ADMIN" --json stripe set -c 5 "$M/wide" | jq -e '.warnings | length == 1' >/dev/null || fail "stripe set --json beyond the targets"
[ -z "$("$ADMIN" stripe set -c 3 "$M/wide" 2>&1)$("$ADMIN" stripe set -c 0 "$M/wide" 2>&1)" ] || fail "stripe set within the targets warns"
expect "stripe create" "$ADMIN" stripe create -c 2 -S 64Ki "$M/two"
head -c 1000000 /dev/urandom >"$T/r" && cat "$T/r" >"$M/two" && cmp "$T/r" "$M/two" || fail "a file with its own layout"
[ "$("$ADMIN" stripe get -S "$M/two")" = 65536 ] || fail "stripe create -S"
refuse "a chunk that is no power of two" 2 'power' "$ADMIN" stripe set -S 100000 "$M/one"
refuse "an unknown pool" 4 'pool' "$ADMIN" stripe set -p nope "$M/one"
refuse "a path outside" 2 'not on an aifs mount' "$ADMIN" stripe get /tmp
expect "pool create" "$ADMIN" pool create fast
refuse "a pool twice" 5 '^aifs-admin: there is a pool fast already' "$ADMIN" pool create fast
# a directory may be told of a pool that is to get its targets: that is said, and nothing is made there before
mkdir "$M/fast" && refuse "a pool without targets" 0 "warning: $M/fast: pool fast has no targets yet: nothing can be made there .ENOSPC" "$ADMIN" stripe set -p fast "$M/fast"
"$ADMIN" --json stripe set -p fast "$M/fast" | jq -e '.warnings | length == 1' >/dev/null || fail "stripe set --json of a pool without targets"
[ "$("$ADMIN" stripe get -p "$M/fast")" = fast ] && [ "$("$ADMIN" stripe get -S "$M/fast")" = 1048576 ] || fail "stripe get of such a directory: $("$ADMIN" stripe get "$M/fast" 2>&1)"
refuse "a file there" 1 'No space left on device' touch "$M/fast/f"
refuse "a file in such a pool" 5 'pool fast has no target' "$ADMIN" stripe create -p fast "$M/none"
refuse "taking a target with data out of its pool" 5 'refused|data' "$ADMIN" pool add fast 1
mkdir -p "$T/extra"
refuse "target add where nothing is" 4 'is no directory' "$ADMIN" target add --node oss1 --path "$T/extra/t" --pool fast
[ ! -e "$T/extra/t" ] || fail "a refused target add has made a directory"
mkdir "$T/extra/t"
"$ADMIN" target add --node oss1 --path "$T/extra/t" --pool fast >"$T/said" || fail "target add: $(cat "$T/said")"
grep -q 'is target [0-9]* now' "$T/said" || fail "target add says: $(cat "$T/said")"
online() { "$ADMIN" --json target list --pool fast | jq -e '.items[0].state == "online"'; }
wait_for 20 online || fail "the new target does not come online"
[ -z "$("$ADMIN" stripe set -p fast "$M/fast" 2>&1)" ] || fail "stripe set of a pool with a target warns"
head -c 3000000 /dev/urandom >"$M/fast/f"; sync "$M/fast/f"
[ "$("$ADMIN" stripe get -p "$M/fast/f")" = fast ] || fail "the file's pool"
t=$("$ADMIN" --json target list --pool fast | jq '.items[0].id')
[ "$("$ADMIN" --json file where "$M/fast/f" | jq -c '[.items[] | select(.chunks > 0) | .target]')" = "[$t]" ] || fail "the file is not on the pool's target"
refuse "removing a target with data from its pool" 5 'refused|data' "$ADMIN" pool remove fast "$t"
expect "inherit again" "$ADMIN" stripe set --inherit "$M/one"
touch "$M/one/g" && [ "$("$ADMIN" stripe get -S "$M/one/g")" = 1048576 ] || fail "stripe set --inherit"
