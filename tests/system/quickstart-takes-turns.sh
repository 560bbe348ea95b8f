#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two quickstarts of one tree build and install one after the other. With a compiler of our own that refuses, so that nothing of the machine is touched.
. "$(dirname "$0")/lib.sh"
mkdir -p "$T/tree/deploy" "$T/bin"
cp "$AIFS_SOURCE/deploy/quickstart.sh" "$T/tree/deploy/"
for ours in "$T/tree/deploy/deps.sh" "$T/bin/meson"; do printf '#!/bin/sh\n' >"$ours" && chmod +x "$ours"; done
printf 'echo "no compiler today"; exit 1\n' >>"$T/bin/meson"
mkfifo "$T/gate"
flock "$T/tree/build-quickstart.turn" cat "$T/gate" & # another one, which builds
other=$!
taken() { ! flock -n "$T/tree/build-quickstart.turn" true; }
wait_for 30 taken || fail "the lock is not taken"
# (in $T: whatever comes, it ends with the test)
(cd "$T" && PATH=$T/bin:$PATH exec bash "$T/tree/deploy/quickstart.sh" --dir "$T/demo" --mount "$T/mnt2") >"$T/said" 2>&1 &
second=$!
says() { grep -q "another quickstart.sh builds in $T/tree" "$T/said"; }
wait_for 30 says || fail "the second does not wait: $(cat "$T/said")"
grep -q 'no compiler' "$T/said" && fail "the second builds beside the first: $(cat "$T/said")"
: >"$T/gate"
wait "$other"
wait "$second" && fail "it has built without a compiler"
grep -q 'no compiler today' "$T/said" || fail "the second does not go on: $(cat "$T/said")"
[ ! -e "$T/demo" ] || fail "a demo is made without a build"
