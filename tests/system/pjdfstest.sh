#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# pjdfstest as root on a mount: every sub-test passes. AIFS_PJDFSTEST is the folder where the suite was built; it is not part of this repository.
. "$(dirname "$0")/lib.sh"
[ -n "${AIFS_TEST_LONG:-}" ] || skip "takes minutes: run.sh --long"
[ -x "${AIFS_PJDFSTEST:-}/pjdfstest" ] || skip "AIFS_PJDFSTEST does not name a built pjdfstest"
[ -n "$(command -v prove)" ] || skip "no prove (perl)"
cluster_up
chmod 755 "$T" "$M"
mkdir "$M/suite"
cd "$M/suite" || exit 1
prove -r "$AIFS_PJDFSTEST/tests" >"$T/said" 2>&1 || {
    sed -n '/^Test Summary Report/,$p' "$T/said" | head -100
    fail "pjdfstest"
}
tail -2 "$T/said"
