#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples of libaifs compile with nothing but its header, and do what they say.
. "$(dirname "$0")/lib.sh"
command -v "${CC:=cc}" >/dev/null || skip "no C compiler"
cluster_up --oss 2
source=$(awk '$1 == "mds" { print $3 }' "$AIFS_CONFIG"):/ key=$C/key/client.key
export LD_LIBRARY_PATH=$AIFS_BUILD/client/lib
for example in "$AIFS_SOURCE"/client/lib/examples/*.c; do
    name=$(basename "$example" .c)
    expect "$name compiles" "$CC" -Wall -Wextra -Werror -O1 -o "$T/$name" "$example" -I"$AIFS_SOURCE/client/lib" -L"$AIFS_BUILD/client/lib" -laifs
done

head -c 3000001 /dev/urandom >"$M/data" && sync "$M/data"
"$T/read_file" "$source" "$key" /data >"$T/data" || fail "read_file"
expect "the same bytes" cmp "$M/data" "$T/data"
refuse "a file that is not there" 1 "No such file" "$T/read_file" "$source" "$key" /none
expect "batch" "$T/batch" "$source" "$key" /batch
[ "$(stat -c %s "$M/batch")" = $((16 << 20)) ] || fail "what batch wrote is not there"
"$T/workers" "$source" "$key" /data 7 >"$T/sums" || fail "workers"
[ "$(awk '{ n += $1 } END { print n, NR }' "$T/sums")" = "3000001 7" ] || fail "the workers have read something else: $(cat "$T/sums")"
