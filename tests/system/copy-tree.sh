#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real tree of at least 5,000 files survives copying, remounting, and a restart of every daemon.
. "$(dirname "$0")/lib.sh"
mkdir -p "$T/tree"
for d in /usr/include /usr/share/doc /usr/lib/python3 /usr/share/perl; do
    [ -d "$d" ] && cp -a --parents "$d" "$T/tree"
    [ "$(find "$T/tree" -type f | head -5001 | wc -l)" -gt 5000 ] && break
done
files=$(find "$T/tree" -type f | wc -l)
[ "$files" -ge 5000 ] || skip "only $files files under /usr/include and /usr/share/doc"
cluster_up
expect "copying $files files" cp -a "$T/tree" "$M/tree"
expect "the copy equals the tree" same_tree "$T/tree" "$M/tree"
remount
expect "the tree after a remount" same_tree "$T/tree" "$M/tree"
restart_all
expect "the tree after a restart of every daemon" same_tree "$T/tree" "$M/tree"
expect "removing the tree" rm -rf "$M/tree"
[ -z "$(ls -A "$M")" ] || fail "something is left behind: $(ls -A "$M")"
