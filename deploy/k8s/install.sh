#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh [PLUGIN-DIRECTORY]: puts the driver where kubelet looks for it. Kubelet runs what it sees there at once, so the last step is a rename.
set -eu
case ${1:-} in
-*)
    sed -n 3p "$0" | cut -c 3-
    [ "$1" = -h ] || [ "$1" = --help ]
    exit
    ;;
esac
plugins=${1:-/usr/libexec/kubernetes/kubelet-plugins/volume/exec}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$plugins/aifs~aifs"
cp "$here/aifs" "$plugins/aifs~aifs/.aifs.new"
chmod 755 "$plugins/aifs~aifs/.aifs.new"
mv "$plugins/aifs~aifs/.aifs.new" "$plugins/aifs~aifs/aifs"
