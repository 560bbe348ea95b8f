#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs.sh [ROOT]: what the pages of docs/ name exists: files and folders of the tree, links, and (limits.md) the constants of the code.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

pages=$(lint_all_files | grep -E '^(docs/([^/]+|adr/[^/]+)\.md|CONTRIBUTING\.md)$')
[ -n "$pages" ] || lint_skip "no pages under $lint_root"
files=$(mktemp) && constants=$(mktemp) || exit 1
trap 'rm -f "$files" "$constants" "$lint_found"' EXIT
lint_all_files >"$files"
lint_c_files | tr '\n' '\0' | xargs -0 -r grep -ohwE '[A-Z][A-Z0-9]*_[A-Z0-9_]+' -- | sort -u >"$constants"

# shellcheck disable=SC2086 # no path of the project has white space
awk -v list="$files" -v constants="$constants" '
    BEGIN {
        while ((getline f < constants) > 0) constant[f] = 1
        while ((getline f < list) > 0) {
            known[f] = 1
            for (rest = f; (at = index(rest, "/")) > 0; rest = substr(rest, at + 1)) {
                dir = substr(f, 1, length(f) - length(rest) + at - 1)
                known[dir] = 1
                tail[substr(rest, at + 1)] = 1 # "op_read.c" for "oss/chunk/op_read.c"
            }
        }
    }
    function finding(text) { print FILENAME "\t" FILENAME ":" FNR ": " text }
    function exists(path) {
        sub(/\/$/, "", path)
        here = FILENAME; sub(/[^\/]*$/, "", here)
        return path in known || here path in known || path in tail
    }
    {
        line = $0
        while (match(line, /`[^`]+`/)) {
            word = substr(line, RSTART + 1, RLENGTH - 2)
            line = substr(line, RSTART + RLENGTH)
            if (word ~ /^[A-Za-z0-9_.\/-]+\.(c|h|sh|md|proto)$/ && !exists(word)) finding("there is no " word)
            if (word ~ /^(common|proto|mds|oss|client|tools|tests|deploy|docs)\/[A-Za-z0-9_.\/-]+$/ && !exists(word) &&
                word !~ /^build/) finding("there is no " word)
            # what others (the kernel, the C library) define is no limit of ours
            if (FILENAME == "docs/limits.md" && word ~ /^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/ && word !~ /^(SEEK|FALLOC|RENAME|O)_/ && !(word in constant))
                finding("no code has " word)
        }
        line = $0
        while (match(line, /\]\([^)#:]+\)/)) {
            word = substr(line, RSTART + 2, RLENGTH - 3)
            line = substr(line, RSTART + RLENGTH)
            if (!exists(word)) finding("the link to " word " leads nowhere")
        }
    }' $pages | lint_collect
lint_finish
