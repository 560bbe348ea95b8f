# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # its variables are for the script that sources it
# vm.sh: sourced; a Debian kernel with soft-RoCE (rdma_rxe) in qemu, for one command. No KVM, no network, nothing installed.
#
#   vm_missing                  what this machine lacks, one line; nothing: it can be tried
#   vm_kernel DIR               a kernel package of Debian's, unpacked in DIR (fetched by apt-get, the first time); its release as $vm_release.
#                               When that cannot be: status 1, and why in $vm_reason
#   vm_run DIR SECONDS CMD...   boot that kernel, run CMD there as root; its output is ours. Status: CMD's, 124 too late, 125 the kernel died
#
# The guest sees this machine's / read-only, below a layer in its memory: whatever a program needs is there, and nothing it writes stays,
# but for $VM_OUT (here) = /run/out (there). It has 2 processors, $VM_MIB MiB of memory (1536) and no network card; here it is niced by $VM_NICE (19).

vm_modules="virtio_pci virtio_console 9p 9pnet_virtio overlay fuse ib_uverbs rdma_rxe crc32_generic veth sch_netem sch_prio cls_u32"
vm_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

vm_missing() {
    local program
    for program in qemu-system-x86_64 busybox dpkg-deb apt-get gzip ip tc rdma; do
        command -v "$program" >/dev/null || {
            echo "no $program here (deploy/deps.sh rdma installs it)"
            return
        }
    done
    busybox --list | grep -qx depmod || echo "this busybox has no depmod (deploy/deps.sh rdma installs one that has)"
}

# A package as it comes has everything for every machine; what the guest may want of it is a fifth.
vm_kernel() {
    local dir=$1 package deb
    mkdir -p "$dir" || return 1
    exec {vm_lock}>"$dir/lock"
    flock "$vm_lock"
    if [ ! -e "$dir/complete" ]; then
        package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
        [ -n "$package" ] || {
            vm_reason="apt-get knows no linux-image-amd64"
            return 1
        }
        rm -rf "${dir:?}/tree" "$dir"/*.deb
        mkdir "$dir/tree"
        (cd "$dir" && timeout 600 apt-get -qq -o APT::Sandbox::User=root download "$package") >"$dir/download.log" 2>&1 || {
            vm_reason="cannot fetch $package: $(tail -1 "$dir/download.log")"
            return 1
        }
        deb=$(echo "$dir"/*.deb)
        dpkg-deb --fsys-tarfile "$deb" | tar -C "$dir/tree" -xf - --wildcards './boot/vmlinuz-*' './lib/modules/*/modules.*' \
            './lib/modules/*/kernel/'{fs,net,lib,crypto,arch/x86/crypto}'/*' \
            './lib/modules/*/kernel/drivers/'{infiniband,virtio,char}'/*' './lib/modules/*/kernel/drivers/net/*.ko' || {
            vm_reason="cannot unpack $deb"
            return 1
        }
        rm -f "$deb"
        : >"$dir/complete"
    fi
    vm_release=$(ls "$dir/tree/lib/modules")
    [ -e "$dir/tree/lib/modules/$vm_release/modules.dep" ] || busybox depmod -b "$dir/tree" "$vm_release" 2>"$dir/depmod.log"
    exec {vm_lock}>&-
}

# The initial file system: busybox, init, and the modules with what they need.
vm_initrd() { # DIR FILE
    local tree=$1/tree root file name
    root=$(mktemp -d "$T/initrd.XXXXXX")
    mkdir -p "$root"/{bin,dev,proc,sys,out,host,layer,new,"lib/modules/$vm_release"}
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$vm_here/init" "$root/init"
    chmod 755 "$root/init"
    cp "$tree/lib/modules/$vm_release/modules.dep" "$root/lib/modules/$vm_release/"
    for name in $vm_modules; do
        grep -E "/$name\.ko:" "$tree/lib/modules/$vm_release/modules.dep"
    done | tr -d : | tr ' ' '\n' | sort -u | while read -r file; do
        mkdir -p "$root/lib/modules/$vm_release/${file%/*}"
        cp "$tree/lib/modules/$vm_release/$file" "$root/lib/modules/$vm_release/$file"
    done
    echo "$vm_modules" >"$root/modules"
    (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) | gzip -1 >"$2"
}

vm_run() { # DIR SECONDS CMD...
    local dir=$1 seconds=$2 status
    shift 2
    vm_initrd "$dir" "$T/initrd" || return 125
    {
        echo "cd $(printf %q "$PWD")"
        printf '%q ' "$@"
    } >"$VM_OUT/command"
    rm -f "$VM_OUT/status"
    # The output comes through a port whose other end is a pipe: qemu waits for nobody there, and the guest never either.
    timeout -k 5 "$seconds" nice -n "${VM_NICE:-19}" qemu-system-x86_64 -nodefaults -no-user-config -display none -monitor none -no-reboot -nic none \
        -M q35,smm=off,hpet=off,usb=off -accel tcg,thread=multi,tb-size=256 -cpu max -smp 2 -m "${VM_MIB:-1536}" \
        -kernel "$dir/tree/boot/vmlinuz-$vm_release" -initrd "$T/initrd" -serial "file:$VM_OUT/console.log" \
        -append "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nowatchdog rcupdate.rcu_cpu_stall_suppress=1 random.trust_cpu=on audit=0 apparmor=0 no_timer_check tsc=reliable" \
        -device virtio-serial-pci -chardev file,id=out,path=/dev/fd/3 -device virtserialport,chardev=out,name=out \
        -virtfs "local,path=/,mount_tag=host,security_model=none,multidevs=remap,readonly=on" \
        -virtfs "local,path=$VM_OUT,mount_tag=out,security_model=none,multidevs=remap" \
        3>&1 >/dev/null 2>"$VM_OUT/qemu.log" </dev/null | cat
    status=${PIPESTATUS[0]}
    case $status in
    0) [ -s "$VM_OUT/status" ] && return "$(cat "$VM_OUT/status")" ;;
    124 | 137) return 124 ;;
    esac
    tail -n 5 "$VM_OUT/qemu.log"
    tail -n 20 "$VM_OUT/console.log"
    return 125
}
