#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The checks themselves: each finds the mistake planted for it in a small tree, and nothing in the tree without it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 1
out=$(mktemp) || exit 1
trap 'rm -rf "$tree" "$out"' EXIT
failed=0

fresh() {
    rm -rf "$tree"
    mkdir -p "$tree"/{common/base,common/net,proto,mds/store,oss,client,tools,tests/unit,tests/lint,build/x}
    cp "$here/../../.clang-format" "$tree/"
    put common/base/a.h '#include <stdint.h>'
    put mds/b.c '#include "common/base/a.h"' '#include "proto/p.h"'
    put build/x/junk.c '#include "nonsense.h"'
}

# put PATH LINE...: a file with an SPDX line in front.
put() {
    local path=$tree/$1
    shift
    case $path in
    *.[ch]) printf '%s\n' '/* SPDX-License-Identifier: Apache-2.0 */' "$@" >"$path" ;;
    *) printf '%s\n' '#!/bin/bash' '# SPDX-License-Identifier: Apache-2.0' "$@" >"$path" ;;
    esac
}

# expect STATUS CHECK [PATTERN in its output]
expect() {
    local rc
    bash "$here/$2.sh" "$tree" >"$out" 2>&1
    rc=$?
    if [ "$rc" = 77 ]; then
        echo "$2: skipped here"
    elif [ "$rc" != "$1" ] || { [ -n "${3:-}" ] && ! grep -qE -- "$3" "$out"; }; then
        echo "line ${BASH_LINENO[0]}: $2 gave $rc, expected $1 and \"${3:-}\":"
        cat "$out"
        failed=1
    fi
}

many() {
    local i
    for ((i = 0; i < $1; i++)); do echo "$2"; done
}

fresh
for check in layering sizes format scripts words; do expect 0 "$check"; done

# Layering: each edge that must not be.
layer() {
    fresh
    put "$1" "#include $2"
    expect 1 layering "$1:2: .*$3"
}
layer common/base/x.c '"proto/p.h"' 'common/ must not include proto/'
layer proto/x.c '"mds/m.h"' 'proto/ must not include mds/'
layer mds/x.c '"oss/o.h"' 'mds/ must not include oss/'
layer oss/x.c '"client/c.h"' 'oss/ must not include client/'
layer client/x.c '"mds/m.h"' 'client/ must not include mds/'
layer client/x.c '"tools/t.h"' 'client/ must not include tools/'
layer mds/x.c '"b.h"' 'from the root'
layer mds/x.c '"../oss/o.h"' 'from the root'
layer mds/x.c '"mds/store/store_int.h"' 'belongs to its own folder'
layer mds/x.c '<ucp/api/ucp.h>' 'UCX'
layer common/base/x.c '<liburing.h>' 'liburing'
layer mds/x.c '<rocksdb/c.h>' 'RocksDB'
layer client/x.c '<fuse_lowlevel.h>' 'libfuse'
layer mds/x.c '<protobuf-c/protobuf-c.h>' 'protobuf-c'
layer mds/x.c '<openssl/evp.h>' 'OpenSSL'
layer mds/x.c '<microhttpd.h>' 'libmicrohttpd'
fresh
put mds/store/ok.c '#include <rocksdb/c.h>'
put tools/ok.c '#include "mds/m.h"' '#include "client/c.h"'
put tests/unit/ok.c '#include "mds/store/store_int.h"'
expect 0 layering

# Sizes: at the limit and one past it.
fresh
many 599 'int x;' | { mapfile -t lines; put mds/long.c "${lines[@]}"; }
expect 0 sizes
echo 'int y;' >>"$tree/mds/long.c"
expect 1 sizes 'mds/long.c:1: file of 601 lines'
fresh
many 68 '    x();' | { mapfile -t lines; put mds/f.c 'static int f_long(int a,' '                  int b)' '{' "${lines[@]}" '}'; }
expect 0 sizes
sed -i '$i\    y();' "$tree/mds/f.c"
expect 1 sizes 'function f_long\(\) of 71 lines'

# Waivers: silence, need a reason, and must be needed.
echo 'sizes mds/f.c:f_long a table in disguise' >"$tree/tests/lint/waivers.txt"
expect 0 sizes
echo 'sizes mds/f.c:f_long' >"$tree/tests/lint/waivers.txt"
expect 1 sizes 'needs a reason'
fresh
echo 'sizes mds/f.c:f_long a table in disguise' >"$tree/tests/lint/waivers.txt"
expect 1 sizes 'nothing needs this waiver'

fresh
put mds/ugly.c 'int   x;'
expect 1 format 'mds/ugly.c:1: not formatted'

fresh
# shellcheck disable=SC2016
put tools/bad.sh 'rm -r $1/*'
expect 1 scripts 'SC2086'
fresh
# shellcheck disable=SC2016
put tools/nosuffix 'rm -r $1/*'
expect 1 scripts 'tools/nosuffix'

fresh
put mds/x.c "/* TO""DO: later */"
expect 1 words 'mds/x.c:2: unfinished'
fresh
put tests/unit/x.c 'static void f(void)' '{' "    usl""eep(10);" '}'
expect 1 words 'tests/unit/x.c:4: .*does not sleep'
fresh
put tests/x.sh "while true; do sl""eep 1; done"
expect 1 words 'tests/x.sh:3: .*does not sleep'
fresh
put mds/x.c '/* may sleep (see below) */' 'int mkstemp_XXXXXX;'
put tests/unit/x.c '/* the sleeper sleeps */'
expect 0 words
fresh
echo 'int x;' >"$tree/mds/x.c"
expect 1 words 'no SPDX line'

# Manual pages: a good one, one that groff complains about, one nobody installs, one that refers to nothing.
page() {
    fresh
    mkdir -p "$tree/docs/man"
    echo "install_man('man/aifs.7')" >"$tree/docs/meson.build"
    printf '%s\n' '.TH AIFS 7' '.SH NAME' 'aifs \- a file system' "$@" >"$tree/docs/man/aifs.7"
}
page
expect 0 man
page '.NONSENSE'
expect 1 man 'docs/man/aifs.7:1: .*NONSENSE'
page '.BR aifs-nothing (8)'
expect 1 man 'refers to aifs-nothing.8'
page
cp "$tree/docs/man/aifs.7" "$tree/docs/man/more.7"
expect 1 man 'docs/man/more.7:1: .*does not install'

# Pages: they may name what exists.
fresh
mkdir -p "$tree/docs"
put mds/x.c '#define MDS_THINGS_MAX 3'
# shellcheck disable=SC2016
echo 'See `mds/x.c`, `b.c`, `common/base/` and [this](limits.md): `MDS_THINGS_MAX`.' >"$tree/docs/limits.md"
expect 0 docs
# shellcheck disable=SC2016
echo 'See `mds/gone.c`.' >"$tree/docs/limits.md"
expect 1 docs 'docs/limits.md:1: there is no mds/gone.c'
echo 'See [that](gone.md).' >"$tree/docs/limits.md"
expect 1 docs 'leads nowhere'
# shellcheck disable=SC2016
echo 'At most `MDS_OTHER_MAX`.' >"$tree/docs/limits.md"
expect 1 docs 'no code has MDS_OTHER_MAX'

exit "$failed"
