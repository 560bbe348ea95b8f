#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A process whose control group has half the memory that it maps and writes goes on: what does not fit is written back through the mount. --long: 2 GiB in 1 GiB.
NEED_MB=1500
[ -z "${AIFS_TEST_LONG:-}" ] || NEED_MB=8000
export NEED_MB
. "$(dirname "$0")/lib.sh"
mib=128
[ -z "${AIFS_TEST_LONG:-}" ] || mib=2048
group=
for top in "/sys/fs/cgroup/memory$(awk -F: '$2 == "memory" { print $3 }' /proc/self/cgroup)" "/sys/fs/cgroup$(awk -F: '$1 == 0 { print $3 }' /proc/self/cgroup)" /sys/fs/cgroup; do
    try=$top/${T##*/}
    mkdir "$try" 2>/dev/null || continue
    for limit in memory.limit_in_bytes memory.max; do
        [ -w "$try/$limit" ] && echo $((mib / 2))M >"$try/$limit" && group=$try && break 2
    done 2>/dev/null
    rmdir "$try"
done
[ -n "$group" ] || skip "no control group with a memory limit can be made"
cleanup() { rmdir "$group" 2>/dev/null; }
cluster_up --oss 2
second_mount
cat >"$T/mapper.py" <<'P'
import hashlib, mmap, os, sys
path, mib = sys.argv[1], int(sys.argv[2])
size = mib << 20
fd = os.open(path, os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, size)
page = lambda i: hashlib.md5(b"%d" % i).digest() * 256
with mmap.mmap(fd, size) as m:
    for i in range(size >> 12):
        m[i << 12:(i + 1) << 12] = page(i)
    for i in range(0, size >> 12, 7): # also those that are gone from memory
        assert m[i << 12:(i + 1) << 12] == page(i), f"page {i}"
    m.flush()
os.close(fd)
P
# shellcheck disable=SC2016
timeout 800 bash -c 'echo $$ >"$0/cgroup.procs" && exec python3 "$@"' "$group" "$T/mapper.py" "$M/mapped" "$mib" || fail "the mapping does not work (status $?)"
expect "the other mount reads the same" cmp "$M/mapped" "$M2/mapped"
P=$(python3 -c 'import hashlib, sys
for i in range(int(sys.argv[1]) << 8): sys.stdout.buffer.write(hashlib.md5(b"%d" % i).digest() * 256)' "$mib" | sha256sum)
[ "$(sha256sum <"$M2/mapped")" = "$P" ] || fail "what was stored is not what is there"
