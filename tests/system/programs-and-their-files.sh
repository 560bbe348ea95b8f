#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What programs do to files, on two mounts: a model cache with locks, links and renames, copies with holes, lists and attributes, O_DIRECT, farms of hard links.
. "$(dirname "$0")/lib.sh"
for program in rsync setfacl setfattr tar; do command -v $program >/dev/null || skip "no $program"; done
cluster_up --oss 2
second_mount
cat >"$T/cache.py" <<'P'
# As the caches of model hubs do it: a lock for each blob, a download that goes on where it was, a rename, a link to it that is replaced.
import fcntl, hashlib, multiprocessing, os, sys
mounts = sys.argv[1:]
def fetch(i):
    cache, n = f"{mounts[i % 2]}/cache", i // 2 % 5
    body = b"%d" % n * 200000
    name = hashlib.sha256(body).hexdigest()
    blob, link = f"{cache}/blobs/{name}", f"{cache}/snapshots/model-{n}"
    with open(f"{cache}/locks/{name}", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(blob):
            for part in range(2): # interrupted, and begun again
                with open(blob + ".incomplete", "ab") as f:
                    f.write(body[f.tell():(part + 1) * 100000])
            os.rename(blob + ".incomplete", blob)
            with open(f"{cache}/fetched", "a") as f:
                f.write(f"{n}\n")
        temporary = f"{link}.{os.getpid()}"
        os.symlink(f"../blobs/{name}", temporary)
        os.rename(temporary, link)
    with open(link, "rb") as f:
        assert f.read() == body, "another model"
for d in "blobs", "locks", "snapshots":
    os.makedirs(f"{mounts[0]}/cache/{d}")
with multiprocessing.Pool(8) as pool:
    pool.map(fetch, range(80), 1)
fetched = open(f"{mounts[1]}/cache/fetched").read().split()
assert sorted(fetched) == list("01234"), f"fetched: {fetched}"
assert sorted(os.listdir(f"{mounts[1]}/cache/snapshots")) == [f"model-{n}" for n in range(5)], "links are left behind"
P
expect "a cache of models" python3 "$T/cache.py" "$M" "$M2"

cd "$M" || exit 1
expect "a file with holes" python3 -c 'import os; f = os.open("holes", os.O_CREAT | os.O_WRONLY); os.truncate(f, 8 << 20); os.pwrite(f, b"x", 4 << 20)'
expect "cp --sparse=always" cp --sparse=always holes always
expect "cp --reflink=auto" cp --reflink=auto holes auto
expect "rsync -S" rsync -aS holes thin
mkdir unpacked out
expect "tar -S" tar -S -cf holes.tar holes
expect "tar -x" tar -C unpacked -xf holes.tar
for copy in always auto thin unpacked/holes; do expect "$copy is a copy" cmp "$M2/$copy" holes; done

head -c 1234567 /dev/urandom >"$T/odd"
expect "a length that is no multiple of anything, by O_DIRECT" dd if="$T/odd" of=odd oflag=direct bs=65536 status=none
expect "it is read" cmp "$T/odd" "$M2/odd"
expect "and by O_DIRECT in odd pieces" cmp "$T/odd" <(dd if="$M2/odd" iflag=direct bs=100000 status=none)

mkdir -p tree/d
echo 1 >tree/f
expect "a link" ln tree/f tree/hard
expect "a symbolic link" ln -s f tree/link
expect "an attribute" setfattr -n user.name -v value tree/f
expect "an access list" setfacl -m u:1234:rw tree/f
expect "a default list" setfacl -d -m g:77:rx tree/d
described() { (cd "$1" && getfacl -nR . && getfattr -Rd . && find . -printf '%P %y %m %n %T@ %l\n' | sort); }
expect "tar --xattrs --acls -c" tar --format=posix --xattrs --acls -cf tree.tar tree
expect "tar --xattrs --acls -x" tar --xattrs --acls -C out -xpf tree.tar
[ "$(described out/tree)" = "$(described tree)" ] || fail "tar: $(diff <(described out/tree) <(described tree) | head -3)"
find tree -exec touch -hd '2001-02-03 04:05:06.789' {} + # rsync leaves times of directories that differ by less than a second
expect "rsync -aHAX" rsync -aHAX tree/ "$M2/mirror"
[ "$(described mirror)" = "$(described tree)" ] || fail "rsync: $(diff <(described mirror) <(described tree) | head -3)"
[ -z "$(rsync -aHAXni --checksum tree/ mirror/)" ] || fail "rsync finds differences"

mkdir packages && for i in $(seq 200); do echo "$i" >"packages/$i"; done
expect "an environment of hard links" cp -al packages one
expect "another, on the other mount" cp -al "$M2/packages" "$M2/two"
[ "$(stat -c %h packages/* | sort | uniq -c | tr -s ' ')" = " 200 3" ] || fail "links are not counted"
expect "removing one" rm -rf one
[ "$(stat -c %h "$M2"/packages/* | sort | uniq -c | tr -s ' ')" = " 200 2" ] || fail "links are still counted"
cd /
