#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# meson install puts everything in place; mount(8) finds the helper, fstab's words are swallowed, installed programs need nothing of the build tree.
. "$(dirname "$0")/lib.sh"
cluster_up
echo hello >"$M/hello"
DESTDIR=$T/inst meson install -C "$AIFS_BUILD" --no-rebuild >"$T/install.log" 2>&1 || {
    tail "$T/install.log"
    fail "meson install"
}
root=$(dirname "$(dirname "$(find "$T/inst" -name aifs-admin -type f | head -1)")")
for f in bin/aifs-admin bin/aifs-bench sbin/aifs-mds sbin/aifs-oss include/aifs.h; do
    [ -e "$root/$f" ] || fail "$f is not installed"
done
find "$T/inst" -name 'libaifs.so*' | grep -q . || fail "libaifs is not installed"
find "$T/inst" -name 'aifs.pc' | grep -q . || fail "no pkg-config file"
helper=$(find "$T/inst" -path '*sbin/mount.aifs' | head -1)
[ -n "$helper" ] || fail "mount.aifs is not installed in an sbin"
for p in "$root"/bin/* "$root"/sbin/*; do
    [ -L "$p" ] || ! readelf -d "$p" 2>/dev/null | grep -E 'R(UN)?PATH' | grep -qF "$AIFS_BUILD" || fail "$p names the build tree"
done
src=127.0.0.1:$(cat "$C/mds/run/port"):/
mkdir "$T/m8"
# mount(8) calls /sbin/mount.<type>; in a mount name space of our own, so that the machine's /sbin stays as it is
unshare -m --propagation slave bash -c "
    mount --bind '$helper' '$helper' 2>/dev/null
    mkdir -p '$T/sbin' && cp -a /usr/sbin/. '$T/sbin/' 2>/dev/null
    cp -a '$helper' '$T/sbin/mount.aifs'
    ln -sfn mount.aifs '$T/sbin/mount.fuse.aifs'
    ln -sfn mount.aifs '$T/sbin/umount.fuse.aifs'
    for f in '$(dirname "$helper")'/aifs-mount '$root'/sbin/aifs-mount; do [ -e \"\$f\" ] && cp -aL \"\$f\" '$T/sbin/'; done
    mount --bind '$T/sbin' /usr/sbin || exit 1
    export LD_LIBRARY_PATH=\$(dirname \$(find '$T/inst' -name 'libaifs.so*' | head -1))
    mount -t aifs -o 'keyfile=$C/key/client.key,_netdev,nofail,noatime,x-systemd.mount-timeout=90,ro' '$src' '$T/m8' || exit 2
    [ \"\$(cat '$T/m8/hello')\" = hello ] || exit 3
    touch '$T/m8/new' 2>/dev/null && exit 4
    # remount: mount(8) hands over what the kernel shows of the mount, and the line of fstab
    mount -o remount,noexec '$T/m8' || exit 5
    findmnt -n -o OPTIONS '$T/m8' | grep -q 'ro,noexec' || exit 6
    mount -o remount,rw '$T/m8' 2>'$T/remount.err' && exit 7
    grep -q 'read-only and stays so' '$T/remount.err' && findmnt -n -o OPTIONS '$T/m8' | grep -q '^ro' || exit 7
    umount '$T/m8'
    echo '$src $T/m8 aifs keyfile=$C/key/client.key,_netdev,nofail,noatime 0 0' > '$T/fstab'
    [ -e /etc/fstab ] || exit 0
    mount --bind '$T/fstab' /etc/fstab || exit 8
    mount '$T/m8' && mount -a && touch '$T/m8/new' || exit 8
    mount -o remount,ro '$T/m8' || exit 9
    touch '$T/m8/newer' 2>/dev/null && exit 10
    mount -o remount,rw '$T/m8' && touch '$T/m8/newer' || exit 10
    mount -o remount,memory_limit=64M '$T/m8' 2>'$T/remount.err' && exit 11
    grep -q 'memory_limit=64M.* cannot be changed' '$T/remount.err' || exit 12
    mount -o remount,relatime '$T/m8' 2>'$T/remount.err' && exit 13
    grep -q 'atime.* cannot be changed' '$T/remount.err' || exit 14
    # a second place of the same mount, which keeps its daemon when one of them goes
    mkdir '$T/m8.too' && mount --bind '$T/m8' '$T/m8.too' || exit 20
    timeout 100 '$T/sbin/umount.fuse.aifs' '$T/m8' 2>'$T/bind.err' || exit 21
    grep -q waiting '$T/bind.err' && exit 22
    touch '$T/m8.too/newest' && umount '$T/m8.too' || exit 23
    # a mount whose daemon has died
    mount '$T/m8' || exit 15
    for p in \$(pgrep -x 'mount.aifs|aifs-mount'); do
        tr '\\0' ' ' <\"/proc/\$p/cmdline\" | grep -qF ' $T/m8 ' && daemon=\$p
    done
    kill -9 \$daemon && tail -s 0.02 --pid=\$daemon -f /dev/null || exit 16
    mount '$T/m8' 2>'$T/dead.err' && exit 17
    grep -q 'mount with -o recover' '$T/dead.err' || exit 18
    mount -o recover '$T/m8' && [ \"\$(cat '$T/m8/hello')\" = hello ] || exit 19
    umount '$T/m8'
" || fail "mount -t aifs (step $?)"
