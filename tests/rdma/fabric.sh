# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# fabric.sh: sourced in the guest; two RDMA devices with a wire between them.
#
#   rxe0 on va, 10.77.0.1   <== veth pair ==>   rxe1 on vb, 10.77.0.2
#
# Soft-RoCE of 6.1 works in the first network name space only, so both ends are in one: packets to the other end's address leave by the
# wire (the local table is asked only about what has come in), those of TCP as those of RoCE.

fabric_up() {
    local side
    ip link set lo up
    echo 100000 >/proc/sys/net/core/netdev_max_backlog # one large RDMA read overflows 1000, and all of it is sent again
    ip link add va address 02:77:00:00:00:01 type veth peer name vb address 02:77:00:00:00:02 || return 1
    for side in all default va vb; do
        echo 1 >"/proc/sys/net/ipv4/conf/$side/accept_local"
        echo 0 >"/proc/sys/net/ipv4/conf/$side/rp_filter"
    done
    ip addr add 10.77.0.1/24 dev va
    ip addr add 10.77.0.2/24 dev vb
    ip link set va mtu 4200 up
    ip link set vb mtu 4200 up
    ip route add 10.77.0.2 dev va src 10.77.0.1 table 101
    ip route add 10.77.0.1 dev vb src 10.77.0.2 table 102
    ip rule add pref 10 iif va lookup local
    ip rule add pref 11 iif vb lookup local
    ip rule add pref 20 to 10.77.0.2 lookup 101
    ip rule add pref 21 to 10.77.0.1 lookup 102
    ip rule add pref 100 lookup local
    ip rule del pref 0
    ip neigh replace 10.77.0.2 lladdr 02:77:00:00:00:02 dev va nud permanent
    ip neigh replace 10.77.0.1 lladdr 02:77:00:00:00:01 dev vb nud permanent
    rdma link add rxe0 type rxe netdev va || return 1
    rdma link add rxe1 type rxe netdev vb || return 1
    for side in rxe0 rxe1; do
        wait_for 20 grep -q ACTIVE "/sys/class/infiniband/$side/ports/1/state" || return 1
    done
}
