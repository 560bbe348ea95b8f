#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ls -l asks the mount one question about each file, for its access list, and when the directory is listed again none: the kernel is not told again what it knows. What another mount changes
# meanwhile is seen all the same, and an access list or a label that a file has got.
. "$(dirname "$0")/lib.sh"
[ -n "$(command -v setfacl)" ] || skip "no setfacl"
FILES=300
cluster_up
second_mount
mkdir "$M/d"
(cd "$M/d" && seq -f f%03.0f "$FILES" | xargs touch)
remount
asked() { # so often for extended attributes until now
    curl -sf "http://127.0.0.1:$(sed -n 's/.*metrics at port //p' "$C/mount3.log" | tail -1)/metrics" |
        awk '$1 ~ /^aifs_fuse_seconds_count/ && /"getxattr"/ { n = $2 } END { print n + 0 }'
}
# shellcheck disable=SC2012 # this is about ls
listing() { LC_ALL=C ls -l --time-style=full-iso "$1/d" | awk '{ print $1, $5, $9 }' | sort -k3; }
listing "$M" >"$T/first"
[ "$(grep -c ' f' "$T/first")" = "$FILES" ] || fail "the listing has $(grep -c ' f' "$T/first") files"
before=$(asked)
[ "$before" -ge "$FILES" ] && [ "$before" -le $((FILES + 20)) ] || fail "$before questions for $FILES files"
most=20 # older kernels believe no name for longer than a second
[ "${AIFS_ENTRY_TIMEOUT:-1}" != 0 ] && [ "$(uname -r | awk -F'[.-]' '{ print $1 * 1000 + $2 }')" -ge 6016 ] || most=$((FILES + 20))
listing "$M" >"$T/second"
cmp "$T/first" "$T/second" || fail "the second listing differs"
n=$(($(asked) - before))
[ "$n" -le "$most" ] || fail "$n questions when listed again"

chmod 600 "$M2/d/f001" && echo longer >"$M2/d/f002" && mv "$M2/d/f003" "$M2/d/g" && setfacl -m u:7:rw "$M2/d/f004" && setfattr -n security.selinux -v a:b:c "$M2/d/f005"
rm "$M2/d/f006" && mkdir "$M2/d/f006"
listing "$M" >"$T/third"
listing "$M2" >"$T/other"
cmp "$T/third" "$T/other" || { diff "$T/third" "$T/other" && :; fail "the mounts list different things"; }
for want in '^-rw------- 0 f001' '^-rw-r--r-- 7 f002' '^-rw-r--r-- 0 g$' '^-rw-rw-r--+ 0 f004' '^drwxr-xr-x [0-9]* f006'; do
    grep -q "$want" "$T/third" || fail "not listed: $want"
done
! grep -q ' f003$' "$T/third" || fail "a name that is gone is listed"
[ "$(getfattr -h --only-values -n security.selinux "$M/d/f005")" = a:b:c ] || fail "the label of f005"
getfattr -n security.selinux "$M/d/f007" 2>&1 | grep -q "not supported" || fail "a file without a label"
