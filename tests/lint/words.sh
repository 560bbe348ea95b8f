#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No notes to self in what is called done; no test waits by the clock; every source file names its licence.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

# Assembled, so that this file does not find itself.
notes="TO""DO|FIX""ME|X""XX"

lint_all_files | tr '\n' '\0' | xargs -0 -r grep -HnIwE "$notes" -- |
    awk -F: '{ print $1 "\t" $1 ":" $2 ": unfinished work: " $0 }' | lint_collect

# C: calls, not the word in a comment. Shell: the command.
lint_c_files | grep '^tests/' | tr '\n' '\0' | xargs -0 -r grep -HnE '\b(u|nano|clock_nano)?sleep[ ]*\(' -- |
    awk -F: '{ print $1 "\t" $1 ":" $2 ": a test waits for an event or moves a virtual clock, it does not sleep" }' | lint_collect
lint_scripts | grep '^tests/' | tr '\n' '\0' | xargs -0 -r grep -HnE '(^|[;&|({]|\b(do|then|else|while|until)\b)[ 	]*u?sleep[ 	]+[^=]' -- |
    awk -F: '{ print $1 "\t" $1 ":" $2 ": a test waits for an event, it does not sleep" }' | lint_collect

sources=$({ lint_c_files; lint_scripts; lint_all_files | grep -E '(^|/)meson\.build$|\.proto$'; } | sort -u)
{
    awk '{ print $0 ":0:" }' <<<"$sources"
    tr '\n' '\0' <<<"$sources" | xargs -0 -r grep -Hnm1 'SPDX-License-Identifier: Apache-2.0' --
} | awk -F: '$2 == 0 { source[$1] = 1; next } $2 <= 3 { delete source[$1] }
    END { for (f in source) print f "\t" f ":1: no SPDX line" }' | lint_collect
lint_finish
