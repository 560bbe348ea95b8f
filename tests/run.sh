#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--long] [--no-asan] [SUITE ...]: install what is missing, build, and run the test suites.
# Suites: lint unit component sim fuzz fault system, and with --long rdma (default: all), the unit, component, sim and fuzz ones a second time under ASan and UBSan,
# with --long the system ones once more by each other way to the kernel (libfuse, and FUSE over io_uring where that is switched on), and with nothing answered ahead and nothing kept by the kernel.
# The last line is "N passed, N failed, N skipped"; every failure and the reason of every skip is printed above it. Exit status 0 only without failures.
# Several checkouts may run this at the same time: everything it makes has a name of its own.
# Several tests run at a time, because most of them wait; the build with sanitizers takes the processor time that they leave.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here" || exit 1

long='' asan=1 suites=()
for a; do
    case $a in
    --long) long=1 ;;
    --no-asan) asan= ;;
    -h | --help)
        sed -n '3,8p' "$0"
        exit 0
        ;;
    -*)
        echo "run.sh: unknown option $a (see --help)" >&2
        exit 2
        ;;
    lint | unit | component | sim | fuzz | fault | system | rdma) suites+=("$a") ;;
    *)
        echo "run.sh: no suite $a (see --help)" >&2
        exit 2
        ;;
    esac
