#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A second uid can not reach a file through a 0700 directory whose path root has just used; modes and owners are enforced.
. "$(dirname "$0")/lib.sh"
cluster_up
chmod 755 "$T" "$M"
as() { setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }
mkdir -m 700 "$M/private" && echo secret >"$M/private/file" && chmod 644 "$M/private/file"
cat "$M/private/file" >/dev/null && stat "$M/private/file" >/dev/null
as 1234 cat "$M/private/file" 2>/dev/null && fail "another user reads through a 0700 directory"
as 1234 stat "$M/private/file" >/dev/null 2>&1 && fail "another user stats through a 0700 directory"
mkdir -m 1777 "$M/tmp"
as 1234 touch "$M/tmp/a" || fail "a user cannot create in a 1777 directory"
as 1235 rm -f "$M/tmp/a" 2>/dev/null && fail "the sticky bit does not protect"
[ "$(stat -c %u "$M/tmp/a")" = 1234 ] || fail "the owner is wrong"
as 1235 chmod 777 "$M/tmp/a" 2>/dev/null && fail "somebody else changes the mode"
echo x >"$M/ro" && chmod 444 "$M/ro"
as 1234 bash -c "echo y >>'$M/ro'" 2>/dev/null && fail "a read-only file was written"
mkdir -m 2775 "$M/shared" && chgrp 777 "$M/shared" && touch "$M/shared/f" && mkdir "$M/shared/d"
[ "$(stat -c %g "$M/shared/f")" = 777 ] || fail "setgid directory: the file's group"
[ "$(stat -c %a "$M/shared/d")" = 2755 ] || fail "setgid directory: not inherited ($(stat -c %a "$M/shared/d"))"
setpriv --reuid 1236 --regid 1236 --groups 777 touch "$M/shared/g" || fail "a supplementary group does not count"
