#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh [--dir DIR] [--mount DIR]: from a clean machine to a mounted aifs in one command.
#
# Installs the packages, builds, installs under /usr/local, starts a cluster of 1 MDS and 4 OSS on this machine (in /var/lib/aifs-demo), mounts it on /mnt/aifs and proves with real files
# that it works. Running it again is harmless. To end it: aifs-admin demo down [--purge].
set -eu
dir=/var/lib/aifs-demo mount=/mnt/aifs
usage() { sed -n '3,6s/^# \{0,1\}//p' "$0"; }
bad() {
    echo "quickstart.sh: $*; see --help" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --dir | --mount)
        case ${2-} in
        '' | --*) bad "$1 needs a value" ;;
        esac
        if [ "$1" = --dir ]; then dir=$2; else mount=$2; fi
        shift 2
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) bad "unknown argument $1" ;;
    esac
done
here=$(cd "$(dirname "$0")/.." && pwd)
for name in dir mount; do # as one stands now, and as the table of mounts has them
    path=$(realpath -ms -- "${!name}") # looks at nothing: see below
    case $path in *[[:space:][:cntrl:],\"\\]*) bad "--$name: a path with a comma, a quotation mark, a backslash, a space or a control character in it will not do: \"$path\"" ;; esac
    printf -v "$name" %s "$path"
done
cd "$here"
step() {
    doing=$1
    printf '\n== %s\n' "$1"
}
told=''
failed() { # STATUS: what a command has said is above
    [ "$1" = 0 ] || [ -n "$told" ] || echo "quickstart.sh: failed at: $doing. What is wrong is told above; running it again goes on from there" >&2
}
stopped() { # STATUS
    told=1
    echo "quickstart.sh: stopped; run it again to go on, or end what runs: aifs-admin demo down --dir $dir --purge" >&2
    exit "$1"
}
trap 'stopped 130' INT
trap 'stopped 143' TERM HUP
[ "$(id -u)" = 0 ] || {
    echo "quickstart.sh: run it as root (sudo deploy/quickstart.sh): it installs packages and mounts" >&2
    exit 1
}
[ -c /dev/fuse ] || modprobe fuse 2>/dev/null || true
[ -c /dev/fuse ] || {
    echo "quickstart.sh: this kernel offers no /dev/fuse" >&2
    exit 1
}
refuse() {
    echo "quickstart.sh: $*" >&2
    exit 1
}
holds() { [ -d "$1" ] && [ -n "$(find "$1" -mindepth 1 -maxdepth 1 ! -name "$2" -print -quit)" ]; }
[ ! -e "$dir" ] || [ -d "$dir" ] || refuse "$dir is not a directory: take another one with --dir"
[ -e "$dir/demo.json" ] || ! holds "$dir" lock || refuse "$dir holds other files: take an empty directory, or a new one, with --dir"
for path in "$dir" "$mount"; do
    [ "${path%/*}" = "$dir" ] || [ -d "${path%/*}/" ] || refuse "there is no directory ${path%/*} to make $path in"
done
# What is mounted already is not touched: its servers may be down, and a look at it would wait for them.
is_mounted() { awk -v at="$mount" '$5 == at && / - fuse\.aifs / { found = 1 } END { exit !found }' /proc/self/mountinfo; }
if [ ! -e "$dir/demo.json" ] && ! is_mounted; then
    [ ! -e "$mount" ] || [ -d "$mount" ] || refuse "$mount is not a directory: take another one with --mount"
    ! holds "$mount" lost+found || refuse "$mount is not empty, and a mount would hide what is in it: take another directory with --mount"
fi

trap 'failed $?' EXIT
step "packages"
deploy/deps.sh build

step "build"
# One at a time in this tree: who installs reads and writes the list of what goes with uninstall.
exec {turn}>>build-quickstart.turn # written to, or NFS would lock nothing
flock -n "$turn" || {
    echo "another quickstart.sh builds in $here: waiting for it"
    flock "$turn"
}
[ -e build-quickstart/build.ninja ] || said=$(meson setup build-quickstart --buildtype=release --prefix=/usr/local -Dtests=false) || {
    tail -20 <<<"$said" >&2 # meson tells what is missing on its standard output
    exit 1
}
ninja -C build-quickstart
step "install under /usr/local"
# meson notes the directories that it makes, for uninstall, but the next installation forgets them
log=build-quickstart/meson-logs/install-log.txt made=()
[ ! -e "$log" ] || mapfile -t made < <(grep '^/' "$log")
meson install -C build-quickstart --no-rebuild --quiet
for d in "${made[@]}"; do
    if [ -d "$d" ] && [ ! -L "$d" ] && ! grep -qxF -- "$d" "$log"; then printf '%s\n' "$d" >>"$log"; fi
done
ldconfig
exec {turn}<&- # servers live on
hash -r

step "a cluster of 1 MDS and 4 OSS in $dir, mounted on $mount"
/usr/local/bin/aifs-admin demo up --oss 4 --dir "$dir" --mount "$mount"

step "proof with real files"
for old in "$mount"/.quickstart-proof.[0-9]*; do # of a run that was killed
    [ ! -d "$old" ] || [ -d "/proc/${old##*.}" ] || rm -rf "$old"
done
work=$mount/.quickstart-proof.$$ job='' teller=''
mkdir "$work"
finish() {
    local status=$?
    trap '' INT TERM HUP
    [ -z "$job" ] || kill "$job" 2>/dev/null || true
    [ -z "$teller" ] || kill "$teller" 2>/dev/null || true
    wait
    rm -rf "$work"
    failed "$status"
}
trap finish EXIT
inodes() { df --output=iused "$mount" 2>/dev/null | tail -1 || true; }
tell() { # WHAT: every 10 s that it goes on
    local since=$SECONDS count='' pause
    trap - EXIT
    exec {pause}<> <(:)
    while ! read -rt 10 -u "$pause"; do
        [ "$1" != copying ] || count=", $(($(inodes) - before)) files and directories so far"
        printf '  %s: %s s%s\n' "$1" "$((SECONDS - since))" "$count"
    done
}
long() { # WHAT CMD...: a signal ends it at once
    local what=$1 status=0
    shift
    tell "$what" &
    teller=$!
    "$@" &
    job=$!
    wait "$job" || status=$?
    kill "$teller" 2>/dev/null || true
    wait "$teller" 2>/dev/null || true
    job='' teller=''
    return "$status"
}
before=$(inodes)
printf 'copying /usr/include (%s files) to %s ...\n' "$(find /usr/include -type f | wc -l)" "$mount"
long copying cp -a /usr/include "$work/tree"
printf 'comparing ...\n'
long comparing diff -r --no-dereference /usr/include "$work/tree"
printf '%s files copied and compared\n' "$(find "$work/tree" -type f | wc -l)"
printf 'writing 64 MiB ...\n'
long writing head -c 64M /dev/urandom >"$work/data"
sum=$(sha256sum <"$work/data")
sync "$work/data"
echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
[ "$(sha256sum <"$work/data")" = "$sum" ] || {
    echo "quickstart.sh: 64 MiB came back with another checksum" >&2
    exit 1
}
printf '64 MiB written, synced and read back with the same checksum; it lies on:\n'
/usr/local/bin/aifs-admin --config "$dir/admin.conf" file where "$work/data"

step "the cluster"
/usr/local/bin/aifs-admin --config "$dir/admin.conf" status
# what has to be said so that these commands mean this cluster
which="" demo=""
id_of() { "$@" --json status 2>/dev/null | sed -n 's/.*"id": "\(.*\)".*/\1/p'; }
[ "$(id_of /usr/local/bin/aifs-admin)" = "$(id_of /usr/local/bin/aifs-admin --config "$dir/admin.conf")" ] || which=" --config $dir/admin.conf"
[ "$dir" = /var/lib/aifs-demo ] || demo=" --dir $dir"
as="${SUDO_USER:+sudo }" # whoever has used it needs it again: keys are for root
cat <<TXT

aifs is mounted on $mount. Try:
  ${as}aifs-admin$which status                      the cluster on one screen
  ${as}aifs-admin$which target list                 where the data is
  ${as}aifs-admin$which top                         who keeps the servers busy, who waits for whom
  ${as}aifs-admin demo mount$demo /mnt/second      one more mount of the same cluster
  ${as}aifs-admin demo down$demo                   stop (demo up$demo brings it back with its data)
  ${as}aifs-admin demo down$demo --purge           stop and remove everything
TXT
