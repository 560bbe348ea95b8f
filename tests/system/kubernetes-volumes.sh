#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Kubernetes driver, called as kubelet calls it: one JSON object whatever happens, every call repeatable, dead mounts replaced, nothing left behind.
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || skip "jq is not installed"
cluster_up --oss 1
expect "install" "$AIFS_SOURCE/deploy/k8s/install.sh" "$T/plugins"
driver=$T/plugins/aifs~aifs/aifs
export AIFS_K8S_RUN=$T/run AIFS_K8S_MOUNT=$T/mount.aifs AIFS_K8S_LOG=$T/k8s.log
ln -s "$MOUNT" "$AIFS_K8S_MOUNT"
source=$(awk '$1 == "mds" { print $3 }' "$AIFS_CONFIG"):/ options=keyfile=$C/key/client.key,log=$T/base.log
pods="$T/pods with space"
volume() { jq -nc --arg s "$source" --arg o "$options" --arg p "$1" --arg a "${2:-rw}" --arg c "${3:-}" \
    '{source: $s, options: $o, subpath: $p, "kubernetes.io/readwrite": $a, "kubernetes.io/fsType": "", "kubernetes.io/pod.name": "a \"pod\", {x}: \\"} + (if $c == "" then {} else {createdir: $c} end)'; }
call() { # STATUS ARGUMENT...: the reply has it, is one object, and the exit code agrees
    local want=$1 code
    shift
    "$driver" "$@" >"$T/reply" 2>&1
    code=$?
    [ "$(jq -s 'length' "$T/reply" 2>&1)" = 1 ] || fail "$1: kubelet cannot read \"$(cat "$T/reply")\""
    [ "$(jq -r .status "$T/reply")" = "$want" ] || fail "$1: $(cat "$T/reply") instead of $want; $(tail -n 5 "$AIFS_K8S_LOG")"
    [ "$code" = "$([ "$want" = Success ] && echo 0 || echo 1)" ] || fail "$1: exit status $code"
}
bases() { grep -c " $T/run/base/" /proc/self/mountinfo; }

call Success init
jq -e '.capabilities.attach == false and .capabilities.fsGroup == false' "$T/reply" >/dev/null || fail "init: $(cat "$T/reply")"
call "Not supported" attach x y
call "Not supported"

# mount, write, read elsewhere; a second volume shares the base
call Failure mount "$pods/a" "$(volume data)"
call Success mount "$pods/a" "$(volume data rw true)"
call Success mount "$pods/a" "$(volume data rw true)"
call Failure mount "$pods/a" "$(volume . rw)"
echo hello >"$pods/a/f" && [ "$(cat "$M/data/f")" = hello ] || fail "what the pod wrote is not there"
[ "$(stat -c %a "$M/data")" = 2770 ] || fail "the directory is $(stat -c %a "$M/data")"
call Success mount "$pods/b" "$(volume data ro)"
[ "$(cat "$pods/b/f")" = hello ] || fail "the second volume reads something else"
touch "$pods/b/g" 2>/dev/null && fail "read-only is not read-only"
[ "$(bases)" = 1 ] || fail "$(bases) mounts of the file system instead of 1"
findmnt -no OPTIONS "$pods/a" | grep -q nosuid || fail "no nosuid"

# statistics: bounded, of this volume, and honest about one that is not well
stats() { call Success stats "$1" && jq -e "$2" "$T/reply" >/dev/null || fail "stats $1: $(cat "$T/reply"), not $2"; }
well='.volume_condition.abnormal == false and (.usage | map(.unit) == ["BYTES", "INODES"] and all(.total >= .used and .total >= .available and .total > 0))'
stats "$pods/a" "$well"
stats "$pods/none" '.volume_condition == {"abnormal": true, "message": "nothing is mounted there"} and .usage == []'
call Failure stats

