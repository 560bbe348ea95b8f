#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# git init, add, commit, clone, gc and fsck work in the mount.
. "$(dirname "$0")/lib.sh"
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org
cluster_up
mkdir "$M/repo" && cp -a /usr/include/linux /usr/include/rdma "$M/repo" 2>/dev/null || cp -a /usr/include/linux "$M/repo"
cd "$M/repo" || exit 1
expect "git init" git init -q
expect "git add" git add .
expect "git commit" git commit -qm one
for i in 1 2 3; do
    echo "$i" >>"linux/types.h" && expect "commit $i" git commit -qam "change $i"
done
expect "a branch and a merge" git checkout -qb side HEAD~2
echo side >side && git add side && git commit -qm side && git checkout -q - && expect "merge" git merge -q --no-edit side
expect "git gc" git gc -q
expect "git fsck" git fsck --strict --full
expect "git clone" git clone -q "$M/repo" "$M/clone"
expect "fsck of the clone" git -C "$M/clone" fsck --full
[ "$(git -C "$M/clone" rev-parse HEAD)" = "$(git rev-parse HEAD)" ] || fail "the clone is at another commit"
[ -z "$(git status --porcelain)" ] || fail "git sees changes nobody made"
cd /
remount
expect "git fsck after a remount" git -C "$M/repo" fsck --full
