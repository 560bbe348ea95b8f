#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A cluster over RDMA verbs, by the kernel's software implementation (soft-RoCE) in an emulated machine: data, lost packets, a killed server, a cut wire.
# Minutes of one core, so only with --long. The kernel is fetched from Debian the first time and kept in $AIFS_RDMA_CACHE, else ~/.cache/aifs-rdma.
set -u
: "${AIFS_BUILD:?the build directory}"
skip() {
    echo "skipped: $*"
    exit 77
}
[ -n "${AIFS_TEST_LONG:-}" ] || skip "boots a kernel with soft-RoCE in an emulator, which takes minutes: run.sh --long rdma"
here=$(cd "$(dirname "$0")" && pwd)
for place in "$AIFS_BUILD" "$here"; do
    case $place in /dev/* | /run/* | /proc/* | /sys/*) skip "$place is out of the guest's sight, which has a ${place%"${place#/*/}"} of its own" ;; esac
done
# shellcheck source=tests/rdma/vm.sh
. "$here/vm.sh"
lacks=$(vm_missing)
[ -z "$lacks" ] || skip "$lacks"
T=$(mktemp -d "${TMPDIR:-/tmp}/aifs-rdma.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 130' INT TERM HUP
VM_OUT=$T/out
mkdir "$VM_OUT"
cache=${AIFS_RDMA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/aifs-rdma}
vm_kernel "$cache" || skip "$vm_reason"
vm_run "$cache" "${AIFS_RDMA_SECONDS:-3000}" env AIFS_BUILD="$AIFS_BUILD" bash "$here/cluster.sh"
status=$?
[ "$status" != 124 ] || echo "the guest did not end in time"
if [ "$status" != 0 ]; then
    for log in "$VM_OUT"/{mds,oss1,oss2,mount}.log; do
        [ ! -s "$log" ] || { echo "--- ${log##*/}" && tail -n 25 "$log"; }
    done
    grep -E 'BUG:|WARNING:|Oops|rxe' "$VM_OUT/dmesg.log" 2>/dev/null | tail -n 5
    exit 1
fi
