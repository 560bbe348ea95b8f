#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# plants.sh ROOT [NAME ...]: is every bug of tests/sim/plants found within 1,000 seeds? Each is applied to a copy of the tree, which is built and run.
# Without --long it only sees that they still fit the code: whether they are found takes minutes.
set -u
root=$1
shift
command -v patch >/dev/null || { echo "patch is missing"; exit 77; }
[ $# -gt 0 ] || set -- "$root"/tests/sim/plants/*.patch
if [ -z "${AIFS_TEST_LONG:-}" ]; then
    unfit=
    for p; do
        name=$(basename "$p" .patch)
        patch -d "$root" -p1 -s -f --dry-run <"$root/tests/sim/plants/$name.patch" >/dev/null || unfit+=" $name"
    done
    [ -z "$unfit" ] || { echo "of $# plants these do not fit the code any more:$unfit" && exit 1; }
    echo "part of --long; all $# plants fit the code"
    exit 77
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/aifs-plants.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
unset AIFS_TEST_LONG # 1,000 seeds, not all of them
git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf - | tar -C "$dir" -xf - || exit 1
if ! meson setup "$dir/build" "$dir" >"$dir/log" 2>&1 || ! ninja -C "$dir/build" tests/sim/sim >"$dir/log" 2>&1; then
    tail -20 "$dir/log"
    exit 1
fi
failed=0
for p; do
    name=$(basename "$p" .patch)
    plant=$root/tests/sim/plants/$name.patch
    if ! patch -d "$dir" -p1 -s -f <"$plant" || ! ninja -C "$dir/build" tests/sim/sim >"$dir/log" 2>&1; then
        echo "$name: does not fit the code any more"
        exit 1
    fi
    timeout 300 "$dir/build/tests/sim/sim" --seeds 1000 >"$dir/out" 2>&1
    case $? in
    0) echo "$name: NOT FOUND" ;;
    124) echo "$name: not found in 300 s" ;;
    *) found=$(grep '^sim: seed' "$dir/out" | tail -1) && echo "$name: $found" ;;
    esac
    grep -q '^sim: seed' "$dir/out" || failed=1
    patch -d "$dir" -p1 -s -R <"$plant" || exit 1
done
exit $failed
