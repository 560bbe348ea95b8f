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

{ lint_c_files; lint_scripts; lint_all_files | grep -E '(^|/)meson\.build$|\.proto$'; } | sort -u | while IFS= read -r f; do
    head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || printf '%s\t%s:1: no SPDX line\n' "$f" "$f"
done | lint_collect
lint_finish
