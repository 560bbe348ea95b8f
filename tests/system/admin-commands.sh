#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every command gives text and one JSON document; exit codes are as documented; nothing hangs when a server is down.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --targets 2
echo x >"$M/small" && head -c 9000000 /dev/urandom >"$M/f"
for cmd in status "node list" "node show oss1" "net show" "net show oss1" "target list" "target show 1" "pool list" "pool show default" df "client list" "stripe get $M" \
    "stripe get $M/f" "file info $M/f $M/small" "file where $M/f" version; do
    # shellcheck disable=SC2086
    out=$("$ADMIN" $cmd) && [ -n "$out" ] || fail "$cmd: exit $?"
    # shellcheck disable=SC2086
    "$ADMIN" --json $cmd | jq -e '.schema and (.items | length > 0)' >/dev/null || fail "$cmd --json"
done
"$ADMIN" status | grep -q '4/4 online' || fail "status does not show 4 targets: $("$ADMIN" status)"
"$ADMIN" file where "$M/small" | grep -q inline || fail "a small file should be inline"
refuse "an unknown noun" 2 'did you mean "target"' "$ADMIN" taget list
refuse "an unknown verb" 2 'did you mean "list"' "$ADMIN" target lst
refuse "a missing target" 4 '' "$ADMIN" target show 99
refuse "a missing pool" 4 'no pool' "$ADMIN" target list --pool nope
refuse "nothing like a noun" 2 'there is no "bogus"; see aifs-admin --help' "$ADMIN" bogus
refuse "an unknown option" 2 'bogus; see aifs-admin --help' "$ADMIN" df --bogus
refuse "a storage server is asked" 1 'is an object storage server' "$ADMIN" --mds "127.0.0.1:$(cat "$C/oss1/run/port")" status
refuse "a client's key is not an admin's" 6 'status needs a key of role admin or server; .*client.key is of role client' "$ADMIN" --mds "127.0.0.1:$(cat "$C/mds/run/port")" --key-file "$C/key/client.key" status
"$ADMIN" -q key create "$T/other.server" && "$ADMIN" -q key derive "$T/other.server" admin "$T/other.key"
refuse "the key of another cluster" 6 'other.key' "$ADMIN" --mds "127.0.0.1:$(cat "$C/mds/run/port")" --key-file "$T/other.key" status
refuse "a port out of range" 2 '"127.0.0.1:99999": the port is out of range' "$ADMIN" --mds 127.0.0.1:99999 --key-file "$C/key/admin.key" status
refuse "a host without a name" 7 'cannot resolve "no\.\.host"' "$ADMIN" --mds no..host:7600 --key-file "$C/key/admin.key" status
refuse "the layout of a file with data" 5 'f has data.*stripe create' "$ADMIN" stripe set -c 1 "$M/f"
refuse "a file elsewhere" 2 '^aifs-admin: /etc/passwd: not on an aifs mount' "$ADMIN" file info /etc/passwd
for cmd in "file where" "file locks" "stripe get"; do
    # shellcheck disable=SC2086
    refuse "$cmd elsewhere" 2 '^aifs-admin: /etc/passwd: not on an aifs mount$' "$ADMIN" $cmd /etc/passwd
done
refuse "a file that the environment names" 4 'config file .*/none \(of AIFS_CONFIG\): ' env AIFS_CONFIG="$T/none" "$ADMIN" status
refuse "a file that the line names" 4 'config file .*/none: ' "$ADMIN" --config "$T/none" status
refuse "a key that the environment names" 4 '\(of AIFS_KEY_FILE\)$' env AIFS_KEY_FILE="$T/none" "$ADMIN" status
[ -z "$("$ADMIN" file info /etc/passwd 2>/dev/null)" ] || fail "file info prints a table of nothing"
refuse "nobody there, at a port that was not given" 7 '127.1.2.3:7600: connection refused' "$ADMIN" --mds 127.1.2.3 --key-file "$C/key/admin.key" --timeout 1s status
refuse "nobody there" 7 'connection refused: nobody serves there' "$ADMIN" --mds 127.0.0.1:1 --key-file "$C/key/admin.key" --timeout 1s status
expect "variables that are empty" env AIFS_CONFIG= AIFS_MDS= AIFS_KEY_FILE= AIFS_TIMEOUT= "$ADMIN" -q --config "$C/admin.conf" status
refuse "a missing server" 4 '^aifs-admin: there is no server nope$' "$ADMIN" node show nope
refuse "the way to a missing server" 4 'no server nope' "$ADMIN" net show nope
"$ADMIN" --json net show | jq -e '[.items[] | select(.type != "device")] | length == 3 and all(.state == "up" and .rtt_us > 0 and (.transport | test("^(tcp|shm|rdma)$")))' >/dev/null ||
    fail "net show: $("$ADMIN" net show)"
