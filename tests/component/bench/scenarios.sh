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
for row in document["items"]:
    assert row["value"] > 0 and row["seconds"] > 0 and row["operations"] > 0, row
    assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["max_ns"], row
    assert row["unit"] in ("MB/s", "op/s"), row
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
rows net --net tcp --seconds 0.1 | expect "net tcp" net.ping.qd8.tcp net.read.1Mi.qd8.tcp net.write.1Mi.qd8.tcp
rows net --net auto --op read --bs 4Ki --depth 1 --seconds 0.1 >/dev/null
rows limits --only memory,target,rpc --net tcp --dir "$dir" --seconds 0.02 |
    expect limits memory.copy.hot memory.copy.stream crc32c.hot crc32c.stream rpc.read.1Mi.qd8.tcp target.read.1Mi
if [ "$(id -u)" = 0 ] && [ -c /dev/fuse ]; then
    rows limits --only fuse --seconds 0.02 | expect "limits of FUSE" fuse.read.1Mi.x1 fuse.create fuse-cached.read.1Mi.x4
fi
[ "$(find "$dir" -mindepth 1 -maxdepth 1 -name 'bench-*' | wc -l)" = 0 ] || fail "files were left behind: $(ls "$dir")"

refused io "$dir/missing"
refused io --rw sideways "$dir"
refused io --size 10 "$dir"
refused io --depth 4 "$dir"
refused md --jobs 0 "$dir"
refused net --net pigeon
refused net --op dance
refused net --depth 100000
refused limits --dir "$dir/missing" --only target
refused sing
[ ! -e "$dir/failures" ]
