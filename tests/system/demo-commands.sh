#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo up twice, after a kill and beside what hangs, two demos side by side, down and up with the data, purge that leaves nothing.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
echo data >"$M/f" && head -c 5000000 /dev/urandom >"$M/big"
sum=$(sha256sum <"$M/big")
pid=$(daemon_pid mds)
expect "up a second time" "$ADMIN" -q demo up --dir "$C"
[ "$(daemon_pid mds)" = "$pid" ] || fail "the second up restarted the mds"
# what up says is so when it says it: what was killed has been heard of again, and what was found has answered
for d in oss1 mds; do
    kill_daemon $d && start_again
    expect "all is well after $d was killed" "$ADMIN" -q status
done
mount=$(pgrep -f "aifs-mount .* $M ")
[ "$("$ADMIN" --json demo status --dir "$C" | jq -r '.items[] | select(.daemon == "mount1") | "\(.pid) \(.log)"')" = "$mount $C/mount1.log" ] || fail "the process and log of a mount: $("$ADMIN" demo status --dir "$C")"
for d in "oss1 $(daemon_pid oss1) $C/oss1/log" "$M $mount $C/mount1.log"; do
    read -r name hung log <<<"$d"
    kill -STOP "$hung"
    "$ADMIN" --timeout 3s demo up --dir "$C" >"$T/said" 2>&1
    [ $? = 3 ] || fail "up while $name hangs: $(cat "$T/said")"
    grep -q "$name (process $hung) does not answer: see $log" "$T/said" || fail "up while $name hangs says: $(cat "$T/said")"
    grep -Eq "waiting for (the mount )?$name \(process $hung\).* to answer; its log is $log" "$T/said" || fail "up does not say what it waits for: $(cat "$T/said")"
    refuse "status while $name hangs" 3 " silent +$hung " "$ADMIN" --timeout 1s demo status --dir "$C"
    kill -CONT "$hung"
done
kill -STOP "$(daemon_pid mds)"
refuse "status while the mds hangs" 3 "^mds +silent +$(daemon_pid mds) " "$ADMIN" --timeout 1s demo status --dir "$C"
refuse "the mds hangs" 7 "the metadata server is process $(daemon_pid mds); see $C/mds/log" "$ADMIN" --timeout 3s demo up --dir "$C"
kill -CONT "$(daemon_pid mds)"
expect "nothing hangs any more" "$ADMIN" -q demo up --dir "$C"
expect "status says so" "$ADMIN" -q --timeout 60s demo status --dir "$C"
pid=$(daemon_pid mds)
refuse "another shape" 5 'oss' "$ADMIN" demo up --dir "$C" --oss 3
mkdir "$T/mnt-b" "$T/full" && echo mine >"$T/full/file"
refuse "up with a mount that would hide files" 5 "$T/full is not empty" "$ADMIN" demo up --dir "$T/b" --oss 1 --mount "$T/full"
refuse "a mount that would hide files" 5 "$T/full is not empty.*-o nonempty" "$ADMIN" demo mount --dir "$C" "$T/full"
[ "$(cat "$T/full/file")" = mine ] || fail "it was mounted all the same"
expect "a mount that may hide files" "$ADMIN" -q demo mount --dir "$C" -o nonempty "$T/full"
[ ! -e "$T/full/file" ] && [ -e "$T/full/f" ] || fail "it is not mounted"
expect "it goes" "$ADMIN" -q demo umount --dir "$C" "$T/full"
[ "$(cat "$T/full/file")" = mine ] || fail "what was hidden is gone"
expect "a second demo beside it" "$ADMIN" -q demo up --dir "$T/b" --oss 1 --mount "$T/mnt-b"
echo other >"$T/mnt-b/f"
[ "$(cat "$M/f")" = data ] || fail "the demos share data"
# inode numbers of one mean nothing in the other
mkdir "$T/mnt-b/tree" && head -c 200000 /dev/zero >"$T/mnt-b/large"
for what in "--yes rmtree $T/mnt-b/tree" "file where $T/mnt-b/large" "file locks $T/mnt-b/large"; do
    # shellcheck disable=SC2086 # several words
    refuse "$what with the first's configuration" 2 "in the file system of another cluster" "$ADMIN" $what
