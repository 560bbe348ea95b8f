#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Power cuts at random moments: 1 MDS and 2 OSS under powercut.so, a client at work; everything is killed, the servers' files become what a disk would hold, and after the restart the oracle
# finds what was promised and nothing that nobody wrote. The argument says how many rounds (200), SEED chooses another run. "without-syncs": with syncs compiled out of the daemons
# (POWERCUT_DROP_SYNC) the oracle must complain.
NEED_MB=1500
. "$(dirname "$0")/../system/lib.sh"
[ "$place" = /dev/shm ] || skip "needs room in /dev/shm (a file system that does not reuse inode numbers)"
ROUNDS=${1:-200}
[ -n "${AIFS_TEST_LONG:-}" ] && [ "$ROUNDS" != without-syncs ] && ROUNDS=$((ROUNDS * 10))
SEED=${SEED:-$RANDOM}
tools=$AIFS_BUILD/tests
echo "seed $SEED, $ROUNDS rounds"
"$ADMIN" -q demo up --dir "$C" --oss 2 --net tcp || fail "the cluster does not come up"
cluster_down
port=$(jq .mds_port "$C/demo.json")
sed -i "s/^mds.listen.*/mds.listen = 127.0.0.1:$port/" "$C/mds/mds.conf"
# Memory that is touched at every start is most of the work of a round.
sed -i '/^net.buffers/d' "$C"/*/*.conf
for conf in "$C"/mds/mds.conf "$C"/oss?/oss.conf; do echo "net.buffers = 32Mi" >>"$conf"; done
# The client dies in every round; nobody shall wait 15 s for it.
echo "mds.lease = ${LEASE:-700ms}" >>"$C/mds/mds.conf"
for n in 1 2; do sed -i "s/^oss.listen.*/oss.listen = 127.0.0.1:$(jq ".oss_ports[$n-1]" "$C/demo.json")/" "$C/oss$n/oss.conf"; done
roots=("$C/mds/data" "$C/oss1/t1" "$C/oss2/t1")

cut() { # SEED: what a disk would hold
    local r
    for r in "${roots[@]}"; do
        "$tools/powercut-apply" "$r" "$r.shadow" "$1" || fail "powercut-apply"
    done
}
declare -A pid=()
why=
start() { # NAME PROGRAM ROOT [VAR=VALUE]
    rm -f "$C/$1/run/port"
    env LD_PRELOAD="$tools/powercut.so" POWERCUT_ROOT="$3" POWERCUT_SHADOW="$3.shadow" ${4:+"$4"} \
        "$2" --config "$C/$1/${1%%[0-9]*}.conf" >>"$C/$1/log" 2>&1 &
    pid[$1]=$!
}
up() { # [VAR=VALUE]: 1 and why when something does not come up
    local d
    start mds "$AIFS_BUILD/mds/aifs-mds" "$C/mds/data" "${1:-}"
    start oss1 "$AIFS_BUILD/oss/aifs-oss" "$C/oss1/t1" "${1:-}"
    start oss2 "$AIFS_BUILD/oss/aifs-oss" "$C/oss2/t1" "${1:-}"
    "$MOUNT" --foreground "127.0.0.1:$port:/" "$M" -o "keyfile=$C/key/client.key,net=tcp,mount_timeout=20" >>"$C/mount.log" 2>&1 &
    pid[mount]=$!
    for d in mds oss1 oss2; do
        why="$d does not come up after the cut: $(tail -5 "$C/$d/log")"
        wait_for 20 test -s "$C/$d/run/port" || return 1
    done
    why="the mount does not come up: $(tail -5 "$C/mount.log")"
    wait_for 20 grep -q " $M " /proc/self/mountinfo
}
kill_all() {
    local p
    kill -9 ${worker:+"$worker"} "${pid[@]}" 2>/dev/null
    for p in $worker "${pid[@]}"; do wait "$p" 2>/dev/null; done
    umount -l "$M" 2>/dev/null
    worker='' pid=()
}
# shellcheck disable=SC2317 # called by at_exit
cleanup() { kill_all; }

worker='' early=0
rounds() { # N STATE [VAR=VALUE]: 0 if the oracle was content every time, else 1 and why
    local n=$1 state=$2 i
    for i in $(seq 1 "$n"); do
        up "${3:-}" || return 1
        if [ "$i" -gt 1 ] && ! timeout 60 "$tools/oracle" check "$M" "$state" >"$T/verdict" 2>&1; then
            why="round $i: $(cat "$T/verdict")"
            return 1
        fi
        "$tools/oracle" work "$M" "$state" "$((SEED * 1000 + i))" 60000 >"$T/worker" 2>&1 &
        worker=$!
        read -rt "0.$((100 + (SEED + i * 7919) % 500))" <> <(:) || :
        # An error (a session lost on a busy machine) is an end as good as any, as long as it is rare.
        kill -0 "$worker" 2>/dev/null || { early=$((early + 1)) && note "round $i: the worker ended by itself: $(cat "$T/worker")"; }
        kill_all
        cut "$(((SEED + i) * (i % 3)))" # every third time nothing unsynced survives
    done
}

cut 0
if [ "$ROUNDS" = without-syncs ]; then
    rounds 40 "$T/state" POWERCUT_DROP_SYNC=1 && fail "a build without fdatasync passes: this test proves nothing"
    echo "without syncs the oracle complains, as it must: $why"
    kill_all
    exit 0
fi
rounds "$ROUNDS" "$T/state" || fail "seed $SEED: $why"
[ "$early" -le $((ROUNDS / 10)) ] || fail "$early of $ROUNDS rounds ended early"
od -An -tu8 -j24 -N8 "$T/state" | awk '{ print $1 " operations were promised" }'
up || fail "$why"
expect "the last check" "$tools/oracle" check "$M" "$T/state"
export AIFS_CONFIG=$C/admin.conf
# Chunks of a growth that a cut of everything interrupted are without an owner once their file is removed: space lost, no damage to a file.
"$ADMIN" --json -q fsck check >"$T/fsck"
jq -e '[.. | objects | select(.level? == "damage" and .code != "chunk-without-inode")] == []' "$T/fsck" >/dev/null || fail "fsck at the end: $(cat "$T/fsck")"
echo "$(grep -c chunk-without-inode "$T/fsck") chunks are lost space"
kill_all
exit 0