refuse "no time to wait" 2 'not a time' "$ADMIN" --timeout 0 status
refuse "help for an unknown noun" 2 'did you mean "target"' "$ADMIN" help targt
refuse "a relative path" 2 'absolute path' "$ADMIN" target add --node oss1 --path disk
refuse "a place that is none" 4 'on oss1 is no directory' "$ADMIN" target add --node oss1 --path "$T/none"
refuse "a place that is taken" 5 'on oss1 is not empty' "$ADMIN" target add --node oss1 --path /etc
refuse "a verb that is none" 2 'usage: aifs-admin target replace' "$ADMIN" target zzzzzz
refuse "a key in place of another" 5 'no key is overwritten' "$ADMIN" key create "$C/key/server.key"
refuse "a target twice" 5 'a target of oss1 already' "$ADMIN" target add --node oss1 --path "$C/oss1/t1"
refuse "what is no key" 1 '^aifs-admin: key file /etc/passwd: does not start with "aifs-key-1"$' "$ADMIN" key derive /etc/passwd admin "$T/no.key"
refuse "a key of a key that is none of a server" 6 'client.key is a key of role client: keys are derived from the one of role server$' "$ADMIN" key derive "$C/key/client.key" admin "$T/no.key"
[ ! -e "$T/no.key" ] || fail "a key that was refused is there"
refuse "the layout of the parent and another" 2 'inherit .* goes with nothing else' "$ADMIN" stripe set --inherit -c 2 "$M"
expect "a pool" "$ADMIN" -q pool create spare
refuse "a target of another pool" 4 '^aifs-admin: target oss1-1 is not in pool spare$' "$ADMIN" pool remove spare oss1-1
# what names hold is not sent to a terminal, and tables stay tables
odd=$M/$'a\nb\e[31m' && echo x >"$odd" && echo x >"$M/ü"
"$ADMIN" file info "$odd" "$M/ü" >"$T/said" 2>&1 && [ "$(wc -l <"$T/said")" = 3 ] || fail "a name in a table: $(cat -v "$T/said")"
LC_ALL=C grep -q '[[:cntrl:]]' "$T/said" && fail "control characters in a table: $(cat -v "$T/said")"
[ "$(LC_ALL=C.UTF-8 awk 'NR > 1 { print index($0, " 0x") }' "$T/said" | sort -u | wc -l)" = 1 ] || fail "columns that are not below each other: $(cat "$T/said")"
refuse "a name in what is said" 4 'none[?][[]31m: No such file' "$ADMIN" file info "$M/none"$'\e[31m'
"$ADMIN" --json file info "$odd" | jq -e --arg p "$odd" '.items[0].path == $p' >/dev/null || fail "--json tells another name"
rm "$odd" "$M/ü"
refuse "a wrong offset" 2 '"xx" is not an offset' "$ADMIN" file where "$M/f" xx
"$ADMIN" --json file where "$M/small" | jq -e '.items == []' >/dev/null || fail "file where --json of an inline file"
"$ADMIN" --json client list | jq -e '.items[0].address | test("^127[.]0[.]0[.]1:[0-9]+$")' >/dev/null || fail "the address of a client: $("$ADMIN" client list)"
[ -z "$("$ADMIN" stripe get /etc/passwd 2>/dev/null)" ] || fail "stripe get prints a table of nothing"
refuse "an option that is none" 2 'unknown option --bogus' "$ADMIN" --bogus status
[ "$("$ADMIN" -q fsck check)" = "" ] || fail "fsck prints a table of nothing"
# without being told, the cluster of a file is that of its mount, however many run on this machine
expect "a second cluster" "$ADMIN" -q demo up --dir "$T/b" --oss 1
if [ ! -e /etc/aifs/admin.conf ]; then
    env -u AIFS_CONFIG "$ADMIN" file where "$M/f" | grep -q oss2 || fail "file where does not find the cluster of the mount"
    refuse "who is not root" 6 'for root to see: sudo aifs-admin' env -u AIFS_CONFIG setpriv --reuid 65534 --regid 65534 --clear-groups "$ADMIN" status
    refuse "which one" 2 "config $T/b/admin.conf" env -u AIFS_CONFIG "$ADMIN" status
    gone=/run/aifs/admin.d/gone-${T##*/}.conf
    cleanup() { rm -f "$gone"; }
    ln -s "$T/gone/admin.conf" "$gone" # of a demo whose folder was removed by hand
    refuse "with one that is gone" 2 "config $T/b/admin.conf" env -u AIFS_CONFIG "$ADMIN" status
    [ ! -L "$gone" ] || fail "a link that leads nowhere stays"
    echo "mds = 127.0.0.1:1" >"$T/stopped.conf" && ln -s "$T/stopped.conf" "$gone"
    env -u AIFS_CONFIG "$ADMIN" status 2>&1 | grep -q "$T/stopped.conf" && fail "a cluster that does not run is offered"
    echo "nonsense = 1" >"$T/stopped.conf" # nobody but who has to choose is told
    env -u AIFS_CONFIG "$ADMIN" file where "$M/f" 2>&1 | grep nonsense && fail "a file that is not meant is complained of"
    refuse "which one, of one that cannot be read" 2 "config $T/stopped.conf .which cannot be read" env -u AIFS_CONFIG "$ADMIN" status
    cleanup
    refuse "no key" 2 'the key is not known: say --key-file' env -u AIFS_CONFIG "$ADMIN" --mds 127.0.0.1:1 status
    env -u AIFS_CONFIG "$ADMIN" --mds "$(sed -n 's/^mds = //p' "$T/b/admin.conf")" node list | grep -q oss1 || fail "the key of the cluster that --mds means is not taken"
fi
if [ ! -e /etc/aifs/admin.conf ]; then # also of a mount whose path the kernel's table has to escape
    mkdir "$T/m nt" && expect "a mount with a space in its path" "$MOUNT" "127.0.0.1:$(cat "$C/mds/run/port"):/" "$T/m nt" -o "keyfile=$C/key/client.key"
    env -u AIFS_CONFIG "$ADMIN" file where "$T/m nt/f" | grep -q oss2 || fail "file where does not find the cluster of a mount with a space in its path"
    expect "it is unmounted" "$MOUNT" --umount "$T/m nt"
fi
expect "it goes" "$ADMIN" -q demo down --dir "$T/b" --purge
"$ADMIN" --json client list | jq -e '.items | length > 0 and all(.state == "connected")' >/dev/null || fail "client list: $("$ADMIN" client list)"
# what is dead is said to be as soon as its connection is closed
second_mount
mounted=$(pgrep -f -- "aifs-mount .* $M2 ") && kill -KILL "$mounted" && tail -s 0.02 --pid="$mounted" -f /dev/null
gone() { "$ADMIN" --json client list | jq -e ".items[] | select(.mount == \"$M2\") | .state == \"disconnected\" and .last_seen_ns > 0" && "$ADMIN" status | grep -q '^clients  *2 (1 without a living connection'; }
wait_for 60 gone || fail "a client that died: $("$ADMIN" client list)"
kill_daemon oss2
closed() { "$ADMIN" status 2>&1 | grep -q 'server oss2: not heard of for .* s, its connection is closed'; }
wait_for 60 closed || fail "a closed connection is not shown: $("$ADMIN" status 2>&1)"
"$ADMIN" --json node list 2>/dev/null | jq -e '.items[] | select(.alias == "oss2") | .state == "unreachable"' >/dev/null || fail "node list: $("$ADMIN" node list)"
down() { "$ADMIN" --timeout 2s target list 2>/dev/null | grep -q unreachable; }
wait_for 60 down || fail "the dead server is not shown"
start=$SECONDS
"$ADMIN" --timeout 2s --json target list >"$T/json" 2>/dev/null
[ $? = 3 ] || fail "exit code with a server down"
jq -e '[.items[] | select(.state == "unreachable")] | length == 2' "$T/json" >/dev/null || fail "two targets should be unreachable"
"$ADMIN" --timeout 2s --json file where "$M/f" >"$T/json" 2>/dev/null
[ $? = 3 ] || fail "file where: exit code with a server down"
jq -e '[.items[] | select(.node == "oss2") | .chunks, .bytes] | length > 0 and all(. == null)' "$T/json" >/dev/null || fail "file where: what oss2 has is not known: $(cat "$T/json")"
jq -e '[.items[] | select(.node == "oss1") | .chunks] | length > 0 and all(. != null)' "$T/json" >/dev/null || fail "file where: what oss1 has is known"
"$ADMIN" --timeout 2s --json net show >"$T/json" 2>/dev/null
[ $? = 3 ] || fail "net show: exit code with a server down"
jq -e '[.items[] | select(.state == "unreachable").node] == ["oss2"]' "$T/json" >/dev/null || fail "net show: oss2 should be unreachable"
"$ADMIN" --timeout 2s status >/dev/null 2>&1
[ $? = 3 ] || fail "status: exit code with a server down"
[ $((SECONDS - start)) -lt 20 ] || fail "the commands hang"
# a frozen server: still no hang
kill -STOP "$(daemon_pid mds)"
start=$SECONDS
"$ADMIN" --timeout 2s status >/dev/null 2>&1
code=$?
refuse "a mount that waits" 7 'does not answer' timeout 20 "$ADMIN" --timeout 1s stripe get "$M/f"
refuse "locks on a mount that waits" 7 'does not answer' timeout 20 "$ADMIN" --timeout 1s file locks "$M/f"
kill -CONT "$(daemon_pid mds)"
[ "$code" = 7 ] || fail "a frozen mds: exit $code"
[ $((SECONDS - start)) -lt 15 ] || fail "a frozen mds makes status hang"
start_again
