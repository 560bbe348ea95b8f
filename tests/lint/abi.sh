#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# abi.sh ROOT LIBRARY LIST: what programs are linked against stays. LIST (tests/lint/libaifs.abi) has the exported names with their versions: the library
# has each of them, it has no others (a new one is added to the list, under the version that brings it), and each is in the header.
library=$(realpath "$2") list=$(realpath "$3")
set -- "$1"
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"
command -v nm >/dev/null || lint_skip "nm is not installed"
has=$(mktemp) || exit 1
trap 'rm -f "$has" "$lint_found"' EXIT

nm -D --defined-only --with-symbol-versions "$library" | awk '$2 == "T" { print $3 }' | sort >"$has"
name=${list#"$lint_root"/}
{
    sort "$list" | comm -23 - "$has" | sed "s|.*|$name\t$name:1: & is no longer there: programs that use it do not start|"
    sort "$list" | comm -13 - "$has" | sed "s|.*|$name\t$name:1: & is new: add it|"
    sed 's/@.*//' "$list" | while IFS= read -r symbol; do
        grep -qw "$symbol" client/lib/aifs.h || printf '%s\t%s:1: %s is not in aifs.h\n' "$name" "$name" "$symbol"
    done
} | lint_collect
lint_finish
