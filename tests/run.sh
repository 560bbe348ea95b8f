#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [--long] [--no-asan] [SUITE ...]: install what is missing, build, and run the test suites.
# Suites: lint unit component fuzz fault system (default: all), the unit and component ones a second time under ASan and UBSan.
# The last line is "N passed, N failed, N skipped"; every failure and the reason of every skip is printed above it. Exit status 0 only without failures.
# Several checkouts may run this at the same time: everything it makes has a name of its own.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here" || exit 1

long='' asan=1 suites=()
for a; do
    case $a in
    --long) long=1 ;;
    --no-asan) asan= ;;
    -h | --help)
        sed -n '3,7p' "$0"
        exit 0
        ;;
    -*)
        echo "run.sh: unknown option $a (see --help)" >&2
        exit 2
        ;;
    *) suites+=("$a") ;;
    esac
done
[ ${#suites[@]} -gt 0 ] || suites=(lint unit component fuzz fault system)
export AIFS_TEST_LONG=$long

deploy/deps.sh test || exit 1

passed=0 failed=0 skipped=0
patience=3 # a machine with other work on it is slow, not broken

build() { # DIR [meson options]: configure once, compile
    local dir=$1
    shift
    if [ ! -e "$dir/build.ninja" ]; then
        rm -rf "$dir"
        meson setup "$dir" "$@" >"$dir.setup.log" 2>&1 || {
            tail -30 "$dir.setup.log"
            return 1
        }
    fi
    ninja -C "$dir" >"$dir.build.log" 2>&1 || {
        tail -60 "$dir.build.log"
        return 1
    }
}

# One line per test from meson's log: name, result; the output of failures and the reasons of skips.
report() { # DIR LABEL
    local line name result
    while read -r line; do
        name=$(jq -r .name <<<"$line")
        result=$(jq -r .result <<<"$line")
        case $result in
        OK | EXPECTEDFAIL) passed=$((passed + 1)) ;;
        SKIP)
            skipped=$((skipped + 1))
            printf 'SKIP %s %s: %s\n' "$2" "$name" "$(jq -r '(.stdout // "") + (.stderr // "")' <<<"$line" | tail -1)"
            ;;
        *)
            failed=$((failed + 1))
            printf 'FAIL %s %s (%s)\n' "$2" "$name" "$result"
            jq -r '(.stdout // "") + (.stderr // "")' <<<"$line" | tail -60 | sed 's/^/    /'
            ;;
        esac
    done <"$1/meson-logs/testlog.json"
}

run() { # DIR LABEL SUITE...
    local dir=$1 label=$2 s args=()
    shift 2
    for s; do args+=(--suite "$s"); done
    echo "== $label: $*"
    rm -f "$dir/meson-logs/testlog.json"
    meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier "$patience" "${args[@]}" >"$dir.test.log" 2>&1
    grep -E '^ *[0-9]+/[0-9]+ ' "$dir.test.log"
    if [ -e "$dir/meson-logs/testlog.json" ]; then
        report "$dir" "$label"
    else
        tail -20 "$dir.test.log"
        failed=$((failed + 1))
    fi
}

start=$SECONDS
if build build -Dwerror=true; then
    run build release "${suites[@]}"
else
    echo "FAIL build: does not compile"
    failed=$((failed + 1))
fi
again=()
for s in "${suites[@]}"; do
    case $s in unit | component | fuzz) again+=("$s") ;; esac
done
if [ -n "$asan" ] && [ ${#again[@]} -gt 0 ]; then
    if build build-asan -Dwerror=true -Db_sanitize=address,undefined -Db_lundef=false; then
        ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1} \
            LSAN_OPTIONS=suppressions=$here/tests/support/lsan.supp:print_suppressions=0 \
            run build-asan asan "${again[@]}"
    else
        echo "FAIL build-asan: does not compile"
        failed=$((failed + 1))
    fi
fi
echo "took $((SECONDS - start)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
