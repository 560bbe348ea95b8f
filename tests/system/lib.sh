# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # its variables are for the scripts that source it
# lib.sh: sourced by every system test. Real daemons, a real mount, all in one folder that is gone afterwards.
#
# The build is $AIFS_BUILD (meson sets it). A test is one idea; it says what it checks by the messages of `expect`. It ends with exit 0 (good), 77 (cannot run here, with the
# reason on the last line) or anything else. Everything it started is stopped by `demo down`, by pid and folder, never by name.
set -u
: "${AIFS_BUILD:?the build directory}"
AIFS_SOURCE=${AIFS_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
ADMIN=$AIFS_BUILD/tools/admin/aifs-admin
MOUNT=$AIFS_BUILD/client/fuse/aifs-mount

skip() {
    echo "skipped: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "mounting needs root"
[ -c /dev/fuse ] || skip "no /dev/fuse"
[ -x "$ADMIN" ] || skip "aifs-admin is not built"
if [ "${AIFS_CHANNEL:-}" = io_uring ]; then # a setting of the machine: it stays as it is
    switch=/sys/module/fuse/parameters/enable_uring
    [ -e "$switch" ] || skip "this kernel has no FUSE over io_uring"
    [ "$(cat "$switch")" = Y ] || skip "FUSE over io_uring is switched off ($switch)"
fi

# In memory when there is room: these tests are about behaviour, and crash tests count rounds.
place=/tmp
[ "$(df --output=avail -B1M /dev/shm 2>/dev/null | tail -1)" -gt "${NEED_MB:-2048}" ] && place=/dev/shm
T=$(mktemp -d "${TEST_PLACE:-$place}/aifs-test.XXXXXX") || exit 1
C=$T/cluster M=$T/mnt
mkdir -p "$M"
export AIFS_CONFIG=$C/admin.conf

failures=0
note() { printf '%s\n' "-- $*"; }
fail() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}
# expect WHAT CMD...: CMD must succeed
expect() {
    local what=$1
    shift
    "$@" || fail "$what ($*)"
}
# refuse WHAT STATUS PATTERN CMD...: CMD must exit with STATUS and say PATTERN
refuse() {
    local what=$1 want=$2 pattern=$3 got out
    shift 3
    out=$("$@" 2>&1)
    got=$?
    [ "$got" = "$want" ] || fail "$what: exit status $got instead of $want; it said: $out"
    grep -Eiq -- "$pattern" <<<"$out" || fail "$what: it said \"$out\", nothing like \"$pattern\""
}
same_tree() { # A B: names, types, modes, sizes, link targets and contents agree
    diff <(sums "$1") <(sums "$2") >"$T/diff" && diff <(listing "$1") <(listing "$2") >"$T/diff" || {
        head -5 "$T/diff"
        return 1
    }
}
listing() { (cd "$1" && find . -type d -printf '%P %y %m\n' -o -printf '%P %y %m %s %l\n' | sort); }
sums() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0r openssl dgst -sha256 -r); }

cluster_up() { # [demo up options]: 1 MDS and 4 OSS unless told, mounted on $M
    "$ADMIN" -q demo up --dir "$C" --mount "$M" "$@" || fail "the cluster does not come up"
    [ "${AIFS_CHANNEL:-}" != io_uring ] || grep -q "channel=io_uring for $M:" "$C"/mount*.log || fail "the mount does not use the ring"
}
cluster_down() { "$ADMIN" -q demo down --dir "$C"; }
remount() {
    expect "umount" "$ADMIN" -q demo umount --dir "$C" "$M"
    expect "mount again" "$ADMIN" -q demo mount --dir "$C" "$M"
}
second_mount() { # a second mount of the same cluster, as $M2
    M2=$T/mnt2
    mkdir -p "$M2"
    expect "second mount" "$ADMIN" -q demo mount --dir "$C" "$M2"
}
daemon_pid() { cat "$C/$1/run/pid"; } # mds, oss1, ...
kill_daemon() { # NAME [SIGNAL]: and wait until it is gone
    local pid
    pid=$(daemon_pid "$1") || fail "no pid of $1"
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF "$C" || fail "pid $pid is not ours"
    kill "-${2:-KILL}" "$pid"
    tail -s 0.02 --pid="$pid" -f /dev/null
}
start_again() { expect "starting what is down" "$ADMIN" -q demo up --dir "$C"; }
restart_all() { # clean restart of every daemon, mounts stay
    local d
    for d in mds oss1 oss2 oss3 oss4; do [ -e "$C/$d/run/pid" ] && kill_daemon "$d" TERM; done
    start_again
}
exec {pause}<> <(:) # nothing is ever to be read there: a rest without a process, of which bash may lose one when their numbers come round
# wait_for SECONDS CMD...: until CMD succeeds; looks again after 20 ms, and more and more rarely, up to 200 ms: a look may be several processes
wait_for() {
    local end=$((SECONDS + $1)) rest=20 seconds
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        printf -v seconds '0.%03d' "$rest"
        read -rt "$seconds" -u "$pause" || :
        rest=$((rest < 160 ? rest * 5 / 4 : 200))
    done
}

