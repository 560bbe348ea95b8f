#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every scenario of aifs-bench runs through the mount and through libaifs, reads what it wrote, says so as rows, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
BENCH=$AIFS_BUILD/tools/bench/aifs-bench
lib=aifs:127.0.0.1:$(cat "$C/mds/run/port"):/
key=key_file=$C/key/client.key

# rows WHAT ROW... -- ARGUMENTS...: exit 0, one JSON document, with these rows among others
rows() {
    local what=$1 want=() row
    shift
    while [ "$1" != -- ]; do want+=("$1") && shift; done
    shift
    "$BENCH" --json "$@" >"$T/out.json" || fail "$what: exit $? ($*)"
    [ "$(jq -r .schema "$T/out.json")" = aifs.bench/1 ] || fail "$what: another schema"
    for row in "${want[@]}"; do
        jq -e --arg row "$row" '.items[] | select(.name == $row) | .value > 0' "$T/out.json" >/dev/null ||
            fail "$what: no row $row, or nothing in it: $(cat "$T/out.json")"
    done
}

for where in "$M" "$lib"; do
    args=("$where")
    # cold reading is a new client there; through the mount it takes the caches of the whole machine, once
    [ "$where" = "$M" ] || args+=(--options "$key" --cold)
    rows "io in $where" io.write.1Mi.x2 io.randread.1Mi.x2 -- io --verify --size 4Mi --jobs 2 "${args[@]}"
    rows "md in $where" md.create md.stat md.open+close md.rename md.unlink md.mkdir md.rmdir -- md --cold --jobs 2 --files 300 --dirs 3 "${args[@]}"
    rows "small in $where" small.create small.read small.read-again small.unlink -- small --verify --files 100 --size 100Ki --dirs 5 "${args[@]}"
    rows "ckpt in $where" ckpt.n-n.write.x2 ckpt.n-1.read.x2 ckpt.records.write.x2 ckpt.records.read.x2 -- \
        ckpt --verify --ranks 2 --size 3Mi --bs 1Mi "${args[@]}"
    rows "kv in $where" kv.put kv.get -- kv --verify --fsync --blocks 4 --min 1Mi --max 3Mi "${args[@]}"
    rows "train in $where" train.cosmoflow.h100.x2 train.cosmoflow.h100.x2.samples train.cosmoflow.h100.x2.au -- \
        train --workload cosmoflow --accelerators 2 --steps 5 --scale 10 "${args[@]}"
    [ -z "$(ls "$M")" ] || fail "left behind in $where: $(ls "$M")"
done
expect "reading cold" "$BENCH" io --verify --cold --size 1Mi --rw write,read "$M" >/dev/null
expect "a data set" "$BENCH" train --prepare --workload retinanet --steps 2 --batch 4 --scale 10 "$M" >/dev/null
set=$(ls "$M")
rows "a data set that is there" train.retinanet.b200.x1.au -- train --workload retinanet --steps 2 --batch 4 --scale 10 "$lib" --options "$key"
[ "$(ls "$M")" = "$set" ] && [ -n "$set" ] || fail "the data set has gone"
rm -r "${M:?}"/train-*
rows "io with limit and cost" io.write.1Mi.x1 io.read.1Mi.x1 -- --roofline --demo "$C" io --verify --size 2Mi --rw write,read "$M"
jq -e '.items | length == 2 and all(.limit > 0 and .client_cpu_s_per_gib >= 0 and .server_cpu_s_per_gib >= 0)' "$T/out.json" >/dev/null ||
    fail "no limit or cost in $(cat "$T/out.json")"
rows "names with cost" md.create md.unlink -- --demo "$C" md --files 50 --phases create,unlink "$M"
jq -e '.items | all(.client_cpu_us_per_op >= 0 and .mds_cpu_us_per_op >= 0 and .oss_cpu_us_per_op >= 0)' "$T/out.json" >/dev/null ||
    fail "no cost in $(cat "$T/out.json")"
rows "kv with limit" kv.put kv.get -- --roofline kv --blocks 1 --min 1Mi --max 1Mi "$lib" --options "$key"
jq -e '.items | all(.limit_name == "raw RPC" and .limit > 0)' "$T/out.json" >/dev/null || fail "no limit in $(cat "$T/out.json")"
TMPDIR=$T rows "bars" bar.lib.read bar.lib.write bar.lib.randread bar.mount.read bar.mount.write bar.mount.randread bar.mount.reread bar.mount.reread.tmpfs \
    bar.small.read bar.overwrite bar.ckpt -- --demo "$C" bars --runs 1 --size 4Mi --files 40
[ -z "$(ls "$M")" ] && ! compgen -G "$T/bench-*" >/dev/null || fail "bars leave something: $(ls "$M" "$T")"
refuse "bars of no cluster" 2 'no servers' "$BENCH" --demo "$T/none" bars
refuse "a server that is not there" 1 'mount|server|refused|key' "$BENCH" kv "aifs:127.0.0.1:1:/" --options "$key,mount_timeout=100ms"
true
