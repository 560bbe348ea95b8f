#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cluster.sh: runs in the guest. A cluster whose servers have one RDMA device and whose mount has the other, and what may happen to the wire.
# The output is what was checked; everything else goes to $OUT.
set -u
: "${AIFS_BUILD:?}"
. "$(dirname "$0")/fabric.sh"
ADMIN=$AIFS_BUILD/tools/admin/aifs-admin MOUNT=$AIFS_BUILD/client/fuse/aifs-mount
OUT=/run/out W=/run/aifs M=/run/aifs/mnt
SERVERS=10.77.0.2
# Emulated processors on a busy machine: nothing here is a matter of seconds.
PATIENT=(--net.ping_timeout=15s --net.connect_timeout=30s)
mkdir -p $W/{mds,oss1,oss2} $M

note() { printf '[%s s] %s\n' "$(cut -d. -f1 /proc/uptime)" "$*"; }
fail() {
    note "FAILED: $*"
    exit 1
}
wait_for() { # SECONDS CMD...
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        read -rt 0.1 <> <(:) || :
    done
}
declare -A pids
mds() {
    "$AIFS_BUILD/mds/aifs-mds" --config=/dev/null --mds.listen=$SERVERS:7600 --mds.dir=$W/mds/data --mds.run_dir=$W/mds/run --mds.lease=60s \
        --mds.cache=32Mi --key_file=$W/server.key --net.devices=rxe1 --net.buffers=16Mi --metrics.address= "${PATIENT[@]}" "$@" >>$OUT/mds.log 2>&1 &
    pids[mds]=$!
    wait_for 120 test -s $W/mds/run/port || fail "the metadata server does not come up"
}
oss() { # 1 or 2
    rm -f "$W/oss$1/run/port"
    mkdir -p "$W/oss$1/t"
    "$AIFS_BUILD/oss/aifs-oss" --config=/dev/null "--oss.listen=$SERVERS:760$1" "--oss.name=oss$1" "--oss.targets=$W/oss$1/t" --oss.mds=$SERVERS:7600 \
        "--oss.run_dir=$W/oss$1/run" --target.dirty=16Mi --key_file=$W/server.key --net.devices=rxe1 --net.buffers=32Mi --metrics.address= "${PATIENT[@]}" \
        >>"$OUT/oss$1.log" 2>&1 &
    pids[oss$1]=$!
    wait_for 120 test -s "$W/oss$1/run/port" || fail "storage server $1 does not come up"
}
mounted() { # [DIR]
    timeout 240 "$MOUNT" $SERVERS:7600:/ "${1:-$M}" -o "keyfile=$W/server.key,net=rdma,net.devices=rxe0,net.buffers=16Mi,memory_limit=64Mi,mount_timeout=200s,net.ping_timeout=15s,net.connect_timeout=30s,log=$OUT/mount.log,metrics=" ||
        fail "the mount does not come up"
}
daemon_gone() { ! pgrep -f "aifs-mount [^ ]* $1 "; }
unmounted() { # [DIR]: and nothing is left of its daemon
    timeout 120 umount "${1:-$M}" || fail "umount"
    wait_for 120 daemon_gone "${1:-$M}" || fail "the mount's daemon does not end"
}
resident_kib() { awk '/^VmRSS/ { print $2 }' "/proc/${pids[$1]}/status"; }
sent() { cat /sys/class/net/va/statistics/tx_bytes; }
alive() { kill -0 "${pids[$1]}" 2>/dev/null; }
# Since what line of the mount's log?
here() { mark=$(wc -l <$OUT/mount.log); }
logged() { tail -n "+$((mark + 1))" $OUT/mount.log | grep -q "$1"; }
same() { # WHAT FILE: after the kernel and the daemon have forgotten it
    unmounted
    mounted
    timeout 300 cmp "$W/data" "$M/$2" || fail "$1: other bytes come back"
    note "$1"
}

fabric_up || fail "there is no soft-RoCE"
note "two devices and a wire between them"
"$ADMIN" -q key create $W/server.key || fail "a key"
"$ADMIN" -q key derive $W/server.key admin $W/admin.key || fail "a key"
said=$("$AIFS_BUILD/oss/aifs-oss" --config=/dev/null --oss.mds=$SERVERS --net.devices=rxe1:2 2>&1)
[ $? = 2 ] && grep -q 'net.devices: there is no RDMA device rxe1:2 here (there are: rxe0:1, rxe1:1)' <<<"$said" || fail "a device that is not there: $said"
note "a device that is not there is refused"

mds --mds.format=yes
oss 1
oss 2
export AIFS_MDS=$SERVERS:7600 AIFS_KEY_FILE=$W/server.key
wait_for 120 bash -c "[ \$($ADMIN --no-header target list | grep -c online) = 2 ]" || fail "the targets do not come online"
mounted
note "a cluster and a mount"

