#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: common <- proto <- {mds, oss, client} <- tools, and each foreign library behind one folder.
# shellcheck source=tests/lint/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2046 # no path of the project has white space
files=$(lint_c_files)
[ -n "$files" ] || lint_skip "no C files under $lint_root"

# shellcheck disable=SC2086
awk '
    function finding(text) { print FILENAME "\t" FILENAME ":" FNR ": " text }
    function only(pattern, folders, name) {
        if (header ~ pattern && FILENAME !~ folders) finding("only " folders " may include " name ": " header)
    }
    BEGIN {
        allowed["common"] = " common "
        allowed["proto"] = " common proto "
        allowed["mds"] = " common proto mds "
        allowed["oss"] = " common proto oss "
        allowed["client"] = " common proto client "
        allowed["tools"] = " common proto mds oss client tools "
    }
    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
        quoted = $0 ~ /include[ \t]*"/
        header = $0
        sub(/^[^"<]*["<]/, "", header)
        sub(/[">].*/, "", header)
        split(FILENAME, part, "/"); from = part[1]
        slash = index(header, "/"); to = slash ? substr(header, 1, slash - 1) : ""

        if (quoted && header ~ /\.\./) finding("include from the root of the repository, not by ..: " header)
        else if (quoted && !slash) finding("include from the root of the repository: " header)
        if (quoted && slash && from in allowed && index(allowed[from], " " to " ") == 0)
            finding(from "/ must not include " to "/: " header)
        if (quoted && from != "tests" && header ~ /_int\.h$/) {
            folder = FILENAME; sub(/\/[^\/]*$/, "", folder)
            owner = header; sub(/\/[^\/]*$/, "", owner)
            if (folder != owner) finding("an _int.h belongs to its own folder: " header)
        }
        if (from == "tests") next
        only("^(ucp|uct|ucs|ucm)/", "^common/net/", "UCX")
        only("^liburing", "^common/uring/", "liburing")
        only("^rocksdb/", "^(mds/store|oss/chunk)/", "RocksDB")
        only("^(fuse|fuse3/|fuse_)", "^client/fuse/", "libfuse")
        only("protobuf-c|\\.pb-c\\.h$", "^proto/", "generated protobuf-c code")
        only("^microhttpd", "^common/stat/", "libmicrohttpd")
        only("^openssl/", "^common/crypto/", "OpenSSL")
        only("^(isa-l|crc)", "^common/base/", "ISA-L")
    }' $files | lint_collect
lint_finish
