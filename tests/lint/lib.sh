# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What every check here starts with. Usage of a check: CHECK.sh [ROOT]; 0 = clean, 1 = findings on stderr, 77 = cannot run here.
# A finding is "PATH:LINE: text". One that is meant to stay is waived in tests/lint/waivers.txt, with its reason.
set -u
export LC_ALL=C
lint_name=$(basename "$0" .sh)
lint_root=$(cd "${1:-$(dirname "$0")/../..}" && pwd) || exit 1
lint_waivers=$lint_root/tests/lint/waivers.txt
lint_found=$(mktemp) || exit 1
trap 'rm -f "$lint_found"' EXIT
cd "$lint_root" || exit 1

# Every file of the project, one a line: what git tracks or would, or in a tree without git all that is no build folder.
lint_all_files() {
    if [ -e .git ] && git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard | while IFS= read -r f; do
            if [ -f "$f" ]; then echo "$f"; fi
        done
    else
        find . -type d \( -name 'build*' -o -name .git \) -prune -o -type f -print | sed 's|^\./||'
    fi | sort -u
}

lint_c_files() {
    lint_all_files | grep -E '\.[ch]$'
}

# Scripts by name or by their first line.
lint_scripts() {
    lint_all_files | while IFS= read -r f; do
        case $f in
        *.sh) echo "$f" ;;
        *.*) ;;
        *) if head -c 64 "$f" | head -n 1 | grep -qaE '^#!.*[/ ](ba|da)?sh( |$)'; then echo "$f"; fi ;;
        esac
    done
}

lint_skip() {
    echo "$lint_name: skipped: $1" >&2
    exit 77
}

# Reads findings "KEY<tab>TEXT" on standard input. KEY is what a waiver names: a path, or path:function.
lint_collect() {
    cat >>"$lint_found"
}

# Prints what is not waived and waivers of this check that nothing needs any more; ends the check.
lint_finish() {
    [ -f "$lint_waivers" ] || lint_waivers=/dev/null
    awk -F '\t' -v check="$lint_name" -v waivers="$lint_waivers" '
        FILENAME == waivers {
            line = $0
            sub(/#.*/, "", line)
            n = split(line, word, /[ \t]+/)
            if (n < 1 || word[1] != check) next
            if (n < 4) { print waivers ":" FNR ": a waiver needs a reason"; bad = 1; next }
            waived[word[2]] = FNR
            next
        }
        $1 in waived { used[$1] = 1; next }
        { print $2; bad = 1 }
        END {
            for (key in waived)
                if (!(key in used)) { print waivers ":" waived[key] ": nothing needs this waiver of " key; bad = 1 }
            exit bad
        }' "$lint_waivers" "$lint_found" >&2
    exit $?
}
