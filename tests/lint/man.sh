#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# man.sh [ROOT [PROGRAM ...]]: every manual page formats without a warning, is installed, and refers only to pages that exist.
# What the --help of a PROGRAM tells is in its page: options with their defaults, commands; and what the page calls an option is one.
# The build names programs relative to its own folder, which lib.sh leaves.
args=()
for arg; do
    [ ! -e "$arg" ] || arg=$(realpath "$arg")
    args+=("$arg")
done
set -- "${args[@]}"
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

command -v groff >/dev/null || lint_skip "groff is not installed"
pages=$(lint_all_files | grep -E '^docs/man/[^/]+\.[1-9]$')
[ -n "$pages" ] || lint_skip "no manual pages under $lint_root"
text=$(mktemp -d) || exit 1
trap 'rm -rf "$text" "$lint_found"' EXIT

for page in $pages; do
    name=${page##*/}
    groff -mandoc -Tascii -P-c -P-b -P-u -rLL=1000n -ww "$page" 2>&1 >"$text/$name" | awk -v f="$page" 'NF { print f "\t" f ":1: " $0 }'
    grep -qF "man/$name'" docs/meson.build || printf '%s\t%s:1: docs/meson.build does not install it\n' "$page" "$page"
    grep -noE '[a-z.-]*aifs[a-z.-]*\([1-9]\)' "$text/$name" | sed 's/^[0-9]*://' | sort -u | tr -d ')' | tr '(' '.' |
        while IFS= read -r other; do
            [ -e "docs/man/$other" ] || printf '%s\t%s:1: refers to %s, which is not there\n' "$page" "$page" "$other"
        done
done | lint_collect

# tells PROGRAM PAGE-NAME...: prints what --help has and the pages do not.
tells() {
    local program=$1 all=$text/all first=docs/man/$2 line option default
    shift
    for name; do cat "$text/$name" 2>/dev/null; done >"$all"
    missing() { printf '%s\t%s:1: does not have %s\n' "$first" "$first" "$1"; }
    "$program" --help >"$text/help" 2>&1
    while IFS= read -r line; do
        # "  --name=TYPE", two lines below "(default "value"; ...)"; mount options stand without dashes
        if [[ $line =~ ^\ \ --([a-z_.]+)= ]]; then
            option=${BASH_REMATCH[1]}
            grep -qE -- "(^|[^a-z_.])${option//./\\.}([^a-z_.]|\$)" "$all" || missing "the option $option"
        elif [[ $line =~ ^\ +\(default\ \"(.+)\" && ${program##*/} != aifs-mount ]]; then
            default=${BASH_REMATCH[1]}
            grep -A 4 -F -- "--$option=" "$all" | grep -qF "Default: $default" || missing "the default $default of $option"
        elif [[ $line =~ ^\ \ +(--[a-z-]+)\  ]]; then
            grep -qF -- "${BASH_REMATCH[1]}" "$all" || missing "the option ${BASH_REMATCH[1]}"
        elif [[ $line =~ ^\ \ ([a-z]+(\ [a-z]+)?)(\ |$) ]]; then
            grep -qF -- "${BASH_REMATCH[1]}" "$all" || missing "the command ${BASH_REMATCH[1]}"
            grep -oE -- '--[a-z-]+' <<<"$line" | while IFS= read -r option; do
                grep -qF -- "$option" "$all" || missing "the option $option"
            done
        fi
    done <"$text/help"
    # and back: what the page explains as an option is one
    grep -oE '^ +--[a-z_]+\.[a-z_]+=' "$all" | tr -d ' ' | while IFS= read -r option; do
        grep -qF -- "$option" "$text/help" || printf '%s\t%s:1: %s has no option %s\n' "$first" "$first" "${program##*/}" "$option"
    done
}

shift
for program; do
    case ${program##*/} in
    aifs-mds | aifs-oss | aifs-admin) tells "$program" "${program##*/}.8" ;;
    aifs-mount) tells "$program" aifs-mount.8 mount.aifs.8 ;;
    aifs-bench) tells "$program" aifs-bench.1 ;;
    esac
done | lint_collect
lint_finish
