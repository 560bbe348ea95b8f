#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No file over 600 lines, no function over 70 (its braces included). A function is what stands between a "{" and a "}" in
# the first column: that is how clang-format lays out ours.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

files=$(lint_c_files)
[ -n "$files" ] || lint_skip "no C files under $lint_root"

# shellcheck disable=SC2086 # no path of the project has white space
awk -v file_max=600 -v function_max=70 '
    function end_of_file() {
        if (path != "" && lines > file_max) print path "\t" path ":1: file of " lines " lines, " file_max " is the limit"
    }
    FNR == 1 { end_of_file(); path = FILENAME; name = ""; start = 0 }
    { lines = FNR }
    /^[A-Za-z_].*\(/ {
        name = $0
        if (name ~ /^(START_TEST|END_TEST)/) sub(/^[A-Z_]*\(/, "", name)
        else sub(/\(.*/, "", name)
        sub(/[^A-Za-z0-9_]*$/, "", name)
        sub(/.*[^A-Za-z0-9_]/, "", name)
    }
    /^{/ { start = FNR }
    /^}/ && start {
        length_ = FNR - start + 1
        if (length_ > function_max)
            print path ":" name "\t" path ":" start ": function " name "() of " length_ " lines, " function_max " is the limit"
        start = 0
    }
    END { end_of_file() }' $files | lint_collect
lint_finish
