#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# relatime: a read moves atime by the rule of mount(8), on all mounts, and ctime never; without it nothing does. A restart of the metadata server keeps it, a
# read-only mount sets none. The rules are the sentences of tests/support/access_times.py.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 1
for n in with with2 ro; do
    mkdir "$T/$n"
    options=relatime
    [ "$n" != ro ] || options=ro,relatime
    expect "mount -o $options" "$ADMIN" -q demo mount --dir "$C" -o "$options" "$T/$n"
done
expect "the rules" python3 "$AIFS_SOURCE/tests/support/access_times.py" "$T/with" "$T/with2" "$M"

echo words >"$T/with/f"
before=$(stat -c %x "$T/with/f")
expect "reading through a read-only mount" grep -q words "$T/ro/f"
[ "$(stat -c %x "$T/ro/f")" = "$before" ] || fail "a read-only mount has set a time"

expect "reading" grep -q words "$T/with/f"
after=$(stat -c %x "$T/with/f")
[ "$after" != "$before" ] || fail "reading has not set the time"
asked() { python3 -c 'import os, sys; print(os.fstat(os.open(sys.argv[1], os.O_RDONLY | os.O_NOATIME)).st_atime_ns)' "$1"; }
known=$(asked "$T/with/f")
seen() { [ "$(asked "$M/f")" = "$known" ]; }
wait_for 60 seen || fail "the other mount does not see it"
kill_daemon mds
start_again
seen || fail "it went with the metadata server: $(asked "$M/f") instead of $known"

# What is not told yet goes with the unmount.
echo words >"$T/with2/g"
exec 5<"$T/with2/g"
read -r word <&5
exec 5<&-
[ "$word" = words ] || fail "read \"$word\""
after=$(stat -c %x "$T/with2/g")
expect "umount" "$ADMIN" -q demo umount --dir "$C" "$T/with2"
[ "$(stat -c %x "$M/g")" = "$after" ] || fail "lost with the unmount"

refuse "relatime by remount" 32 "atime" "$MOUNT" "$(findmnt -no SOURCE "$M")" "$M" -o remount,relatime