done
expect "removed with its own" "$ADMIN" --config "$T/b/admin.conf" -q --yes rmtree "$T/mnt-b/tree"
[ ! -e "$T/mnt-b/tree" ] || fail "the tree is still there"
expect "the second goes" "$ADMIN" -q demo down --dir "$T/b" --purge
[ ! -e "$T/b" ] || fail "purge leaves $T/b"
expect "down" "$ADMIN" -q demo down --dir "$C"
pgrep -f "$C/" >/dev/null && fail "processes are left: $(pgrep -af "$C/")"
grep -q " $M " /proc/self/mountinfo && fail "$M is still mounted"
refuse "status while it is down" 7 'refused|unreachable|time' "$ADMIN" --timeout 2s status
start_again
[ "$(cat "$M/f")" = data ] && [ "$(sha256sum <"$M/big")" = "$sum" ] || fail "the data did not come back"
for d in mds oss1 oss2; do
    tr '\0' ' ' <"/proc/$(daemon_pid "$d")/cmdline" | grep -qF "$C" || fail "the command line of $d does not name its folder"
done
# options of a mount are remembered, a dead one is mounted again, what was made for it goes with it
expect "a read-only mount" "$ADMIN" -q demo mount --dir "$C" -o ro "$T/ro/"
refuse "other options while it is mounted" 5 'other options' "$ADMIN" demo mount --dir "$C" -o noexec "$T/ro"
stat -c %i "$T/ro" >/dev/null # what the kernel has cached outlives the daemon
pid=$(pgrep -f "aifs-mount .* $T/ro ") && kill -KILL "$pid" && tail -s 0.02 --pid="$pid" -f /dev/null
dead() { ! stat "$T/ro" >/dev/null 2>&1; }
expect "the mount is dead" wait_for 10 dead
refuse "status shows it" 3 'dead +- +- +/.*/ro' "$ADMIN" demo status --dir "$C"
start_again
[ "$(cat "$T/ro/f")" = data ] || fail "a dead mount is not mounted again"
touch "$T/ro/new" 2>/dev/null && fail "the options of the mount are forgotten"
expect "status shows nothing missing" "$ADMIN" -q --timeout 60s demo status --dir "$C"
cp "$C/demo.json" "$T/demo.json" # as `demo up` leaves it that is killed before it has noted the ports
jq '.mds_port = 0 | .oss_ports = [.oss_ports[] | 0]' "$T/demo.json" >"$C/demo.json"
[ "$("$ADMIN" --json demo status --dir "$C" | jq -r '.items[] | select(.daemon == "oss1").port')" = "$(cat "$C/oss1/run/port")" ] || fail "the port of a daemon that runs: $("$ADMIN" demo status --dir "$C")"
cp "$T/demo.json" "$C/demo.json"
expect "the mount goes" "$ADMIN" -q demo umount --dir "$C" "$T/ro"
[ ! -e "$T/ro" ] || fail "the mount point that was made for it stays"
# a mount that is in use stays, and it is told by whom; one that cannot write back says what it waits for, and what is lost
is_tail() { [ "$(cat "/proc/$1/comm")" = tail ]; } # it is a shell first
(cd "$M" && exec tail -f /dev/null) &
user=$!
expect "somebody stands there" wait_for 30 is_tail "$user"
refuse "down while a mount is in use" 5 "used by process $user .tail." "$ADMIN" demo down --dir "$C"
[ "$(cat "$M/f")" = data ] || fail "the refused down has stopped something"
kill "$user" && wait "$user" 2>/dev/null
# one that has not noticed that it is unmounted: the next mount gets its device number, and is another all the same
expect "a mount" "$ADMIN" -q demo mount --dir "$C" "$T/stopped"
stopped=$(pgrep -f "aifs-mount .* $T/stopped ") && kill -STOP "$stopped" || fail "no daemon of $T/stopped"
expect "it is unmounted" umount -i -l "$T/stopped"
hasty=("$T/hasty2" "$T/hasty") writers=()
for m in "${hasty[@]}"; do
    expect "a mount that gives up soon" "$ADMIN" -q demo mount --dir "$C" -o umount_timeout=1 "$m"
    head -c 1000000 /dev/zero >"$m/unwritten.${m##*/}"
done
expect "a mount that will be in use" "$ADMIN" -q demo mount --dir "$C" "$T/busy"
(cd "$T/busy" && exec tail -f /dev/null) &
user=$!
expect "somebody stands there" wait_for 30 is_tail "$user"
kill_daemon oss1 && kill_daemon oss2
for m in "${hasty[@]}"; do
    (
        exec 3>>"$m/unwritten.${m##*/}" && printf unwritten >&3 && exec tail -f /dev/null
    ) &
    writers+=($!)
