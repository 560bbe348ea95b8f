#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tar in and out, and rsync -a --checksum in both directions, lose nothing.
. "$(dirname "$0")/lib.sh"
mkdir -p "$T/src" && cp -a /usr/include "$T/src"
ln -s /nowhere "$T/src/dangling" && ln "$T/src/include/stdio.h" "$T/src/hard"
mkfifo "$T/src/fifo" && chmod 2750 "$T/src/include" && touch -d '2001-02-03 04:05:06.789' "$T/src/hard"
tar -C "$T" --format=posix -cf "$T/src.tar" src
cluster_up
expect "tar in" tar -C "$M" -xf "$T/src.tar"
expect "tar out" tar -C "$M" --format=posix -cf "$T/back.tar" src
mkdir "$T/back" && tar -C "$T/back" -xf "$T/back.tar"
expect "what came out equals what went in" same_tree "$T/src" "$T/back/src"
[ "$(stat -c %y "$M/src/hard")" = "$(stat -c %y "$T/src/hard")" ] || fail "the time stamp changed"
[ "$(stat -c %h "$M/src/hard")" = 2 ] || fail "the hard link is gone"
expect "rsync in" rsync -aH --checksum "$T/src/" "$M/mirror/"
[ -z "$(rsync -aHn --checksum --itemize-changes --delete "$T/src/" "$M/mirror/")" ] || fail "rsync finds differences"
expect "rsync back" rsync -aH --checksum "$M/mirror/" "$T/mirror/"
expect "the mirror equals the source" same_tree "$T/src" "$T/mirror"
