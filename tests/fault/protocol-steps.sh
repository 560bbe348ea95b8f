#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon dies at each step of the truncate, growth, destroy and eviction protocols (docs/protocols.md 5, 4, 8, 7): the operation is done once it is back, or was never begun; nothing is ever half
# done, no byte of the past shows up, the queues drain and fsck finds nothing. Arguments choose protocols (all).
NEED_MB=1000
. "$(dirname "$0")/../system/lib.sh"
export AIFS_MDS_LEASE=2s # dead clients are part of this
cluster_up --oss 2
port=$(jq .mds_port "$C/demo.json")
mkdir "$M/d"

a=$T/a b=$T/b   # 3 MiB over both servers, and what is left of it
head -c 3145728 < <(yes "the first contents, all of them") >"$a"
head -c 1500000 "$a" >"$b"
small=$T/small grown=$T/grown
head -c 9000 < <(yes "small") >"$small"
head -c 1400000 < <(yes "grown to much more than fits there") >"$grown"

arm() { # DAEMON FAULT: DAEMON again, dying at FAULT
    kill_daemon "$1"
    AIFS_FAULT=$2=crash "$ADMIN" -q demo up --dir "$C" || fail "$1 does not come up with $2"
    victim=$(daemon_pid "$1")
    fault=$2
}
crashed() { # waits for the death and starts what is down
    wait_for 20 test ! -e "/proc/$victim" || fail "$fault: nobody died there"
    start_again
}
idle() { # all queues are empty
    "$ADMIN" --json status >"$T/status" && jq -e '[.. | objects | (.destroy_queue?, .punch_queue?, .recovery_queue?) // empty] | add == 0' "$T/status"
}
whole() { # after every step
    wait_for 30 idle || fail "$fault: the queues do not drain: $(cat "$T/status")"
    "$ADMIN" -q fsck check >"$T/fsck" 2>&1 || fail "$fault: fsck: $(cat "$T/fsck")"
    echo "ok   $fault"
}
finish() { # WHAT: the operation in the background
    tail -s 0.05 --pid="$op" -f /dev/null
    wait "$op" || fail "$fault: $1 failed: $(cat "$T/op")"
}

truncates() { # DAEMON FAULT
    expect "write" dd if="$a" of="$M/d/cut" bs=1M conv=fsync status=none
    arm "$@"
    timeout 60 truncate -s 1500000 "$M/d/cut" >"$T/op" 2>&1 &
    op=$!
    crashed
    finish truncate
    cmp "$b" "$M/d/cut" || fail "$fault: not what was left by the cut"
    expect "extend" truncate -s 3145728 "$M/d/cut"
    cmp <(cat "$b" && head -c 1645728 /dev/zero) "$M/d/cut" || fail "$fault: what was cut off is back"
    rm "$M/d/cut"
    whole
}

grows() { # DAEMON FAULT: a server dies, the client goes on
    expect "write" dd if="$small" of="$M/d/grow" conv=fsync status=none
    arm "$@"
    timeout 60 dd if="$grown" of="$M/d/grow" bs=64k conv=notrunc,fsync status=none >"$T/op" 2>&1 &
    op=$!
    crashed
    finish growth
    remount
    cmp "$grown" "$M/d/grow" || fail "$fault: not what was written"
    rm "$M/d/grow"
    whole
}

mount_by_hand() { # DIR [FAULT]
    mkdir -p "$1"
    env ${2:+"AIFS_FAULT=$2=crash"} "$MOUNT" --foreground "127.0.0.1:$port:/" "$1" -o "keyfile=$C/key/client.key" >>"$C/mount-hand.log" 2>&1 &
    victim=$!
    disown
    fault=${2:-}
    wait_for 20 grep -q " $1 " /proc/self/mountinfo || fail "the mount does not come up"
}
gone() { # the mount by hand
    wait_for 20 test ! -e "/proc/$victim" || fail "$fault: nobody died there"
    umount -l "$T/hand"
}

client_grows() { # FAULT: the client dies in its growth; the next one grows to less
    local got
    expect "write" dd if="$small" of="$M/d/grow" conv=fsync status=none
    mount_by_hand "$T/hand" "$1"
    timeout 60 dd if="$grown" of="$T/hand/d/grow" bs=64k conv=notrunc,fsync status=none >"$T/op" 2>&1 &
    gone
    got=$(wc -c <"$M/d/grow")
    case $1 in
    *after_chunks) cmp "$small" "$M/d/grow" || fail "$fault: not the old contents" ;;
    *) # what was written by then: nothing, when no target had promised room and the file grew first, as it was
        cmp -s "$small" "$M/d/grow" || { [ "$got" -ge 65536 ] && cmp -n "$got" "$grown" "$M/d/grow"; } || fail "$fault: not the new contents ($got bytes)" ;;
    esac
    head -c 30000 /dev/urandom >"$T/other"
    expect "grow again" dd if="$T/other" of="$M/d/grow" conv=notrunc,fsync status=none
    expect "cut" truncate -s 30000 "$M/d/grow"
    expect "extend" truncate -s 1500000 "$M/d/grow"
    cmp <(cat "$T/other" && head -c 1470000 /dev/zero) "$M/d/grow" || fail "$fault: bytes of the growth that did not happen"
    rm "$M/d/grow"
    whole
}

