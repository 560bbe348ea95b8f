#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Both servers read their configuration alike: --config, else /etc/aifs/NAME.conf if it is there, never what is meant for aifs-admin; what is wrong is named and ends with status 2.
. "$(dirname "$0")/lib.sh"
unset AIFS_CONFIG
expect "a key" "$ADMIN" -q key create "$T/key"
expect "a client's key" "$ADMIN" -q key derive "$T/key" client "$T/client.key"
for d in mds oss; do
    program=$AIFS_BUILD/$d/aifs-$d
    refuse "$d: an unknown option" 2 "did you mean \"$d.listen\"" "$program" --config=/dev/null "--$d.listn=127.0.0.1:0"
    refuse "$d: an argument" 2 'bogus: not an option' "$program" --config=/dev/null bogus
    refuse "$d: a missing option" 2 'is missing' "$program" --config=/dev/null
    refuse "$d: a file that is not there" 2 'No such file' "$program" --config="$T/none"
    printf '# a comment\nlog.level = loud\n' >"$T/bad.conf"
    refuse "$d: a wrong value in a file" 2 'bad.conf:2.*loud' "$program" --config "$T/bad.conf"
    "$program" --help | grep -q "/etc/aifs/$d.conf" || fail "$d: --help does not name its file"
    [ "$("$program" --version)" = "aifs-$d $("$ADMIN" --version | cut -d' ' -f2)" ] || fail "$d: --version"
    # The default file, on an /etc of our own: its mistake is the proof that it was read.
    mkdir -p "$T/etc/aifs" && printf 'nonsense = 1\n' >"$T/etc/aifs/$d.conf"
done
cp /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache "$T/etc/" 2>/dev/null
for d in mds oss; do
    refuse "$d reads /etc/aifs/$d.conf" 2 "/etc/aifs/$d.conf:1.*nonsense" unshare -m bash -c "mount --bind '$T/etc' /etc && exec '$AIFS_BUILD/$d/aifs-$d'"
    AIFS_CONFIG=$T/bad.conf refuse "$d does not read the file of aifs-admin" 2 'is missing' "$AIFS_BUILD/$d/aifs-$d" --config=/dev/null
    rm "$T/etc/aifs/$d.conf"
    AIFS_CONFIG=$T/bad.conf refuse "$d needs no file" 2 'is missing' unshare -m bash -c "mount --bind '$T/etc' /etc && exec '$AIFS_BUILD/$d/aifs-$d'"
done
for d in mds oss; do
    [ $d = mds ] && needed=("--mds.dir=$T/none") || needed=(--oss.mds=127.0.0.1:1)
    refuse "$d: a device that is not there" 2 'net.devices: there is no RDMA device nonesuch:1 here' "$AIFS_BUILD/$d/aifs-$d" --config=/dev/null "${needed[@]}" --net.devices=nonesuch:1
    refuse "$d: a list of devices that is none" 2 'net.devices: "a:x": a port is a number' "$AIFS_BUILD/$d/aifs-$d" --config=/dev/null "${needed[@]}" --net.devices=a:x
    [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] || refuse "$d: insists on what is not there" 2 'net.transport = rdma: there is no RDMA device here' "$AIFS_BUILD/$d/aifs-$d" --config=/dev/null "${needed[@]}" --net.transport=rdma
    [ $d = mds ] || refuse "oss: targets without room for anything" 2 'command line: target.capacity is at least 32 MiB' "$AIFS_BUILD/oss/aifs-oss" --config=/dev/null "${needed[@]}" --target.capacity=1
    mkdir -p "$T/$d"
    args=(--config=/dev/null "--$d.listen=127.0.0.1:0" "--$d.run_dir=$T/$d.run" "--key_file=$T/client.key")
    [ $d = mds ] && args+=("--mds.dir=$T/mds" --mds.format=yes) || args+=("--oss.mds=127.0.0.1:1" "--oss.targets=$T/oss")
    refuse "$d: a client's key" 1 'role server, not client' "$AIFS_BUILD/$d/aifs-$d" "${args[@]}"
    [ -z "$(ls "$T/$d")" ] || fail "$d made something that it could not serve"
done
