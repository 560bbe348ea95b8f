#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every scenario of aifs-bench runs on a new directory and prints rows with numbers above zero.
set -eu
bench=${1:?usage: scenarios.sh AIFS-BENCH}
dir=$(mktemp -d "${TMPDIR:-/tmp}/bench-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT

# Also from within a pipe: what is in the file counts.
fail() { echo "FAILED: $*" | tee -a "$dir/failures" >&2; }

# rows ARGUMENTS...: the names of the rows, one a line; nothing if one of them is not a positive number.
rows() {
    "$bench" --json "$@" >"$dir/out.json" || { fail "aifs-bench $*: exit $?"; return; }
    python3 - "$dir/out.json" <<'P' || fail "aifs-bench $*: $(cat "$dir/out.json")"
import json, sys
document = json.load(open(sys.argv[1]))
assert document["schema"] == "aifs.bench/1"
assert document["items"]
assert document["scenario"] and document["when"] and document["host"]["cpus"] > 0
assert isinstance(document["notes"], list) and isinstance(document["arguments"], list)
for row in document["items"]:
    assert row["unit"] in ("MB/s", "op/s", "sample/s", "%", "s"), row
    assert row["value"] > 0 or row["unit"] == "s", row
    assert row["seconds"] > 0, row
    if row["unit"] in ("MB/s", "op/s"):
        assert row["operations"] > 0, row
        assert 0 < row["p50_ns"] <= row["p95_ns"] <= row["p99_ns"] <= row["max_ns"], row
    print(row["name"])
P
}

expect() { # WHAT ROW... < names
    local what=$1 names row
    shift
    names=$(cat)
    for row; do
        grep -qxF "$row" <<<"$names" || fail "$what: no row $row in: $(tr '\n' ' ' <<<"$names")"
    done
}

refused() { # ARGUMENTS...
    if "$bench" "$@" >"$dir/out" 2>&1; then fail "aifs-bench $* was not refused"; fi
    [ -s "$dir/out" ] || fail "aifs-bench $* was refused without a word"
}

rows io --verify --size 4Mi --jobs 2 --rw write,read,randread,randwrite,mixed "$dir" |
    expect io io.write.1Mi.x2 io.read.1Mi.x2 io.randread.1Mi.x2 io.randwrite.1Mi.x2 io.mixed.1Mi.x2
rows io --verify --size 1Mi --bs 4Ki --jobs 3 --files shared --seconds 0.1 --rw randread,mixed,write "$dir" |
    expect "io of a common file" io.randread.4Ki.x3 io.mixed.4Ki.x3 io.write.4Ki.x3
rows md --size 10Ki --files 20 --jobs 2 "$dir" |
    expect md md.create md.stat md.read md.open+close md.rename md.unlink md.mkdir md.rmdir
rows md --phases stat --files 20 --shared "$dir" | expect "md of one phase" md.stat.shared
rows small --verify --files 40 --size 5000 --dirs 3 --jobs 3 "$dir" |
    expect small small.create small.read small.read-again small.unlink
rows ckpt --verify --ranks 3 --size 1Mi --bs 256Ki "$dir" |
    expect ckpt ckpt.n-n.write.x3 ckpt.n-n.read.x3 ckpt.n-1.write.x3 ckpt.n-1.read.x3 ckpt.records.write.x3 ckpt.records.read.x3
rows ckpt --layouts records --ranks 2 --size 470080 --bs 4096 "$dir" | expect "ckpt of one layout" ckpt.records.write.x2
[ "$(jq '.items | length' "$dir/out.json")" = 2 ] || fail "ckpt of one layout has other rows"
rows kv --verify --fsync --blocks 5 --min 100000 --max 1Mi --jobs 2 "$dir" | expect kv kv.put kv.get
for workload in unet3d resnet50 cosmoflow; do
    rows train --workload $workload --scale 10000 --steps 2 --batch 3 --accelerators 2 "$dir" |
        expect "train $workload" "train.$workload.prepare" "train.$workload.h100.x2" "train.$workload.h100.x2.samples" \
            "train.$workload.h100.x2.au" "train.$workload.h100.x2.wait"
    jq -e '.notes[0] | contains("1/10000 of their real size")' "$dir/out.json" >/dev/null || fail "train does not say how small its records are"
done
rows train --prepare --workload retinanet --scale 100 --steps 2 --batch 2 "$dir" | expect "train --prepare" train.retinanet.prepare
rows train --workload retinanet --scale 100 --steps 2 --batch 2 "$dir" | expect "train again" train.retinanet.b200.x1.au
jq -e '.items[] | select(.name == "train.retinanet.prepare")' "$dir/out.json" && fail "a data set that is there was made again"
rm -r "$dir"/train-*
rows net --net tcp --seconds 0.1 | expect "net tcp" net.ping.qd8.tcp net.read.1Mi.qd8.tcp net.write.1Mi.qd8.tcp
rows net --net auto --op read --bs 4Ki --depth 1 --seconds 0.1 >/dev/null
rows limits --only memory,target,rpc --net tcp --dir "$dir" --seconds 0.02 |
    expect limits memory.copy.hot memory.copy.stream crc32c.hot crc32c.stream rpc.read.1Mi.qd8.tcp target.read.1Mi
if [ "$(id -u)" = 0 ] && [ -c /dev/fuse ]; then
    rows limits --only fuse --seconds 0.02 | expect "limits of FUSE" fuse.read.1Mi.x1 fuse.create fuse-cached.read.1Mi.x4
    rows limits --only fuse-rpc --seconds 0.02 | expect "limits of FUSE over RPC" fuse-rpc-tcp.read.1Mi.x4 fuse-rpc-shm.write.1Mi.x1 fuse-rpc-shm.randread.4Ki.x8
fi
[ "$(find "$dir" -mindepth 1 -maxdepth 1 -name 'bench-*' | wc -l)" = 0 ] || fail "files were left behind: $(ls "$dir")"

mkdir "$dir/page"
for i in 1 2 3; do "$bench" --json small --files 20 --size 0 "$dir" >"$dir/page/$i.json"; done
"$bench" --json net --op ping --net tcp --seconds 0.05 >"$dir/page/4.json"
said=$("$bench" report --title 'a <page>' --out "$dir/page/r.html" "$dir"/page/*.json) || fail "report: exit $?"
[ "$said" = "$dir/page/r.html" ] || fail "report says \"$said\" instead of the name of the page"
python3 - "$dir/page/r.html" <<'P' || fail "the page of report is broken"
import html.parser, sys
page = open(sys.argv[1]).read()
assert "<title>a &lt;page&gt;</title>" in page and "3 runs" in page and "small.read-again" in page and "net.ping" in page
assert "<script" not in page and "http" not in page and "src=" not in page
assert page.count("<svg") == page.count("</svg>") == 2 and page.count("<section>") == page.count("</section>") == 2
html.parser.HTMLParser().feed(page)
P
for net in auto tcp; do # the same figure over two transports
    jq --arg net $net '.scenario = "bars" | .arguments = ["--runs", "1", "--net", $net, "--size", "4Mi"] |
        .items = [.items[0] | .name = "bar.lib.read" | .value = 80 | .limit = 100 | .limit_name = "raw RPC"]' "$dir/page/1.json" >"$dir/page/bars-$net.json"
done
"$bench" report --out "$dir/page/b.html" "$dir"/page/bars-*.json >"$dir/out" || fail "report of bars: exit $?"
for net in auto tcp; do
    grep -q "8 in flight<span class=soft>, over $net</span>.*80 %.*PASS" "$dir/page/b.html" || fail "the page does not say which transport a bar is about: $net"
done
echo '{"schema": "something else"}' >"$dir/page/5.json"
refused report --out "$dir/page/s.html" "$dir/page/5.json"
refused report --out "$dir/page/s.html" "$dir/page/missing.json"
said=$("$bench" report --out "$dir/page/s.html" "$dir/page/missing.json" 2>&1) || true
[ "$said" = "aifs-bench: $dir/page/missing.json: No such file or directory" ] || fail "a missing run: $said"
refused report --out "$dir/missing/s.html" "$dir/page/1.json"
refused report
[ ! -e "$dir/page/s.html" ] || fail "a page was written of nothing"

# Interrupted at any place: nothing is left, and the exit status is that of a signal.
interrupted() { # SIGNAL STATUS ARGUMENTS...: as soon as it has made something
    local signal=$1 want=$2 pid code=0
    shift 2
    mkdir "$dir/stop"
    timeout -k 5 120 env --default-signal=INT "$bench" "$@" "$dir/stop" >"$dir/out" 2>&1 &
    pid=$!
    until [ -n "$(find "$dir/stop" -mindepth 2)" ] || ! kill -0 "$pid" 2>/dev/null; do read -rt 0.01 <> <(:) || :; done
    pkill "-$signal" -P "$pid" || :
    wait "$pid" || code=$?
    [ "$code" = "$want" ] || fail "aifs-bench $*, interrupted: exit $code instead of $want: $(cat "$dir/out")"
    grep -q 'interrupted' "$dir/out" || fail "aifs-bench $*, interrupted, says only: $(cat "$dir/out")"
    [ -z "$(ls "$dir/stop")" ] || fail "aifs-bench $*, interrupted, leaves: $(find "$dir/stop" | head -5)"
    rm -rf "$dir/stop"
}
interrupted INT 130 io --size 64Mi --jobs 2 --seconds 100 --rw write,read
interrupted TERM 143 io --size 64Mi --bs 4Ki --jobs 2 --rw randwrite --seconds 100
interrupted INT 130 md --jobs 2 --files 1000000 --seconds 100
interrupted TERM 143 small --files 200000 --dirs 2 --size 4Ki
interrupted INT 130 ckpt --ranks 2 --size 20Gi --layouts n-n
interrupted TERM 143 kv --blocks 20000 --min 1Mi --max 4Mi
interrupted INT 130 train --workload resnet50 --scale 1 --files 1000 --steps 50

refused io "$dir/missing"
refused io --rw sideways "$dir"
refused io --size 10 "$dir"
refused io --depth 4 "$dir"
refused md --jobs 0 "$dir"
refused net --net pigeon
refused net --op dance
refused net --depth 100000
refused limits --dir "$dir/missing" --only target
refused small --dirs 0 "$dir"
refused ckpt --layouts m-n "$dir"
refused ckpt --record 7 "$dir"
refused kv --min 2Mi --max 1Mi "$dir"
refused train --workload chess "$dir"
refused train --workload resnet50 --accelerator b200 "$dir"
refused train --steps 1 "$dir"
refused sing
[ ! -e "$dir/failures" ]
