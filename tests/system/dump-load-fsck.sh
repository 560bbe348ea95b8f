#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An online dump of the metadata, loaded into an empty directory, is the same file system; fsck agrees, and finds what was broken on purpose.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
cp -a /usr/include/linux "$M/tree" && head -c 5000000 /dev/urandom >"$M/big" && ln "$M/big" "$M/hard" && ln -s big "$M/soft"
setfattr -n user.note -v hello "$M/big"
sync -f "$M"
expect "fsck of a healthy system" "$ADMIN" fsck check
(while echo more >>"$M/noise"; do :; done) 2>/dev/null &
noise=$!
expect "an online dump" "$ADMIN" mds dump "$T/dump"
kill "$noise" && wait "$noise" 2>/dev/null
sums "$M/tree" >"$T/before" && sha256sum <"$M/big" >>"$T/before"
refuse "a damaged dump" 1 'damage|checksum|corrupt|truncated' "$ADMIN" mds load <(head -c 5000 "$T/dump") --dir "$T/bad"
cluster_down
mv "$C/mds/data" "$T/old-data"
expect "load" "$ADMIN" mds load "$T/dump" --dir "$C/mds/data"
refuse "load over data" 5 'exist|empty' "$ADMIN" mds load "$T/dump" --dir "$C/mds/data"
start_again
{ sums "$M/tree" && sha256sum <"$M/big"; } | cmp - "$T/before" || fail "the loaded file system differs"
[ "$(readlink "$M/soft")" = big ] && [ "$(stat -c %h "$M/hard")" = 2 ] || fail "links"
[ "$(getfattr --only-values -n user.note "$M/big")" = hello ] || fail "extended attributes"
expect "fsck after the load" "$ADMIN" fsck check
