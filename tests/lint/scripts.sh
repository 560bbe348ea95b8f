#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script passes shellcheck.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

command -v shellcheck >/dev/null || lint_skip "shellcheck is not installed"
lint_scripts | while IFS= read -r f; do
    # SC2015: "test && yes || fail" reads well where fail ends the script. SC2119, SC2120: arguments may be optional.
    shellcheck -x -P SCRIPTDIR:. -e SC2015,SC2119,SC2120 -f gcc "$f" </dev/null | awk -v f="$f" '{ print f "\t" $0 }'
done | lint_collect
lint_finish