gives_up() { # client|mds|oss1 FAULT|none: a target refuses its part of a growth; somebody dies while what the other one has taken is cut
    local at=$M/d
    expect "a file on both servers" dd if="$a" of="$M/d/both" bs=1M conv=fsync status=none
    expect "write" dd if="$small" of="$M/d/grow" conv=fsync status=none
    kill_daemon oss2
    AIFS_FAULT=chunk.write=error "$ADMIN" -q demo up --dir "$C" || fail "oss2 does not come up"
    case $1.$2 in
    *.none) fault="a growth that is given up" ;;
    client.*) mount_by_hand "$T/hand" "$2" && at=$T/hand/d ;;
    *) arm "$@" ;;
    esac
    timeout 60 dd if="$at/both" of=/dev/null bs=1M iflag=direct status=none || fail "$fault: reading from both servers" # it is connected to them
    timeout 60 dd if="$grown" of="$at/grow" bs=1000000 count=1 seek=600000 oflag=seek_bytes conv=notrunc,fsync status=none >"$T/op" 2>&1 & # one write, two chunks
    op=$!
    case $1.$2 in
    *.none) ;;
    client.*) gone ;;
    *) crashed ;;
    esac
    tail -s 0.05 --pid="$op" -f /dev/null
    wait "$op" && fail "$fault: nobody was told that a target has not taken it"
    kill_daemon oss2
    start_again
    timeout 60 cmp "$small" "$M/d/grow" || fail "$fault: not the old contents: $(stat -c %s "$M/d/grow") $(cat "$T/op")"
    whole
    no_chunks_left
    head -c 30000 /dev/urandom >"$T/other"
    expect "grow again" timeout 60 dd if="$T/other" of="$M/d/grow" conv=notrunc,fsync status=none
    expect "extend" truncate -s 1500000 "$M/d/grow"
    cmp <(cat "$T/other" && head -c 1470000 /dev/zero) "$M/d/grow" || fail "$fault: bytes of the growth that did not happen"
    rm "$M/d/grow" "$M/d/both"
    whole
}

destroys() { # DAEMON FAULT
    expect "write" dd if="$a" of="$M/d/gone" bs=1M conv=fsync status=none
    arm "$@"
    timeout 60 rm "$M/d/gone" >"$T/op" 2>&1 &
    op=$!
    crashed
    finish rm
    [ ! -e "$M/d/gone" ] || fail "$fault: it is still there"
    whole
    "$ADMIN" -q --json fsck check | jq -e '[.. | objects | select(.code? == "chunk-without-inode")] == []' >/dev/null || fail "$fault: chunks are left"
}

evicts() { # DAEMON FAULT: a client dies with data under way; the daemon while the MDS evicts it
    mount_by_hand "$T/hand"
    expect "write" dd if="$b" of="$T/hand/d/held" bs=100k conv=fsync status=none
    exec 9<>"$T/hand/d/held"
    dd if="$a" bs=100k iflag=skip_bytes,count_bytes skip=1500000 count=1000000 status=none of=/dev/fd/9 oflag=append conv=notrunc
    mine=$victim
    arm "$@"
    timeout 20 test ! -e "$T/hand/d/not-there" || fail "$fault: the client is not back" # an answer: it has reclaimed
    kill -9 "$mine"
    exec 9>&-
    umount -l "$T/hand"
    crashed
    # It can be written by others when that is over, and has the promised part at least.
    timeout 60 cmp -n 1500000 "$a" "$M/d/held" || fail "$fault: what was fsynced is not there"
    # What was on its way may be there or be zeros.
    timeout 60 cmp -l -n "$(wc -c <"$M/d/held")" "$a" "$M/d/held" | awk '$3 != "0" { exit 1 }' || fail "$fault: bytes that nobody wrote there"
    expect "open for writing" timeout 60 dd if="$small" of="$M/d/held" conv=notrunc,fsync status=none
    rm "$M/d/held"
    whole
}