# a directory that becomes a symbolic link while a volume is mounted on it leads nowhere
mkdir "$T/outside" "$M/race"
chmod 700 "$T/outside"
(while [ ! -e "$T/raced" ]; do rm -rf "$M/race/x"; ln -s "$T/outside" "$M/race/x"; rm "$M/race/x"; mkdir "$M/race/x"; done) >/dev/null 2>&1 &
racer=$!
for _ in {1..10}; do
    "$driver" mount "$pods/race" "$(volume race/x/y rw true)" >/dev/null 2>&1
    [ "$(ls -A "$T/outside")$(stat -c %a "$T/outside")" = 700 ] || fail "a directory outside was changed: $(ls -la "$T/outside")"
    ! findmnt -no FSTYPE "$pods/race" >/dev/null || [ "$(findmnt -no FSTYPE "$pods/race")" = fuse.aifs ] || fail "something else is mounted: $(findmnt "$pods/race")"
    call Success unmount "$pods/race"
done
: >"$T/raced"
wait "$racer"

# a directory has more than one name: kubelet's own may be a symbolic link, and slashes are what they are
ln -s "$pods" "$T/linked"
mounts_of() { findmnt -nro TARGET | grep -c "^${pods// /\\\\x20}/$1\$"; }
for name in "$T/linked/d" "$pods/d" "$T/linked//d/" "$T/linked/../linked/d"; do
    call Success mount "$name" "$(volume data)"
    [ "$(mounts_of d)" = 1 ] || fail "$name: $(mounts_of d) mounts upon each other: $(findmnt -nro TARGET)"
    stats "$name" "$well"
done
call Success unmount "$T/linked/d/"
[ "$(mounts_of d)" = 0 ] || fail "unmounted by another name: it is still there"
[ ! -e "$pods/d" ] || fail "the directory of d is still there"
call Success unmount "$T/linked/d/"
call Failure unmount relative
ln -s "$pods/a" "$T/link-to-volume"
call Failure mount "$T/link-to-volume" "$(volume data)"
call Failure mount / "$(volume data)"
call Failure mount "$pods/.." "$(volume data)"

# what must not be
call Failure mount "$pods/c" "$(volume ../etc)"
call Failure mount "$pods/c" "$(volume /etc)"
ln -s /etc "$M/link"
call Failure mount "$pods/c" "$(volume link)"
call Failure mount "$pods/c" '{"source":"no server"}'
call Failure mount "$pods/c" 'not json'
call Failure mount "$pods/c" '{}'
[ ! -e "$pods/c" ] || fail "a refused volume has left its directory"

# the daemon dies: the next call for the volume makes it work again
pgrep -f -- " $T/run/base/" | xargs -r kill -9
dead() { ! timeout 5 stat -f "$pods/a" >/dev/null 2>&1; }
wait_for 10 dead || fail "the mount lives without its daemon"
stats "$pods/a" '.volume_condition == {"abnormal": true, "message": "the mount is dead: its daemon has ended"}'
call Success mount "$pods/a" "$(volume data rw true)"
[ "$(cat "$pods/a/f")" = hello ] || fail "the volume is not back"

# one whose daemon does not answer
daemon=$(pgrep -f -- " $T/run/base/")
kill -STOP "$daemon"
stats "$pods/a" '.volume_condition == {"abnormal": true, "message": "the file system does not answer: it waits for its servers"}'
kill -CONT "$daemon"
answers() { "$driver" stats "$pods/a" | jq -e "$well"; }
wait_for 30 answers || fail "it is not well again: $("$driver" stats "$pods/a")"

# unmounting: dead ones too, twice too; the last takes the base with it
call Success unmount "$pods/b"
call Success unmount "$pods/b"
[ ! -e "$pods/b" ] || fail "the directory of b is still there"
[ "$(cat "$pods/a/f")" = hello ] || fail "a went with b"
call Success unmount "$pods/a"
[ "$(bases)" = 0 ] || fail "the base stays without volumes"
[ -z "$(ls "$T/run/volume")" ] || fail "left behind: $(ls "$T/run/volume")"