done
[ ${#suites[@]} -gt 0 ] || suites=(lint unit component sim fuzz fault system ${long:+rdma})
again=()
for s in "${suites[@]}"; do
    case $s in unit | component | sim | fuzz) again+=("$s") ;; esac
done
[ ${#again[@]} -gt 0 ] || asan=

deploy/deps.sh test || exit 1
if command -v mold >/dev/null; then export CC_LD=mold; fi # a few hundred programs are linked
case $long${suites[*]} in 1*rdma*) deploy/deps.sh rdma || echo "run.sh: the suite rdma will be skipped" ;; esac

passed=0 failed=0 skipped=0
patience=3 # a machine with other work on it is slow, not broken
lanes=$(($(nproc) + 1))
room=$(($(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) / 3145728)) # a test's cluster takes up to 3 GiB
[ "$lanes" -le "$room" ] || lanes=$((room > 1 ? room : 1))

TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/aifs-run.XXXXXX") || exit 1
chmod 711 "$TMPDIR" # tests that give up their privileges walk through it
export TMPDIR AIFS_TEST_RUN=$TMPDIR AIFS_TEST_LONG=$long CK_TIMEOUT_MULTIPLIER=$patience
declare -A started=()
# Whatever is under way ends and cleans up behind itself; a system test leaves that to its guard, which has a file here as long as it works.
at_exit() {
    local status=$? end=$((SECONDS + 60)) p
    trap '' INT TERM HUP
    for p in "${!started[@]}"; do kill -TERM -- "-$p"; done 2>/dev/null
    wait
    while compgen -G "$TMPDIR/guard.*" >/dev/null && [ "$SECONDS" -lt "$end" ]; do read -rt 0.1 <> <(:) || :; done
    rm -rf "$TMPDIR"
    exit "$status"
}
trap at_exit EXIT
trap 'echo "run.sh: interrupted" >&2; exit 130' INT TERM HUP

start() { # CMD...: in the background, in a process group of its own, which is $job
    set -m
    "$@" &
    set +m
    job=$!
    started[$job]=1
}
finish() { # JOB: its status
    local status
    wait "$1"
    status=$?
    unset "started[$1]"
    return "$status"
}

build() { # DIR [meson options]: configure once, compile
    local dir=$1
    shift
    if [ ! -e "$dir/build.ninja" ]; then
        rm -rf "$dir"
        meson setup "$dir" "$@" >"$dir.setup.log" 2>&1 || return 1
    fi
    ninja -C "$dir" >"$dir.build.log" 2>&1
}

broken() { # DIR: why it could not be built
    failed=$((failed + 1))
    echo "FAIL $1: does not compile"
    if [ -e "$1/build.ninja" ]; then
        grep -vE '^\[[0-9]+/[0-9]+\] ' "$1.build.log" | head -60 | sed 's/^/    /'
    else
        tail -30 "$1.setup.log" | sed 's/^/    /'
    fi
}

# From meson's log: how many, the reasons of skips, the output of failures.
report() { # DIR KIND STATUS
    local log=$1/meson-logs/testlog.json n
    local lines='split("\n") | map(select(. != ""))'
    local output="((.stdout // \"\") + (.stderr // \"\") | $lines)"
    local good='(.result == "OK" or .result == "EXPECTEDFAIL")'
    touch "$log"
    passed=$((passed + $(jq -s "map(select($good)) | length" "$log")))
    skipped=$((skipped + $(jq -s 'map(select(.result == "SKIP")) | length' "$log")))
    n=$(jq -s "map(select($good or .result == \"SKIP\" | not)) | length" "$log")
    [ "$n" -gt 0 ] || [ "$3" = 0 ] || {
        n=1
        echo "FAIL $2: meson test ended with status $3"
        tail -20 "$1.test.log" | sed 's/^/    /'
    }
    failed=$((failed + n))
    jq -r --arg build "$2" "select(.result == \"SKIP\") | \"SKIP \(\$build) \(.name): \($output | last // \"no reason given\")\"" "$log"
    jq -r --arg build "$2" "select($good or .result == \"SKIP\" | not) |
        \"FAIL \(\$build) \(.name): \(if .result == \"TIMEOUT\" then \"did not end in time\" else .result end) after \(.duration | floor) s\",
        ((.stdout // \"\") | $lines | .[-30:][] | \"    \" + .), ((.stderr // \"\") | $lines | .[-60:][] | \"    \" + .)" "$log"
}

follow() { # PID LOG: meson's lines of results as they come
    tail -n +1 -s 0.2 -f --pid="$1" "$2" | grep --line-buffered -E '^ *[0-9]+/[0-9]+ '
}

run() { # DIR KIND SUITE...
    local dir=$1 kind=$2 s args=() tests
    shift 2
    for s; do args+=(--suite "$s"); done
    echo "== $kind: $*"
    rm -f "$dir/meson-logs/testlog.json"
    : >"$dir.test.log"
    start meson test -C "$dir" --no-rebuild --num-processes "$lanes" --timeout-multiplier "$patience" "${args[@]}" >"$dir.test.log" 2>&1
    tests=$job
    start follow "$tests" "$dir.test.log"
    finish "$job"
    finish "$tests"
    report "$dir" "$kind" "$?"
}

# As mounts do not work unless told to; what takes long with --long has done so once already.
run_otherwise() {
    local channel off=(AIFS_CREATE_AHEAD=no AIFS_REMOVE_AHEAD=no AIFS_ATTR_TIMEOUT=0 AIFS_ENTRY_TIMEOUT=0 AIFS_NEGATIVE_TIMEOUT=0)
    for channel in libfuse io_uring; do
        if [ $channel = io_uring ] && [ "$(cat /sys/module/fuse/parameters/enable_uring 2>/dev/null)" != Y ]; then
            echo "SKIP io_uring: FUSE over io_uring is switched off (/sys/module/fuse/parameters/enable_uring)"
            skipped=$((skipped + 1))
            continue
        fi
        AIFS_CHANNEL=$channel AIFS_TEST_LONG='' run build $channel system
        lap "tests by $channel"
    done
    export "${off[@]}"
    AIFS_TEST_LONG='' run build "switched off" system
    unset "${off[@]%=*}"
    lap "tests with all that switched off"
}

# It may take the time that the tests leave.
build_sanitized() {
    renice -n 10 -p "$BASHPID" >/dev/null
    build build-asan -Dwerror=true -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false
}
run_sanitized() {
    export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
    export LSAN_OPTIONS=suppressions=$here/tests/support/lsan.supp:print_suppressions=0
    run build-asan asan "${again[@]}"
}

took=()
lap() { # NAME: what has taken the time since the last one
    took+=("$1 $((SECONDS - lap_begin)) s")
    lap_begin=$SECONDS
}

lap_begin=$SECONDS
start build build -Dwerror=true
if finish "$job"; then
    lap build
    sanitized=
    [ -z "$asan" ] || { start build_sanitized && sanitized=$job; }
    run build release "${suites[@]}"
    lap tests
    case $long${suites[*]} in 1*system*) run_otherwise ;; esac
    if [ -n "$sanitized" ]; then
        if finish "$sanitized"; then
            lap "rest of the build with sanitizers"
            run_sanitized
        else
            broken build-asan
        fi
        lap "tests with sanitizers"
    fi
else
    broken build
fi
printf 'took %s s' "$SECONDS"
[ ${#took[@]} = 0 ] || printf ': %s' "$(printf '%s, ' "${took[@]}" | sed 's/, $//')"
printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
