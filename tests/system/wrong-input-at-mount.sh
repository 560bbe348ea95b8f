#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad option, bad key, a mount point in use, no server, a data server missing: each says so clearly, with mount(8)'s exit codes, loses nothing and leaves no session.
. "$(dirname "$0")/lib.sh"
cluster_up
echo kept >"$M/file"
src=127.0.0.1:$(cat "$C/mds/run/port"):/
key=keyfile=$C/key/client.key
mkdir "$T/x"
refuse "an unknown option" 1 'keyfil' "$MOUNT" "$src" "$T/x" -o "keyfil=$C/key/client.key"
refuse "a value where none belongs" 1 'mount option "hard" takes no value' "$MOUNT" "$src" "$T/x" -o "$key,hard=3"
refuse "a missing key file" 32 'nokey' "$MOUNT" "$src" "$T/x" -o "keyfile=$T/nokey"
[ -e /etc/aifs/client.key ] || refuse "no key at all" 32 'no key: there is no /etc/aifs/client.key; say where it is: -o keyfile=FILE' "$MOUNT" "$src" "$T/x"
cp "$C/key/client.key" "$T/open.key" && chmod 644 "$T/open.key"
refuse "a key file others can read" 32 'open.key' "$MOUNT" "$src" "$T/x" -o "keyfile=$T/open.key"
sed 's/[0-9a-f]\{8\}$/00000000/' "$C/key/client.key" >"$T/wrong.key" && chmod 600 "$T/wrong.key"
refuse "a wrong key" 32 'key|authenti' "$MOUNT" "$src" "$T/x" -o "keyfile=$T/wrong.key,mount_timeout=5"
"$ADMIN" -q key create "$T/other.server" && "$ADMIN" -q key derive "$T/other.server" client "$T/other.key"
refuse "the key of another cluster" 32 'cluster' "$MOUNT" "$src" "$T/x" -o "keyfile=$T/other.key,mount_timeout=5"
refuse "a device that is not there" 32 'net.devices: there is no RDMA device nonesuch here' "$MOUNT" "$src" "$T/x" -o "$key,net.devices=nonesuch"
[ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] || refuse "RDMA where there is none" 32 'net=rdma: there is no RDMA device here' "$MOUNT" "$src" "$T/x" -o "$key,net=rdma"
if unshare --fork --pid true 2>/dev/null; then
    refuse "shared memory over the border of a name space" 32 'net=shm.*cannot be used: same host, different name spaces' unshare --fork --pid "$MOUNT" "$src" "$T/x" -o "$key,net=shm"
fi
refuse "a list of devices that is none" 32 'net.devices: nothing behind the last' "$MOUNT" "$src" "$T/x" -o "$key,net.devices=a+"
refuse "a mount point in use" 32 'mount' "$MOUNT" "$src" "$M" -o "$key"
refuse "no such mount point" 32 'nowhere' "$MOUNT" "$src" "$T/nowhere" -o "$key"
refuse "nobody at that port" 32 'refused|unreachable|connect|time|answer' "$MOUNT" "127.0.0.1:1:/" "$T/x" -o "$key,mount_timeout=2"
refuse "nobody at a port that was not given" 32 '127.1.2.3:7600: Connection refused' "$MOUNT" "127.1.2.3:/" "$T/x" -o "$key,mount_timeout=1"
refuse "nobody at that port, for long" 32 'mount.aifs: waiting for 127.0.0.1:1, for up to 6 s .mount_timeout.' "$MOUNT" "127.0.0.1:1:/" "$T/x" -o "$key,mount_timeout=6"
refuse "a storage server as source" 32 'is an object storage server' "$MOUNT" "127.0.0.1:$(cat "$C/oss1/run/port"):/" "$T/x" -o "$key,mount_timeout=5"
refuse "no such sub-directory" 32 'no such|ENOENT|not' "$MOUNT" "${src}nothing" "$T/x" -o "$key,mount_timeout=5"
refuse "an option that the kernel refuses" 32 "cannot mount $T/x" "$MOUNT" "$src" "$T/x" -o "$key,fscontext=none"
alone() { [ "$("$ADMIN" --json client list | jq '.items | length')" = 1 ]; }
wait_for 30 alone || fail "mounts that failed have sessions: $("$ADMIN" client list)"
grep -E ' (1[0-9]+|[2-9][0-9]*) \(.*evicting it' "$C/mds/log" && fail "a mount that failed has left its session to be evicted"
refuse "garbage as source" 1 'source|usage|host' "$MOUNT" "::::" "$T/x" -o "$key"
cd "$C/key" || fail "no $C/key"
expect "paths from the current directory" "$MOUNT" "$src" "$T/x" -o "keyfile=./client.key,log=../relative.log"
cd "$T" || fail "no $T"
[ -e "$C/relative.log" ] || fail "the log is not where the path said"
expect "it is unmounted" umount "$T/x"
expect "a server key works" "$MOUNT" "$src" "$T/x" -o "keyfile=$C/key/server.key,log=$T/server-key.log"
grep -q 'server.key is a server key' "$T/server-key.log" || fail "mounting with a server key is not warned of: $(cat "$T/server-key.log")"
expect "it is unmounted" umount "$T/x"
refuse "unmounting it again" 32 "umount.aifs: $T/x: not mounted$" "$MOUNT" --umount "$T/x"
refuse "unmounting what is not there" 32 "umount.aifs: $T/nowhere: No such file" "$MOUNT" --umount "$T/nowhere"
mkdir "$T/full" && echo kept >"$T/full/own"
for word in multi nonempty rw; do
    expect "a mount point with files in it" "$MOUNT" "$src" "$T/full" -o "$key,$word" 2>"$T/err"
    [ ! -e "$T/full/own" ] || fail "it is not mounted"
    expect "it is unmounted" umount "$T/full"
    [ "$word" = rw ] || ! grep 'not empty' "$T/err" || fail "a warning with -o $word"
done
grep -q "$T/full is not empty: what is in it is hidden" "$T/err" || fail "no word about files that are hidden: $(cat "$T/err")"
[ "$(cat "$T/full/own")" = kept ] || fail "what was hidden is gone"
kill_daemon oss3
expect "mounting while a data server is missing" "$MOUNT" "$src" "$T/x" -o "$key"
[ "$(cat "$T/x/file")" = kept ] || fail "a small file is not readable while a data server is missing"
umount "$T/x"
start_again
[ "$(cat "$M/file")" = kept ] || fail "the file is gone"
grep -q " $T/x " /proc/self/mountinfo && fail "something is still mounted on $T/x"
true
