#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every C file is as clang-format would write it. Other versions lay out some corners differently, so it is one version that counts.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"
version=14

tool=
for candidate in "clang-format-$version" clang-format; do
    if "$candidate" --version 2>/dev/null | grep -q "version $version\."; then
        tool=$candidate
        break
    fi
done
[ -n "$tool" ] || lint_skip "clang-format $version is not installed"
files=$(lint_c_files)
[ -n "$files" ] || lint_skip "no C files under $lint_root"

xargs "$tool" --style=file --dry-run <<<"$files" 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: code should be.*/\1/p' | sort -u |
    while read -r f; do printf '%s\t%s:1: not formatted: run %s -i %s\n' "$f" "$f" "$tool" "$f"; done | lint_collect
lint_finish