"$ADMIN" -q stripe set -c 2 $M || fail "stripe set"
head -c 16M /dev/urandom >$W/data
before=$(sent)
timeout 300 cp $W/data $M/plain && timeout 120 sync -f $M/plain || fail "writing"
[ $(($(sent) - before)) -gt 16000000 ] || fail "the data did not go over the wire"
mkdir $M/small
for i in $(seq 50); do echo "$i" >"$M/small/$i"; done
same "a file and back" plain
[ "$(cat $M/small/* | sort -n | md5sum)" = "$(seq 50 | md5sum)" ] || fail "small files"
for s in mds oss1 oss2; do
    grep -q ' rdma: asked for' $OUT/$s.log || fail "$s does not say that its transport is rdma"
done
[ "$(grep -c ' rdma: asked for' $OUT/mount.log)" -ge 3 ] || fail "the mount does not say that its transport is rdma"
note "every server says that it is rdma"

timeout 300 "$AIFS_BUILD/tests/rdma/rdma-library" $SERVERS:7600:/ $W/server.key /library >$OUT/library.log 2>&1 || fail "libaifs: $(tail -3 $OUT/library.log)"
[ "$(stat -c %s $M/library)" = $((12 << 20)) ] || fail "libaifs: the mount sees another size"
note "libaifs writes, reads and compares; a process has one list of devices"

# Another user cannot use shared memory; nobody asked for rdma.
chmod 755 $W && chown nobody $W/admin.key
by_rdma() {
    AIFS_KEY_FILE=$W/admin.key timeout 100 setpriv --reuid=nobody --clear-groups "$ADMIN" --timeout 60s net show >$W/show 2>&1
    [ "$(grep -cE '^(mds|oss).* rdma ' $W/show)" = 3 ]
}
wait_for 300 by_rdma || fail "net show: $(cat $W/show)"
cat $W/show
grep -q 'rxe0:1 .*active .*ethernet' $W/show || fail "net show: no device"
note "chosen by itself where shared memory is not possible; net show tells"

# Two more connections to the metadata server, with all that UCX keeps for them.
mkdir $W/m2 $W/m3
before=$(resident_kib mds)
had=$(grep -c ' rdma: asked for' $OUT/mds.log)
mounted $W/m2
mounted $W/m3
wait_for 120 bash -c "[ \$(grep -c ' rdma: asked for' $OUT/mds.log) -ge $((had + 2)) ]" || fail "the other mounts do not come to use rdma"
more=$((($(resident_kib mds) - before) / 2))
[ $more -lt 12288 ] || fail "a connection costs a server $more KiB"
note "a connection costs a server less than 12 MiB ($more KiB)"
unmounted $W/m3
unmounted $W/m2

# ---- lost packets
tc qdisc add dev va root netem loss 2% && tc qdisc add dev vb root netem loss 2% || fail "netem"
timeout 400 cp $W/data $M/lossy && timeout 200 sync -f $M/lossy || fail "writing with lost packets"
same "one packet in fifty is lost on each side" lossy
tc qdisc del dev va root
tc qdisc del dev vb root

# ---- a killed server
here
(timeout 500 cp $W/data $M/killed && timeout 200 sync -f $M/killed) &
job=$!
wait_for 100 test -s $M/killed
kill -9 "${pids[oss1]}"
wait_for 120 logged 'link lost\|lost:\|closed' || note "(the mount did not log it)"
oss 1
wait $job || fail "writing while a server is killed"
same "a server is killed and comes again" killed

# ---- a wire that is cut, with the control channel in it
here
(timeout 500 cp $W/data $M/cut && timeout 300 sync -f $M/cut) &
job=$!
wait_for 100 test -s $M/cut
tc qdisc add dev va root netem loss 100% && tc qdisc add dev vb root netem loss 100% || fail "netem"
wait_for 200 logged 'no sign of life\|connection lost' || fail "nobody notices that the wire is cut"
tc qdisc del dev va root
tc qdisc del dev vb root
wait $job || fail "writing while the wire is cut"
same "the wire is cut and mended" cut

# ---- RoCE alone is lost (UDP port 4791): TCP goes on, the queue pairs fail
here
for d in va vb; do
    tc qdisc add dev $d root handle 1: prio && tc qdisc add dev $d parent 1:3 netem loss 100% &&
        tc filter add dev $d parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:3 || fail "tc filter"
done
(timeout 500 cp $W/data $M/roce && timeout 300 sync -f $M/roce) &
job=$!
wait_for 250 logged 'ucx: \|does not work here' || fail "nobody notices that RoCE does not arrive"
tail -n "+$((mark + 1))" $OUT/mount.log | head -3
for d in va vb; do tc qdisc del dev $d root; done
wait $job || fail "writing while RoCE is lost"
same "RoCE alone is lost for a time" roce

for s in mds oss1 oss2; do alive $s || fail "$s has died"; done
unmounted
for s in oss1 oss2 mds; do
    kill "${pids[$s]}"
    wait "${pids[$s]}" || fail "$s ends with status $?"
done
note "everything ends in order"
