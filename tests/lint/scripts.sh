#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script passes shellcheck.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

command -v shellcheck >/dev/null || lint_skip "shellcheck is not installed"
lint_scripts | while IFS= read -r f; do
    shellcheck -x -f gcc "$f" </dev/null | awk -v f="$f" '{ print f "\t" $0 }'
done | lint_collect
lint_finish