no_chunks_left() {
    "$ADMIN" -q --json fsck check | jq -e '[.. | objects | select(.code? == "chunk-without-inode" or .code? == "chunk-of-inline" or .code? == "chunk-beyond-size")] == []' >/dev/null ||
        fail "$fault: chunks are left: $("$ADMIN" -q fsck check)"
}

writers_die_too() { # the MDS dies when a client reports the size of what it has written, and the client with it
    local size
    mount_by_hand "$T/hand"
    expect "write" dd if="$b" of="$T/hand/d/held" bs=100k conv=fsync status=none
    exec 9<>"$T/hand/d/held"
    mine=$victim
    arm mds rpc.SIZE.before
    timeout 20 test ! -e "$T/hand/d/not-there" || fail "$fault: the client is not back"
    dd if="$a" bs=100k iflag=skip_bytes,count_bytes skip=1500000 count=1000000 status=none of=/dev/fd/9 oflag=append conv=notrunc 2>/dev/null &
    op=$!
    wait_for 20 test ! -e "/proc/$victim" || fail "$fault: nobody died there"
    kill -9 "$mine"
    exec 9>&-
    wait "$op"
    umount -l "$T/hand"
    start_again
    exec 9<>"$M/d/held" # when the file can be opened for writing, its size is what it is
    size=$(stat -c %s "$M/d/held")
    exec 9>&-
    no_chunks_left
    timeout 60 cmp -n 1500000 "$a" "$M/d/held" || fail "$fault: what was fsynced is not there"
    expect "extend" timeout 60 truncate -s 3145728 "$M/d/held"
    # What was written and not reported is part of the file (or zeros), or is not there: no bytes of the past behind its end.
    cmp -l -n "$size" "$a" "$M/d/held" | awk '$3 != "0" { exit 1 }' || fail "$fault: bytes that nobody wrote there"
    tail -c "+$((size + 1))" "$M/d/held" | tr -d '\0' | cmp - /dev/null || fail "$fault: bytes of the past behind $size"
    rm "$M/d/held"
    whole
    # A growth that never ended: its chunks have no file.
    expect "write" dd if="$small" of="$M/d/grow" conv=fsync status=none
    mount_by_hand "$T/hand" client.grow.after_chunks
    timeout 60 dd if="$grown" of="$T/hand/d/grow" bs=64k conv=notrunc,fsync status=none >"$T/op" 2>&1 &
    gone
    kill_daemon mds
    start_again
    timeout 60 cmp "$small" "$M/d/grow" || fail "$fault: not the old contents"
    rm "$M/d/grow"
    whole
    no_chunks_left
}

# shellcheck disable=SC2317 # called by at_exit
cleanup() { [ -n "${victim:-}" ] && umount -l "$T/hand" 2>/dev/null; }

[ $# -gt 0 ] || set -- truncate growth given-up destroy eviction together
for protocol; do
    case $protocol in
    truncate)
        for f in rpc.SETATTR.before mds.gc.punch.before_send mds.gc.punch.before_done rpc.SETATTR.after; do truncates mds "$f"; done
        for f in rpc.OSS_TRUNCATE.before chunk.commit.before_index rpc.OSS_TRUNCATE.after; do truncates oss1 "$f"; done
        ;;
    growth)
        for f in rpc.GROW.before rpc.GROW.after; do grows mds "$f"; done
        for f in rpc.OSS_WRITE.before rpc.OSS_WRITE.after chunk.commit.before_index rpc.OSS_COMMIT.after; do grows oss1 "$f"; done
        for f in client.grow.after_chunks client.grow.after_commit; do client_grows "$f"; done
        ;;
    given-up)
        gives_up client none
        gives_up client client.grow.before_give_up
        for f in rpc.SIZE.before rpc.SIZE.after mds.gc.punch.before_send mds.gc.punch.before_done; do gives_up mds "$f"; done
        for f in rpc.OSS_TRUNCATE.before rpc.OSS_TRUNCATE.after; do gives_up oss1 "$f"; done
        ;;
    destroy)
        for f in rpc.UNLINK.before mds.gc.destroy.before_send mds.gc.destroy.before_done rpc.UNLINK.after; do destroys mds "$f"; done
        for f in rpc.OSS_DESTROY.before chunk.commit.after_index rpc.OSS_DESTROY.after; do destroys oss1 "$f"; done
        ;;
    eviction)
        for f in mds.evict.after_entry mds.evict.after_fence mds.evict.after_seal; do evicts mds "$f"; done
        for f in rpc.OSS_FENCE.before rpc.OSS_FENCE.after rpc.OSS_SEAL.before rpc.OSS_SEAL.after; do evicts oss1 "$f"; done
        ;;
    together) writers_die_too ;;
    *) fail "no protocol $protocol" ;;
    esac
done