done
begun() { # MOUNT: it has taken more than the first million of bytes
    local log
    log=$(grep -lx ".* is mounted on $1" "$C"/mount*.log) && curl -sf "http://127.0.0.1:$(sed -n 's/.*metrics at port //p' "$log")/metrics" |
        awk '$1 == "aifs_client_write_bytes_total" { bytes = $2 } END { exit bytes <= 1000000 }'
}
for i in 0 1; do # who is killed closes what it has open, and that waits for no server
    expect "a write that no server takes" wait_for 30 begun "${hasty[i]}"
    kill -KILL "${writers[i]}" && wait "${writers[i]}" 2>/dev/null
done
# somebody listens where the daemon might: its word is not taken (in $T: whatever comes, it ends with the test)
(cd "$T" && exec python3 -c 'import os, signal, socket, sys
os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
s.bind("\0aifs-mount/" + sys.argv[1] + "/ffffffffffffffff")
s.listen()
signal.pause()' "$(awk -v at="$T/hasty2" '$5 == at { print $3 }' /proc/self/mountinfo)") &
liar=$!
expect "somebody listens" wait_for 30 grep -q 'aifs-mount/.*/ffffffffffffffff' /proc/net/unix
refuse "an unmount that gives up" 3 'gave up writing back; [1-9][0-9]* bytes (are lost|were under way)' "$ADMIN" demo umount --dir "$C" "$T/hasty2"
kill "$liar" && wait "$liar" 2>/dev/null
refuse "it is gone" 4 'no such file' "$ADMIN" demo umount --dir "$C" "$T/hasty2"
kill -CONT "$stopped"
expect "it was unmounted" "$ADMIN" -q demo umount --dir "$C" "$T/stopped"
for again in first second; do # all mounts are looked at before the first one goes, every time
    refuse "down, the $again time, while the last mount is in use" 5 "busy is used by process $user .tail." "$ADMIN" demo down --dir "$C" --purge
    [ -e "/proc/$(daemon_pid mds)" ] || fail "a refused down has stopped something"
    for m in "$M" "$T/hasty"; do grep -q " $m " /proc/self/mountinfo || fail "a refused down has unmounted $m"; done
done
kill "$user" && wait "$user" 2>/dev/null
"$ADMIN" -q demo umount --dir "$C" "$T/hasty" >/dev/null 2>&1 # what it had to write may have been given up long ago
grep -q " $T/hasty " /proc/self/mountinfo && fail "$T/hasty is still mounted"
"$ADMIN" demo down --dir "$C" >"$T/said" 2>&1 || fail "down without servers: $(cat "$T/said")"
grep -q 'stopped: oss1, oss2. What mounts still have to write' "$T/said" || fail "down does not name the servers that are stopped: $(cat "$T/said")"
start_again
expect "the mount that was in use goes" "$ADMIN" -q demo umount --dir "$C" "$T/busy"
# a daemon that takes what it is asked and never answers: who asks cannot even be killed, and nobody waits for that
cat >"$T/mute.py" <<'P'
import ctypes, os, struct, sys
dev = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"mute", sys.argv[1].encode(), b"fuse.aifs", 0, f"fd={dev},rootmode=40000,user_id=0,group_id=0".encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
while True:
    request = os.read(dev, 1 << 20)
    opcode, unique = struct.unpack_from("<IQ", request, 4)
    if opcode == 26: # FUSE_INIT
        os.write(dev, struct.pack("<IiQ", 16 + 64, 0, unique) + struct.pack("<IIIIHHIIHHI28x", 7, 31, 4096, 0, 0, 0, 4096, 1, 1, 0, 0))
    elif opcode == 17: # FUSE_STATFS
        open(sys.argv[2], "w").close()
P
(cd "$T" && exec python3 "$T/mute.py" "$M" "$T/asked") &
mute=$!
expect "something else is mounted there" wait_for 30 grep -q " $M .* fuse.aifs mute " /proc/self/mountinfo
refuse "up with a mount that never answers" 3 "the mount $M .* does not answer" timeout -k 1 100 "$ADMIN" --timeout 1s demo up --dir "$C"
[ -e "$T/asked" ] || fail "nobody has asked"
kill "$mute" && wait "$mute" 2>/dev/null
expect "it goes" wait_for 30 umount -i "$M" # when those who have asked have let go of it
# a demo takes no folder that others use, and purge removes nothing of others
mkdir "$T/used" && echo mine >"$T/used/file"
refuse "a folder with files" 5 'other files' "$ADMIN" demo up --dir "$T/used"
[ "$(ls "$T/used")" = file ] || fail "a refused demo leaves something: $(ls "$T/used")"
refuse "up with a mount that is refused" 5 "/etc is not empty" "$ADMIN" demo up --dir "$T/none" --mount /etc
refuse "up with a mount on a file" 5 "$T/used/file is not a directory" "$ADMIN" demo up --dir "$T/none" --mount "$T/used/file"
mkdir "$T/none" && refuse "up in a directory that is there, with a mount that is refused" 5 "/etc is not empty" "$ADMIN" demo up --dir "$T/none" --mount /etc
expect "it is as empty as it was" rmdir "$T/none"
for odd in 'a,b' 'a"b' 'a b' $'a\nb' 'a\b' ' ' 'b '; do # what configuration files and mount options would take for something else
    for place in "--dir $odd" "--mount $odd" "--targets-dir $odd" "--dir $odd/"; do
        [ "${place%% *}" = --dir ] && dir=() || dir=(--dir "$T/none")
        refuse "up $place" 2 'demo: the path ".*" has (a|the) .* in it' "$ADMIN" demo up "${dir[@]}" "${place%% *}" "$T/${place#* }"
        refuse "up $place, not made here" 2 'demo: the path ".*" has (a|the) .* in it' env -C "$T" "$ADMIN" demo up "${dir[@]}" "${place%% *}" "${place#* }"
    done
    refuse "mount $odd" 2 'demo: the path ".*" has (a|the) .* in it' "$ADMIN" demo mount --dir "$C" "$T/$odd"
    [ ! -e "$T/$odd" ] || fail "a path that was refused has been made: $odd"
done
refuse "no such parent" 4 'nowhere/at/all: no such file' "$ADMIN" demo up --dir "$T/none" --mount "$T/nowhere/at/all"
refuse "a wrong size" 2 'not a size' "$ADMIN" demo up --dir "$T/none" --capacity x
refuse "no room for anything" 2 'at least 32Mi for each target, not "1"' "$ADMIN" demo up --dir "$T/none" --capacity 1
refuse "no demo" 4 'no demo' "$ADMIN" demo status --dir "$T/none"
[ ! -e "$T/none" ] || fail "a refused demo makes its folder"
mkdir "$T/b" "$T/outside"
"$ADMIN" demo up --dir "$T/c" --oss 1 --targets 2 --targets-dir "$T/c/data" --mount "$T/c/mnt" | grep -q ': 1 MDS, 1 OSS, 2 targets$' || fail "up does not say what there is"
expect "a target elsewhere" "$ADMIN" -q --config "$T/c/admin.conf" target add --node oss1 --path "$T/outside"
"$ADMIN" demo up --dir "$T/c" | grep -q ': 1 MDS, 1 OSS, 3 targets$' || fail "up does not count the target that was added"
"$ADMIN" demo down --dir "$T/c" --purge >"$T/said" 2>&1 || fail "purge: $(cat "$T/said")"
grep -q "warning: $T/outside, a target that was added to oss1, .*: it stays, with its data" "$T/said" || fail "purge does not name the target that stays: $(cat "$T/said")"
[ ! -e "$T/c" ] || fail "purge leaves $(find "$T/c")" # with the mount and the targets that were in it
[ -s "$T/outside/target" ] || fail "purge takes a directory that is not the demo's"
# an up that fails tells what stays, and how it is gone on with, or removed
mkdir "$T/nobin" && cp "$ADMIN" "$T/nobin/aifs-admin" && ln -s "$AIFS_BUILD/mds/aifs-mds" "$T/nobin/aifs-mds"
"$T/nobin/aifs-admin" demo up --dir "$T/none" --oss 1 >"$T/said" 2>&1
[ $? = 4 ] || fail "up without a program: $(cat "$T/said")"
grep -q "stays in $T/none, and servers that have started go on running: .*demo up --dir $T/none tries .*demo down --purge --dir $T/none removes it" "$T/said" || fail "up does not tell what stays: $(cat "$T/said")"
"$ADMIN" --timeout 60s demo status --dir "$T/none" | grep -Eq '^mds +running ' || fail "the mds does not run: $("$ADMIN" demo status --dir "$T/none")"
refuse "another up that fails" 4 'servers that have started go on running: .*; the data stays' "$T/nobin/aifs-admin" demo up --dir "$T/none"
expect "what was told" "$ADMIN" -q demo down --purge --dir "$T/none"
[ ! -e "$T/none" ] || fail "purge leaves $(find "$T/none")"
# Servers that insist on a transport, which these commands do not use.
expect "targets in a shared folder" "$ADMIN" -q demo up --dir "$T/b" --oss 1 --net shm --targets-dir "$T/used" --mount "$T/made"
expect "they are asked all the same" "$ADMIN" -q demo up --dir "$T/b"
echo mine >"$T/b/file"
expect "purge" "$ADMIN" -q demo down --dir "$T/b" --purge
[ "$(cat "$T/used/file" "$T/b/file")" = $'mine\nmine' ] || fail "purge removes files of others"
[ "$(find "$T/used" "$T/b" -mindepth 1 | wc -l)" = 2 ] || fail "purge leaves: $(find "$T/used" "$T/b")"
[ ! -e "$T/made" ] || fail "purge leaves the mount point it has made"
# who makes a demo is killed while its servers start: they are known, can be stopped, and another up goes on
mkfifo "$T/gate" && cat >"$T/mds" <<'SH'
#!/bin/bash
exec 3<"$GATE" # until the test lets it go on
exec "$REAL_MDS" "$@"
SH
chmod +x "$T/mds"
mkdir "$T/bin" "$T/half" && cp "$ADMIN" "$T/bin/aifs-admin" && cp "$T/mds" "$T/bin/aifs-mds" && ln -s "$AIFS_BUILD/oss/aifs-oss" "$T/bin/aifs-oss"
GATE=$T/gate REAL_MDS=$AIFS_BUILD/mds/aifs-mds "$T/bin/aifs-admin" demo up --dir "$T/half" --oss 1 >/dev/null 2>&1 &
up=$!
expect "the mds is being started" wait_for 30 test -s "$T/half/mds/run/started"
kill -KILL "$up" && wait "$up" 2>/dev/null
half=$(cat "$T/half/mds/run/started")
"$ADMIN" demo status --dir "$T/half" | grep -Eq "^mds +starting +$half " || fail "a server that has begun is not known: $("$ADMIN" demo status --dir "$T/half")"
: >"$T/gate"
expect "up goes on" "$ADMIN" -q demo up --dir "$T/half"
[ "$(daemon_pid ../half/mds)" = "$half" ] || fail "the server that was starting is another now"
expect "it is whole" "$ADMIN" -q --config "$T/half/admin.conf" status
expect "down" "$ADMIN" -q demo down --dir "$T/half"
pgrep -f "$T/half/" >/dev/null && fail "down leaves $(pgrep -af "$T/half/")"
expect "up after that" "$ADMIN" -q demo up --dir "$T/half"
expect "purge of it" "$ADMIN" -q demo down --dir "$T/half" --purge
[ ! -e "$T/half" ] || fail "purge leaves $(find "$T/half")"
# a server outlives its folder, or what says there which process it is: it is stopped all the same
expect "one whose folder is lost" "$ADMIN" -q demo up --dir "$T/lost" --oss 1
lost=$(cat "$T/lost/oss1/run/pid") && rm -r "$T/lost/oss1/run"
expect "up starts it again" "$ADMIN" -q demo up --dir "$T/lost"
grep -qz . "/proc/$lost/cmdline" 2>/dev/null && fail "up lets the server $lost run beside another"
cp "$T/lost/demo.json" "$T/demo.json" && echo '{' >"$T/lost/demo.json"
for command in up status "down --purge"; do
    # shellcheck disable=SC2086
    refuse "$command of one that is damaged" 1 "demo.json is damaged, .*pgrep -af $T/lost/" "$ADMIN" demo $command --dir "$T/lost"
done
cp "$T/demo.json" "$T/lost/demo.json"
lost=$(cat "$T/lost/oss1/run/pid") && rm -r "$T/lost/oss1"
expect "purge of it" "$ADMIN" -q demo down --dir "$T/lost" --purge
pgrep -f "$T/lost/" >/dev/null && fail "purge leaves $(pgrep -af "$T/lost/")"
[ ! -e "$T/lost" ] || fail "purge leaves $(find "$T/lost")"
find /run/aifs -lname "$T/b/*" 2>/dev/null | grep . && fail "purge leaves an entry in /run/aifs"
true
