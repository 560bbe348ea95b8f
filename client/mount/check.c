/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount point before mounting, and remounting. What is mounted is read from the kernel's table;
 * a dead mount is found by the ENOTCONN of what the kernel cannot answer alone (ECONNABORTED or
 * ECANCELED when the daemon has died only just now, with requests in its ring).
 */
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "client/fuse/fs.h"
#include "client/fuse/mountinfo.h"
#include "client/mount/mount.h"
#include "common/base/err.h"
#include "common/base/file.h"

static bool says_dead(int err)
{
    return err == ENOTCONN || err == ECONNABORTED || err == ECANCELED;
}

/* Attributes that the kernel has cached outlive the daemon; what it has to ask for each time says
 * the truth. The daemon answers this one by itself, whatever its servers do. */
static bool is_dead(const char *dir)
{
    struct mountinfo info;
    struct stat st;

    if (stat(dir, &st) != 0)
        return says_dead(errno);
    return mountinfo_find(dir, &info) == 1 && strcmp(info.type, "fuse.aifs") == 0 &&
           getxattr(dir, FS_XATTR_MOUNT, NULL, 0) < 0 && says_dead(errno);
}

/* What a daemon that died has left. */
static int dead_mount(struct mount_request *m, char *err, size_t err_len)
{
    struct mountinfo info;

    if (!m->recover) {
        snprintf(err, err_len,
                 "%s: the daemon of an earlier mount has died; umount it, or mount with "
                 "-o recover",
                 m->dir);
        return MOUNT_FAILED;
    }
    for (int i = 0; i < 16; i++) { /* several may lie on top of each other */
        if (mountinfo_find(m->dir, &info) == 1 && strcmp(info.type, "fuse.aifs") != 0)
            break;
        if (umount2(m->dir, MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
            snprintf(err, err_len, "%s: cannot clean up the dead mount: %s", m->dir,
                     strerror(errno));
            return MOUNT_FAILED;
        }
        if (!is_dead(m->dir))
            return MOUNT_OK;
    }
    snprintf(err, err_len, "%s: a dead mount that is not ours", m->dir);
    return MOUNT_FAILED;
}

int mount_check_dir(struct mount_request *m, char *err, size_t err_len)
{
    char real[PATH_MAX];
    struct mountinfo info;
    struct stat st;
    int rc;

    if (is_dead(m->dir)) {
        rc = dead_mount(m, err, err_len);
        if (rc != MOUNT_OK)
            return rc;
    }
    if (!realpath(m->dir, real) || stat(real, &st) != 0) {
        snprintf(err, err_len, "mount point %s: %s", m->dir, strerror(errno));
        return MOUNT_FAILED;
    }
    if (!S_ISDIR(st.st_mode)) {
        snprintf(err, err_len, "mount point %s is not a directory", m->dir);
        return MOUNT_FAILED;
    }
    memcpy(m->dir, real, sizeof(m->dir));
    if (!m->multi && mountinfo_find(m->dir, &info) == 1 && strcmp(info.type, "fuse.aifs") == 0) {
        snprintf(err, err_len,
                 "%s: %s is mounted there already; umount it, or mount on top of it with -o multi",
                 m->dir, info.source);
        return MOUNT_FAILED;
    }
    if (!m->nonempty && !m->multi && file_dir_in_use(m->dir) > 0)
        fprintf(stderr,
                "mount.aifs: %s is not empty: what is in it is hidden for as long as aifs is "
                "mounted there (mount with -o nonempty not to be told)\n",
                m->dir);
    return MOUNT_OK;
}

void mount_kernel_words(const struct mount_request *m, bool privileged, struct strbuf *out)
{
    strbuf_printf(out, "%s%s%s%s", privileged ? "suid,dev," : "", m->read_only ? "ro" : "rw",
                  conf_bool(m->conf, "relatime") ? "" : ",noatime",
                  m->no_dir_time ? ",nodiratime" : "");
    if (m->flags.len) {
        strbuf_append(out, ",", 1);
        strbuf_append(out, m->flags.data, m->flags.len);
    }
}

/* ---- remount ---- */

static const struct {
    const char *name;
    unsigned long flag;
} remount_flags[] = {{"nosuid", MS_NOSUID},
                     {"nodev", MS_NODEV},
                     {"noexec", MS_NOEXEC},
                     {"sync", MS_SYNCHRONOUS},
                     {"dirsync", MS_DIRSYNC}};

/* One that was mounted with ro has a read-only session; the kernel's flag alone does not tell. The
 * daemon is asked by the removal of an attribute that is not there. */
static bool daemon_is_read_only(const char *dir)
{
    return removexattr(dir, "user.aifs.remount") != 0 && errno == EROFS;
}

/* mount(8) adds the options of the mount's line in fstab, which say nothing new. */
static bool all_in_fstab(const struct mount_request *m)
{
    FILE *f = setmntent("/etc/fstab", "re");
    char line[16 * KIB]; /* getmntent(3) cuts what is longer than 4 KiB */
    struct mntent entry;
    const struct mntent *e;
    const char *p = m->unknown.data;

    while ((e = f ? getmntent_r(f, &entry, line, sizeof(line)) : NULL) &&
           strcmp(e->mnt_dir, m->dir) != 0)
        ;
    while (e && *p) {
        size_t n = strcspn(p, ","), len;
        const char *q = e->mnt_opts;

        for (; *q; q += len + (q[len] == ',')) {
            len = strcspn(q, ",");
            if (len == n && memcmp(p, q, n) == 0)
                break;
        }
        if (!*q)
            break;
        p += n + (p[n] == ',');
    }
    if (f)
        endmntent(f);
    return e && !*p;
}

/* The daemon keeps times of last access, or does not: the words must say what is so. */
static bool other_atime(const struct mount_request *m)
{
    struct statvfs v;

    if (statvfs(m->dir, &v) != 0)
        return false; /* mount(2) tells why */
    return (m->atime_word == MOUNT_RELATIME && v.f_flag & ST_NOATIME) ||
           (m->atime_word == MOUNT_NOATIME && !(v.f_flag & ST_NOATIME)) ||
           (m->no_dir_time && !(v.f_flag & ST_NODIRATIME));
}

int mount_remount(const struct mount_request *m, char *err, size_t err_len)
{
    unsigned long flags = MS_REMOUNT | (m->read_only ? MS_RDONLY : 0);
    const char *p = m->flags.len ? m->flags.data : "";
    bool unknown = m->unknown.len && !all_in_fstab(m);

    if (unknown || other_atime(m)) {
        snprintf(err, err_len,
                 "%s: \"%s\" cannot be changed while mounted (only ro, rw, suid, dev and exec "
                 "can): umount and mount again",
                 m->dir, unknown ? m->unknown.data : "atime");
        return MOUNT_FAILED;
    }
    while (*p) {
        size_t n = strcspn(p, ",");

        for (size_t i = 0; i < ARRAY_LEN(remount_flags); i++) {
            if (n == strlen(remount_flags[i].name) && memcmp(p, remount_flags[i].name, n) == 0)
                flags |= remount_flags[i].flag;
        }
        p += n + (p[n] == ',');
    }
    if (mount(NULL, m->dir, NULL, flags, NULL) != 0) {
        snprintf(err, err_len, "remount %s: %s", m->dir, strerror(errno));
        return MOUNT_FAILED;
    }
    if (!m->read_only && daemon_is_read_only(m->dir)) {
        (void)!mount(NULL, m->dir, NULL, flags | MS_RDONLY, NULL);
        snprintf(err, err_len, "%s was mounted read-only and stays so: umount and mount again",
                 m->dir);
        return MOUNT_FAILED;
    }
    return MOUNT_OK;
}