counted() { # METRIC LOG...: the sum of what the mounts with these logs tell of it
    local metric=$1
    shift
    sed -n 's/.*metrics at port //p' "$@" | while read -r port; do curl -sf "http://127.0.0.1:$port/metrics"; done |
        awk -v name="$metric" 'index($1, name) { n += $2 } END { print n + 0 }'
}
has_passed() { [ "$(counted "${@:2}")" -gt "$1" ]; } # MANY METRIC LOG...
# What two-mounts/SCRIPT.py promises of $M and $M2 about changes that are answered ahead. It talks with us: "ahead" (METRIC of the mounts with
# these logs is to pass MANY; figures are taken now and then), "kill" (the metadata server, which comes back), "done".
promises_hold() { # SCRIPT SECONDS METRIC MANY LOG...
    local script=$1 seconds=$2 metric=$3 many=$4 said
    shift 4
    local logs=("$@")
    coproc RULES { exec python3 "$AIFS_SOURCE/tests/system/two-mounts/$script.py" "$M" "$M2"; }
    local rules=$RULES_PID
    exec 4<&"${RULES[0]}" 5>&"${RULES[1]}"
    while read -rt "$seconds" said <&4 && [ "$said" != "done" ]; do
        case $said in
        ahead) wait_for 20 has_passed "$many" "$metric" "${logs[@]}" || fail "$metric is only $(counted "$metric" "${logs[@]}")" ;;
        kill) kill_daemon mds && start_again ;;
        *) fail "a promise was broken: $said" ;;
        esac
        echo go >&5
    done
    wait "$rules" || fail "a promise was broken"
    [ "$said" = "done" ] || fail "the rules end with '$said'"
    ! grep -rhs "evicting it" "$C/mds" || fail "a mount was evicted"
    ! grep -hs "is not [a-z]* after all" "$C"/mount*.log || fail "a change that was answered was refused"
}

# Whoever stands in $T, or has something open there, ends at once, but this shell: it only closes what it has open. The links in /proc are
# read, never followed: a mount may not answer.
end_users() {
    local p fd
    for fd in "/proc/$BASHPID/fd/"*; do
        p=${fd##*/}
        case $p:$(readlink "$fd") in [012]:* | 255:*) ;; *":$T/"*) eval "exec $p>&-" ;; esac
    done
    for p in $(find /proc/[0-9]*/cwd /proc/[0-9]*/fd -maxdepth 1 -lname "$T/*" 2>/dev/null | cut -d / -f 3 | sort -u); do
        [ "$p" = "$$" ] || [ "$p" = "$BASHPID" ] || kill -9 "$p" 2>/dev/null
    done
}
# All that was started in $T ends at once, and $T goes.
sweep() {
    local mount p
    for p in $(pgrep -f -- " [^ ]*$T/"); do kill -9 "$p"; done
    end_users
    grep -o " ${T}[^ ]* " /proc/self/mountinfo | while read -r mount; do timeout -k 1 20 umount -l "$(printf %b "$mount")"; done
    rm -rf "$T"
}
# A test that is killed cannot clean up: its guard does. Who waits for all guards (run.sh) says in which folder they leave a file meanwhile.
guard() {
    tail -s 0.2 --pid="$1" -f /dev/null
    [ ! -d "$T" ] || sweep
    rm -f ${2:+"$2"}
}
guarded=${AIFS_TEST_RUN:+$AIFS_TEST_RUN/guard.$$}
[ -z "$guarded" ] || : >"$guarded"
(T=$T setsid bash -c "$(declare -f end_users sweep guard); guard $$ $guarded" </dev/null >/dev/null 2>&1 &)

at_exit() {
    local status=$?
    trap - EXIT
    cd / || :
    if [ "$status" != 0 ] && [ "$status" != 77 ]; then
        for log in "$C"/mds/log "$C"/oss*/log "$C"/mount*.log; do
            [ -s "$log" ] && echo "--- $log" && tail -15 "$log"
        done
        end_users # daemons, too: what a failed test has left may wait for them, and keeps mounts in use and its output open
    fi
    type cleanup >/dev/null 2>&1 && cleanup
    # An orderly end; who was interrupted does not wait for servers that may be down.
    [ "$status" = 130 ] || [ ! -e "$C/demo.json" ] || timeout 90 "$ADMIN" -q demo down --dir "$C" --purge
    sweep
    exit "$status"
}
trap at_exit EXIT
trap 'exit 130' INT TERM HUP
