#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A storage server with two addresses, each on a network interface of its own: data goes over both at once; when one wire is cut the other carries all; when it is back it is used again.
# All of it in two network name spaces: ours with the servers, and the client's.
if [ -z "${AIFS_TEST_APART:-}" ]; then
    why=$(unshare --net sh -c 'ip link set lo up && ip link add wire1 type veth peer name wire2' 2>&1) || {
        echo "skipped: no name spaces with veth here: $why"
        exit 77
    }
    exec env AIFS_TEST_APART=1 unshare --net bash "$0"
fi
. "$(dirname "$0")/lib.sh"
expect "the loopback" ip link set lo up
unshare --net tail -s 0.2 --pid=$$ -f /dev/null &
client=$!
W=$T/wired
cleanup() {
    ! grep -q " $W " /proc/self/mountinfo || inside timeout 20 "$MOUNT" --umount "$W"
    kill "$client"
}
inside() { nsenter --net="/proc/$client/ns/net" "$@"; }
apart() { [ "$(readlink "/proc/$client/ns/net")" != "$(readlink /proc/$$/ns/net)" ]; }
wait_for 10 apart || fail "no name space for the client"
expect "its loopback" inside ip link set lo up
for k in 1 2; do
    expect "a wire" ip link add "wire$k" type veth peer name "wire$k" netns "$client"
    expect "its address" ip address add "10.99.$k.1/24" dev "wire$k"
    expect "its other address" inside ip address add "10.99.$k.2/24" dev "wire$k"
    expect "this end" ip link set "wire$k" up
    expect "the other end" inside ip link set "wire$k" up
done

cluster_up --oss 1 --net tcp
sed -i 's/^mds.listen = 127.0.0.1/mds.listen = 0.0.0.0/' "$C/mds/mds.conf"
sed -i 's/^oss.listen = 127.0.0.1/oss.listen = 0.0.0.0/' "$C/oss1/oss.conf"
echo 'oss.advertise = 10.99.1.1, 10.99.2.1' >>"$C/oss1/oss.conf"
for d in mds oss1; do # by hand: `demo up` would write its own configuration again
    kill_daemon "$d" TERM
    program=aifs-${d%1}
    "$AIFS_BUILD/${d%1}/$program" "--config=$C/$d/${d%1}.conf" >>"$C/$d/log" 2>&1 &
done
port=$(sed -n 's/^mds.listen = .*://p' "$C/mds/mds.conf")
has_both() { "$ADMIN" net show | grep -q '10\.99\.2\.1:[0-9]* *up *tcp'; }
wait_for 90 has_both || fail "net show does not know both addresses: $("$ADMIN" net show)"
mkdir -p "$W"
expect "a mount over the wires" inside "$MOUNT" "10.99.1.1:$port,10.99.2.1:$port:/" "$W" -o "keyfile=$C/key/client.key,net=tcp,net.ping_timeout=2s"

carried() { cat "/sys/class/net/wire$1/statistics/${2}_bytes"; }
head -c 67108864 /dev/urandom >"$T/data"
write_and_read() { # what was written comes back
    rm -f "$W/f"
    dd if="$T/data" of="$W/f" bs=1M oflag=direct status=none && dd if="$W/f" bs=4M iflag=direct status=none | cmp - "$T/data"
}
# Both carry at least a quarter of what the pair of them does.
over_both() { # DIRECTION, seen from the server
    local a1 a2 b1 b2
    a1=$(carried 1 "$1") a2=$(carried 2 "$1")
    write_and_read || fail "other bytes"
    b1=$(($(carried 1 "$1") - a1)) b2=$(($(carried 2 "$1") - a2))
    note "$1: $b1 and $b2 bytes"
    [ $((b1 * 3)) -ge "$b2" ] && [ $((b2 * 3)) -ge "$b1" ]
}
for way in tx rx; do wait_for 90 over_both "$way" || fail "only one wire carries data ($way)"; done

ip link set wire2 down
expect "with a wire cut" write_and_read
[ "$(inside find "$W" -name f -size 67108864c | wc -l)" = 1 ] || fail "the file is not whole"
ip link set wire2 up
wait_for 90 over_both tx || fail "the mended wire is not used again"
ip link set wire1 down
expect "with the other wire cut data still comes and goes" dd if="$W/f" of=/dev/null bs=4M iflag=direct status=none
ip link set wire1 up
