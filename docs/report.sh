#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# report.sh [--quick] [--net auto|tcp|shm] [--runs N] [PAGE]: measure this machine and this build, and write the page (docs/report.html).
# A demo cluster in memory, every scenario of aifs-bench on its mount and through libaifs, each with its limit; the bars, over --net or, without it, over auto and over tcp; scaling, and
# training, behind links in name spaces. Needs root, and 16 GiB of memory.
# --quick: everything small, to see that it works. The build is $AIFS_BUILD, or build/ beside docs/.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${AIFS_BUILD:-$root/build}
bench=$build/tools/bench/aifs-bench admin=$build/tools/admin/aifs-admin
net=auto nets='auto tcp' runs=5 page='' quick=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --net) net=$2 nets=$2 && shift ;;
    --runs) runs=$2 && shift ;;
    -*) sed -n '3,6p' "$0" && exit 2 ;;
    *) page=$1 ;;
    esac
    shift
done
page=${page:-$root/docs/report.html}
[ -x "$bench" ] || { echo "report.sh: there is no $bench: build first" >&2 && exit 1; }

size=128Mi files=4000 steps=10 blocks=12 servers=1,2,4,8 clients=1,2,4 link=50000000 seconds=3 scale=16 sized=(--servers 4 --steps 60)
[ -z "$quick" ] || { runs=1 size=4Mi files=50 steps=2 blocks=2 servers=1,2 clients=1 link=40000000 seconds=0.1 scale=1000 sized=(--servers 2 --steps 2); }

place=$(mktemp -d "/dev/shm/aifs-report.XXXXXX")
at_exit() {
    "$admin" -q demo down --dir "$place/demo" --purge || :
    rm -rf "$place"
}
trap at_exit EXIT
trap 'exit 130' INT TERM
mkdir "$place/mnt" "$place/runs"
"$admin" -q demo up --dir "$place/demo" --net "$net" --mount "$place/mnt"
lib=(--options "key_file=$place/demo/key/client.key,net=$net" "aifs:127.0.0.1:$(cat "$place/demo/mds/run/port"):/")

n=0
run() { # ARGUMENTS...: one run, one document
    n=$((n + 1))
    echo "aifs-bench $*" >&2
    "$bench" --json "$@" | sed "s#$place/##g; s#aifs:127.0.0.1:[0-9]*:/#aifs:SERVER:/#g" >"$place/runs/$(printf %03d $n).json"
}
for ((i = 0; i < runs; i++)); do
    for over in $nets; do
        run --demo "$place/demo" bars --runs 1 --net "$over" --size "$size" --files "$files"
    done
    run --demo "$place/demo" --roofline io --cold --fsync --jobs 4 --size "$size" "$place/mnt"
    run --demo "$place/demo" --roofline io --cold --fsync --depth 8 --size "$size" "${lib[@]}"
    run --demo "$place/demo" --roofline md --cold --files "$files" "$place/mnt"
    run --demo "$place/demo" md --cold --jobs 2 --files "$files" "${lib[@]}"
    run --demo "$place/demo" --roofline small --cold --files "$files" "$place/mnt"
    run --demo "$place/demo" --roofline ckpt --cold --size "$size" "$place/mnt"
    run --demo "$place/demo" --roofline kv --cold --blocks "$blocks" "${lib[@]}"
    for workload in cosmoflow retinanet; do
        run --demo "$place/demo" train --workload $workload --scale "$scale" --steps "$steps" --cold "$place/mnt"
    done
    run train --workload unet3d --scale "$((scale * 2))" --accelerators 2 "${sized[@]}" # 200 MB/s: two cores carry that over links
    run train --workload resnet50 --scale "$((scale > 100 ? scale : 1))" "${sized[@]}"
    run scale --servers "$servers" --clients "$clients" --link "$link" --seconds "$seconds"
done
run limits --net all --only memory,rpc,target,fuse-rpc
"$bench" report --title "aifs: measured" --out "$page" "$place"/runs/*.json
echo "$page"
