#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Both servers read their configuration alike: --config, else /etc/aifs/NAME.conf if it is there, never what is meant for aifs-admin; what is wrong is named and ends with status 2; a key that is another than before is warned of.
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
# an empty run directory is none, for both
refuse "oss: no run directory is wanted" 1 "^aifs-oss: .*$T/nowhere" "$AIFS_BUILD/oss/aifs-oss" --config=/dev/null --oss.listen=127.0.0.1:0 --oss.run_dir= "--key_file=$T/key" --oss.mds=127.0.0.1:1 "--oss.targets=$T/nowhere"
mkdir "$T/target"
(cd "$T/target" && exec "$AIFS_BUILD/oss/aifs-oss" --config=/dev/null --oss.listen=127.0.0.1:0 --oss.run_dir= "--key_file=$T/key" --oss.mds=127.0.0.1:1 "--oss.targets=$T/target" --metrics.address=127.0.0.1:0) >"$T/log" 2>&1 &
server=$!
said() { grep -q 'advertised as' "$T/log"; }
wait_for 60 said || fail "a storage server without a run directory does not start: $(cat "$T/log")"
kill "$server" && wait "$server" || fail "a storage server without a run directory ends with $?: $(cat "$T/log")"
[ -z "$(ls "$T/target")" ] || fail "files without a run directory: $(ls "$T/target")"
# a metadata server remembers with which key its directory was served, and tells keys apart without showing them
serve_with() { # KEY [OPTION]: until it serves, then it is stopped; its log is $T/log
    "$AIFS_BUILD/mds/aifs-mds" --config=/dev/null --mds.listen=127.0.0.1:0 "--mds.run_dir=$T/run" "--mds.dir=$T/fs" "--key_file=$1" ${2:+"$2"} >"$T/log" 2>&1 &
    wait_for 60 test -s "$T/run/port" || fail "the metadata server does not start: $(cat "$T/log")"
    kill "$!" && wait "$!"
}
"$ADMIN" -q key create "$T/key2" || fail "a second key"
serve_with "$T/key" --mds.format=yes
serve_with "$T/key"
grep -q 'another key' "$T/log" && fail "the same key is another: $(cat "$T/log")"
for again in first second; do
    serve_with "$T/key2"
    grep -q "WARN.*$T/fs was served with another key .cluster and fingerprint $(cut -d' ' -f2 "$T/key") [0-9a-f]\{16\}. before than $T/key2 ($(cut -d' ' -f2 "$T/key2") [0-9a-f]\{16\}).*remove $T/fs/key.id" "$T/log" ||
        fail "another key, the $again time: $(cat "$T/log")"
done
[ "$(grep -c . "$T/fs/key.id")" = 1 ] || fail "key.id: $(cat "$T/fs/key.id")"
cat "$T/log" "$T/fs/key.id" | grep -e "$(cut -d' ' -f4 "$T/key" | cut -c1-12)" -e "$(cut -d' ' -f4 "$T/key2" | cut -c1-12)" && fail "a key is shown"
rm "$T/fs/key.id"
for again in first second; do
    serve_with "$T/key2"
    grep -q 'another key' "$T/log" && fail "the change was meant, the $again time: $(cat "$T/log")"
done
rm -r "$T/fs/shard0"
serve_with "$T/key" --mds.format=yes
grep -q 'another key' "$T/log" && fail "a new file system: $(cat "$T/log")"
true
