#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Power cuts at random moments: 1 MDS and 2 OSS under powercut.so, a client at work; everything is killed, the servers' files become what a disk would hold, and after the restart the oracle
# finds what was promised and nothing that nobody wrote (each removal that has returned, too: the mount answers none ahead; of files that were made what create_ahead promises, in every other lane); in the end fsck finds nothing at all, and no chunk is left when the files are gone. The argument says how many rounds (200), SEED
# chooses another run. "without-syncs": with syncs compiled out of the daemons (POWERCUT_DROP_SYNC) the oracle must complain. A round mostly waits for the lease of the dead client, so
# several clusters (LANES) go through their rounds at the same time; each is this script again, with LANE set.
NEED_MB=1500
. "$(dirname "$0")/../system/lib.sh"
[ "$place" = /dev/shm ] || skip "needs room in /dev/shm (a file system that does not reuse inode numbers)"
ROUNDS=${1:-200} LANES=${LANES:-6}
[ -n "${AIFS_TEST_LONG:-}" ] && [ -z "${LANE:-}" ] && [ "$ROUNDS" != without-syncs ] && ROUNDS=$((ROUNDS * 10))
SEED=${SEED:-$RANDOM}
tools=$AIFS_BUILD/tests
worker='' early=0 why=
declare -A pid=() lane=()
ahead=no # are files made before the server has them?
[ $((${LANE:-0} % 2)) = 0 ] || ahead=yes

# ---- all lanes ----

lanes() {
    local n
    echo "seed $SEED, $ROUNDS rounds in $LANES lanes"
    for n in $(seq 1 "$LANES"); do
        LANE=$n SEED=$((SEED + n)) bash "$0" $(((ROUNDS + LANES - n) / LANES)) >"$T/lane$n" 2>&1 &
        lane[$n]=$!
    done
    for n in "${!lane[@]}"; do
        wait "${lane[$n]}" || { sed "s/^/lane $n: /" "$T/lane$n" && failures=$((failures + 1)); }
        unset "lane[$n]"
    done
    [ "$failures" = 0 ] || fail "$failures lanes"
    cat "$T"/lane*
    exit 0
}

# ---- one lane ----

prepare() {
    local n
    "$ADMIN" -q demo up --dir "$C" --oss 2 --net tcp || fail "the cluster does not come up"
    cluster_down
    port=$(jq .mds_port "$C/demo.json")
    # The client dies in every round; nobody shall wait 15 s for it. Buffers and slots made ready are memory that every start touches.
    sed -i '/^net.buffers/d' "$C"/*/*.conf
    printf '%s\n' "mds.lease = ${LEASE:-3s}" "net.buffers = 16Mi" >>"$C/mds/mds.conf"
    sed -i "s/^mds.listen.*/mds.listen = 127.0.0.1:$port/" "$C/mds/mds.conf"
    for n in 1 2; do
        sed -i "s/^oss.listen.*/oss.listen = 127.0.0.1:$(jq ".oss_ports[$n-1]" "$C/demo.json")/" "$C/oss$n/oss.conf"
        printf '%s\n' "net.buffers = 16Mi" "target.ready = 0" >>"$C/oss$n/oss.conf"
    done
    roots=("$C/mds/data" "$C/oss1/t1" "$C/oss2/t1")
    mkfifo "$T/now"
    cut_power 0
}
cut_power() { # SEED: what a disk would hold
    local r
    for r in "${roots[@]}"; do
        "$tools/powercut-apply" "$r" "$r.shadow" "$1" || fail "powercut-apply"
    done
}
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
    "$MOUNT" --foreground "127.0.0.1:$port:/" "$M" -o "keyfile=$C/key/client.key,net=tcp,mount_timeout=20,remove_ahead=no,create_ahead=$ahead" >"$C/mount.log" 2>&1 &
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
cleanup() {
    [ ${#lane[@]} = 0 ] || { kill "${lane[@]}" && wait "${lane[@]}"; } 2>/dev/null
    kill_all
}

rounds() { # STATE N [VAR=VALUE]: 0 if the oracle was content every time, else 1 and why
    local state=$1 i
    for i in $(seq 1 "$2"); do
        up "${3:-}" || return 1
        if [ "$i" -gt 1 ] && ! timeout 60 "$tools/oracle" check "$M" "$state" >"$T/verdict" 2>&1; then
            why="round $i: $(cat "$T/verdict")"
            return 1
        fi
        # The cut comes a few milliseconds after the beginning of a random operation, however slow the machine is.
        "$tools/oracle" work "$M" "$state" "$((SEED * 1000 + i))" 120000 "$(((SEED + i * 7919) % 160))" "${ahead/yes/ahead}" 2>"$T/worker" >"$T/now" &
        worker=$!
        read -rt 60 <"$T/now" || :
        read -rt "0.0$((10 + (SEED + i * 104729) % 40))" -u "$pause" || :
        if ! kill -0 "$worker" 2>/dev/null; then
            why="round $i: the worker ended by itself: $(cat "$T/worker" "$C/mount.log")"
            # A mount that the machine does not let run for the time of its lease loses its session, as it must: the only error that a client may see here.
            grep -q 'session [0-9]* is lost' "$C/mount.log" || return 1
            note "$why"
            early=$((early + 1))
        fi
        kill_all
        cut_power "$(((SEED + i) * (i % 3)))" # every third time nothing unsynced survives
    done
}
# shellcheck disable=SC2317 # called by wait_for
clean() { "$ADMIN" --json -q fsck check >"$T/fsck" && jq -e '.items == []' "$T/fsck"; } # nothing at all
# shellcheck disable=SC2317 # called by wait_for
idle() { "$ADMIN" --json status | jq -e '[.. | objects | (.destroy_queue?, .punch_queue?, .recovery_queue?) // empty] | add == 0'; }

with_syncs() {
    rounds "$T/state" "$ROUNDS" || fail "seed $SEED: $why"
    [ "$early" -le $((ROUNDS / 10)) ] || fail "$early of $ROUNDS sessions lost: the machine is too busy for this test"
    promised=$(od -An -tu8 -j24 -N8 "$T/state") && lost=$(od -An -tu8 -j40 -N8 "$T/state")
    echo "$ROUNDS rounds, $((promised)) operations were promised; $((lost)) files that were not had been made ahead"
    [ "$promised" -ge $((ROUNDS * 10)) ] || fail "hardly anything was promised: nothing was tested"
    up || fail "$why"
    expect "the last check" "$tools/oracle" check "$M" "$T/state"
    export AIFS_CONFIG=$C/admin.conf
    wait_for 30 idle || fail "the queues do not drain"
    wait_for 10 clean || fail "fsck at the end: $(cat "$T/fsck")"
    rm -rf "$M"/d?
    wait_for 30 idle || fail "the queues do not drain"
    wait_for 10 clean || fail "what removed files have left: $(cat "$T/fsck")"
}
without_syncs() {
    rounds "$T/state" 40 POWERCUT_DROP_SYNC=1 && fail "a build without fdatasync passes: this test proves nothing"
    echo "without syncs the oracle complains, as it must: ${why:0:200}"
}

[ -n "${LANE:-}" ] || [ "$ROUNDS" = without-syncs ] || lanes
prepare
if [ "$ROUNDS" = without-syncs ]; then without_syncs; else with_syncs; fi
kill_all
exit 0
