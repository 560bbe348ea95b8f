#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh [build|test|run|rdma]: install the Debian packages aifs needs. This is the only list of them.
#   run    what the installed programs need
#   build  and what it takes to compile them
#   test   and what the test suites use (default)
#   rdma   and what tests/rdma boots its kernel with (run.sh --long rdma)
# Does nothing, quickly and without a network, when everything is there already.
set -eu

RUN="fuse3 libfuse3-3 libucx0 libibverbs1 ibverbs-providers librocksdb7.8 liburing2 libprotobuf-c1 libisal2 libssl3
     libmicrohttpd12 libjansson4 mount"
BUILD="gcc libc6-dev meson ninja-build pkg-config protobuf-c-compiler protobuf-compiler libfuse3-dev libucx-dev libibverbs-dev
     librocksdb-dev liburing-dev libprotobuf-c-dev libisal-dev libssl-dev libmicrohttpd-dev libjansson-dev"
TEST="check mold clang-format shellcheck curl jq attr acl rsync git sqlite3 tar fio iproute2 procps psmisc util-linux gawk groff-base openssl python3 diffutils binutils"
RDMA="qemu-system-x86 busybox-static dpkg"

case "${1:-test}" in
run) want=$RUN ;;
build) want="$RUN $BUILD" ;;
test) want="$RUN $BUILD $TEST" ;;
rdma) want="$RUN $BUILD $TEST $RDMA" ;;
*)
    echo "usage: deps.sh [run|build|test|rdma]" >&2
    exit 2
    ;;
esac

# Names that changed with a Debian release: "old new" pairs, whichever exists is taken.
successor() {
    case $1 in
    librocksdb7.8) echo "librocksdb9.10 librocksdb8.9" ;;
    libfuse3-3) echo "libfuse3-4" ;;
    libssl3) echo "libssl3t64" ;;
    libmicrohttpd12) echo "libmicrohttpd12t64" ;;
    esac
}

installed() {
    dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

missing=
for p in $want; do
    found=
    for q in $p $(successor "$p"); do
        if installed "$q"; then
            found=1
            break
        fi
    done
    [ -n "$found" ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "deps.sh: packages are missing and only root can install them:$missing" >&2
    exit 1
fi
if ! command -v apt-get >/dev/null; then
    echo "deps.sh: no apt-get here; install what corresponds to:$missing" >&2
    exit 1
fi
echo "installing packages:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >&2
resolved='' unknown=''
for p in $missing; do
    found=
    for q in $p $(successor "$p"); do
        if apt-cache show "$q" >/dev/null 2>&1; then
            found=$q
            break
        fi
    done
    if [ -n "$found" ]; then resolved="$resolved $found"; else unknown="$unknown $p"; fi
done
if [ -n "$unknown" ]; then
    echo "deps.sh: no package of this release is called:$unknown; going on without" >&2
    [ -n "$resolved" ] || exit 0
fi
# shellcheck disable=SC2086 # a list of words
apt-get install -y -q --no-install-recommends $resolved >&2
