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
refuse "a dump over a dump" 5 'is there already.*--force' "$ADMIN" mds dump "$T/dump"
refuse "a dump into no directory" 4 '^aifs-admin: cannot make .*/nowhere/dump: No such file' "$ADMIN" mds dump "$T/nowhere/dump"
# shellcheck disable=SC2016 # expands where it runs
refuse "a dump that finds no room" 1 '^aifs-admin: cannot write the dump: No space left' bash -c '"$0" mds dump - >/dev/full' "$ADMIN"
expect "a dump over a dump, by force" "$ADMIN" -q mds dump "$T/dump" --force
sums "$M/tree" >"$T/before" && sha256sum <"$M/big" >>"$T/before"
refuse "a damaged dump" 1 'damage|checksum|corrupt|truncated' "$ADMIN" mds load <(head -c 5000 "$T/dump") --dir "$T/bad"
[ ! -e "$T/bad" ] || fail "the load of a damaged dump leaves its folder"
mkdir "$T/bad" && refuse "a dump without its end, into a folder that is there" 1 'cut short' "$ADMIN" mds load <(head -c -1 "$T/dump") --dir "$T/bad"
expect "the folder is as empty as it was" rmdir "$T/bad"
cluster_down
mv "$C/mds/data" "$T/old-data"
expect "load" "$ADMIN" mds load "$T/dump" --dir "$C/mds/data"
refuse "load over data" 5 'exist|empty' "$ADMIN" mds load "$T/dump" --dir "$C/mds/data"
start_again
{ sums "$M/tree" && sha256sum <"$M/big"; } | cmp - "$T/before" || fail "the loaded file system differs"
[ "$(readlink "$M/soft")" = big ] && [ "$(stat -c %h "$M/hard")" = 2 ] || fail "links"
[ "$(getfattr --only-values -n user.note "$M/big")" = hello ] || fail "extended attributes"
expect "fsck after the load" "$ADMIN" fsck check

# What was made after the dump is lost with its names, and its chunks are nobody else's: not those of the next file.
head -c 3000000 /dev/urandom >"$M/after" && sync "$M/after"
ino=$(stat -c %i "$M/after")
cluster_down
mv "$C/mds/data" "$T/old-data-2"
expect "load again" "$ADMIN" mds load "$T/dump" --dir "$C/mds/data"
start_again
"$ADMIN" fsck check 2>&1 | grep -q "^damage: [0-9]* findings\{0,1\};" || fail "fsck does not count: $("$ADMIN" fsck check 2>&1)"
"$ADMIN" fsck check 2>&1 | grep -q "chunk-without-inode  $ino " || fail "fsck does not name the chunks of $ino"
for i in {1..20}; do
    truncate -s 3000000 "$M/new$i"
    [ "$(stat -c %i "$M/new$i")" -gt $((ino + 100000)) ] || fail "the number of a lost file is given again: $(stat -c %i "$M/new$i")"
done
printf x | dd of="$M/new1" bs=1 seek=1000000 conv=notrunc status=none || fail "a write into a new file"
[ "$(tr -d '\0' <"$M/new1")" = x ] || fail "a new file shows data of a lost one"
refuse "a folder instead of a dump" 1 "$T/old-data: is a directory" "$ADMIN" mds load "$T/old-data" --dir "$T/nothing"
[ ! -e "$T/nothing" ] || fail "a failed load leaves its folder"
