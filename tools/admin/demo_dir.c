/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a demo: its description, keys and the daemons' configuration files, each replaced
 * as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/file.h"
#include "common/crypto/crypto.h"
#include "tools/admin/admin.h"
#include "tools/admin/demo.h"

static int make_dir(const char *path)
{
    return mkdir(path, 0750) == 0 || errno == EEXIST ? 0 : -errno;
}

PRINTF_LIKE(3, 4) static int write_file(const char *dir, const char *name, const char *fmt, ...)
{
    char path[PATH_MAX], *text = NULL;
    va_list ap;
    int len, rc;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    va_start(ap, fmt);
    len = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (len < 0)
        return -ENOMEM;
    rc = file_replace(path, text, (size_t)len, 0644);
    free(text);
    return rc;
}

static unsigned read_unsigned(const json_t *root, const char *name, unsigned max)
{
    json_int_t v = json_integer_value(json_object_get(root, name));

    return v > 0 && v <= max ? (unsigned)v : 0;
}

static void read_text(const json_t *root, const char *name, char *out, size_t len)
{
    const char *s = json_string_value(json_object_get(root, name));

    snprintf(out, len, "%s", s ? s : "");
}

static void read_mounts(struct demo *d, const json_t *list)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        struct demo_mount *m = &d->mounts[d->n_mounts];

        if (d->n_mounts == DEMO_MOUNTS_MAX)
            break;
        read_text(item, "path", m->path, sizeof m->path);
        read_text(item, "options", m->options, sizeof m->options);
        m->number = read_unsigned(item, "number", 1u << 20);
        m->made = json_is_true(json_object_get(item, "made"));
        d->n_mounts++;
    }
}

int demo_load(struct demo *d)
{
    char path[PATH_MAX];
    json_error_t error;
    json_t *root, *ports;

    snprintf(path, sizeof path, "%s/demo.json", d->dir);
    if (access(path, F_OK) != 0)
        return -errno;
    root = json_load_file(path, 0, &error);
    if (!root)
        return -EINVAL;
    d->oss = read_unsigned(root, "oss", DEMO_OSS_MAX);
    d->targets = read_unsigned(root, "targets", 64);
    d->mds_port = (uint16_t)read_unsigned(root, "mds_port", 65535);
    d->next_mount = read_unsigned(root, "next_mount", 1u << 20);
    read_text(root, "net", d->net, sizeof d->net);
    read_text(root, "capacity", d->capacity, sizeof d->capacity);
    read_text(root, "targets_dir", d->targets_dir, sizeof d->targets_dir);
    ports = json_object_get(root, "oss_ports");
    for (unsigned i = 0; i < d->oss; i++)
        d->oss_port[i] = (uint16_t)json_integer_value(json_array_get(ports, i));
    d->n_mounts = 0;
    read_mounts(d, json_object_get(root, "mounts"));
    json_decref(root);
    return d->oss && d->targets ? 0 : -EINVAL;
}

int demo_save(const struct demo *d)
{
    json_t *ports = json_array(), *mounts = json_array(), *root;
    char *text;
    int rc;

    for (unsigned i = 0; i < d->oss; i++)
        json_array_append_new(ports, json_integer(d->oss_port[i]));
    for (unsigned i = 0; i < d->n_mounts; i++)
        json_array_append_new(mounts,
                              json_pack("{s:s, s:s, s:i, s:b}", "path", d->mounts[i].path,
                                        "options", d->mounts[i].options, "number",
                                        (int)d->mounts[i].number, "made", (int)d->mounts[i].made));
    root = json_pack("{s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:o, s:o}", "oss", (int)d->oss, "targets",
                     (int)d->targets, "mds_port", (int)d->mds_port, "next_mount",
                     (int)d->next_mount, "net", d->net, "capacity", d->capacity, "targets_dir",
                     d->targets_dir, "oss_ports", ports, "mounts", mounts);
    text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    rc = text ? write_file(d->dir, "demo.json", "%s\n", text) : -ENOMEM;
    free(text);
    json_decref(root);
    return rc;
}

static int prepare_keys(const struct demo *d)
{
    static const enum crypto_role roles[] = {CRYPTO_ROLE_ADMIN, CRYPTO_ROLE_CLIENT};
    struct crypto_key key, derived;
    char path[PATH_MAX], err[256];
    int rc;

    snprintf(path, sizeof path, "%s/key", d->dir);
    rc = make_dir(path);
    if (rc < 0)
        return rc;
    snprintf(path, sizeof path, "%s/key/server.key", d->dir);
    if (access(path, F_OK) == 0)
        rc = crypto_key_load(path, &key, err, sizeof err);
    else if ((rc = crypto_key_create(&key)) == 0)
        rc = crypto_key_save(path, &key);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(roles); i++) {
        snprintf(path, sizeof path, "%s/key/%s.key", d->dir, crypto_role_name(roles[i]));
        if (access(path, F_OK) == 0)
            continue;
        rc = crypto_key_derive(&key, roles[i], &derived);
        if (rc == 0)
            rc = crypto_key_save(path, &derived);
    }
    return rc;
}

static int prepare_oss(const struct demo *d, unsigned n)
{
    char path[PATH_MAX];
    int rc;

    snprintf(path, sizeof path, "%s/oss%u", d->dir, n);
    rc = make_dir(path);
    snprintf(path, sizeof path, "%s/oss%u/run", d->dir, n);
    if (rc == 0)
        rc = make_dir(path);
    if (rc == 0 && d->targets_dir[0]) {
        snprintf(path, sizeof path, "%s/oss%u", d->targets_dir, n);
        rc = make_dir(d->targets_dir);
        if (rc == 0)
            rc = make_dir(path);
    }
    for (unsigned t = 1; rc == 0 && t <= d->targets; t++) {
        snprintf(path, sizeof path, "%s/oss%u/t%u", d->targets_dir[0] ? d->targets_dir : d->dir, n,
                 t);
        rc = make_dir(path);
    }
    return rc;
}

int demo_prepare(const struct demo *d)
{
    static const char *const dirs[] = {"mds", "mds/run", "mds/data"};
    char path[PATH_MAX];
    int rc = prepare_keys(d);

    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(dirs); i++) {
        snprintf(path, sizeof path, "%s/%s", d->dir, dirs[i]);
        rc = make_dir(path);
    }
    for (unsigned n = 1; rc == 0 && n <= d->oss; n++)
        rc = prepare_oss(d, n);
    return rc;
}

int demo_write_mds_conf(const struct demo *d)
{
    char dir[PATH_MAX];

    snprintf(dir, sizeof dir, "%s/mds", d->dir);
    return write_file(dir, "mds.conf",
                      "mds.listen = 127.0.0.1:%u\n"
                      "mds.name = mds1\n"
                      "mds.fs_name = demo\n"
                      "mds.dir = %s/mds/data\n"
                      "mds.run_dir = %s/mds/run\n"
                      "key_file = %s/key/server.key\n"
                      "net.transport = %s\n",
                      d->mds_port, d->dir, d->dir, d->dir, d->net);
}

int demo_write_oss_conf(const struct demo *d, unsigned n)
{
    char dir[PATH_MAX], targets[8192] = "", extra[96] = "";
    size_t at = 0;

    for (unsigned t = 1; t <= d->targets; t++) {
        int len = snprintf(targets + at, sizeof targets - at, "%s%s/oss%u/t%u", t > 1 ? "," : "",
                           d->targets_dir[0] ? d->targets_dir : d->dir, n, t);

        if (len < 0 || (size_t)len >= sizeof targets - at)
            return -ENAMETOOLONG;
        at += (size_t)len;
    }
    if (d->capacity[0])
        snprintf(extra, sizeof extra, "target.capacity = %s\n", d->capacity);
    snprintf(dir, sizeof dir, "%s/oss%u", d->dir, n);
    return write_file(dir, "oss.conf",
                      "oss.listen = 127.0.0.1:%u\n"
                      "oss.name = oss%u\n"
                      "oss.targets = %s\n"
                      "oss.mds = 127.0.0.1:%u\n"
                      "oss.run_dir = %s/oss%u/run\n"
                      "key_file = %s/key/server.key\n"
                      "net.transport = %s\n%s",
                      d->oss_port[n - 1], n, targets, d->mds_port, d->dir, n, d->dir, d->net,
                      extra);
}

int demo_write_admin_conf(const struct demo *d)
{
    return write_file(d->dir, "admin.conf", "mds = 127.0.0.1:%u\nkey_file = %s/key/admin.key\n",
                      d->mds_port, d->dir);
}

static bool exists(const struct demo *d)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/demo.json", d->dir);
    return access(path, F_OK) == 0;
}

int demo_resolve(struct demo *d, const char *dir, bool *ret_made)
{
    int rc;

    if (!dir)
        dir = geteuid() == 0 ? "/var/lib/aifs-demo" : NULL;
    if (!dir) {
        admin_error("demo: say where with --dir DIR");
        return ADMIN_USAGE;
    }
    if (!ret_made && access(dir, F_OK) != 0 && errno == ENOENT) {
        snprintf(d->dir, sizeof d->dir, "%s", dir); /* there is no demo there, then */
        return ADMIN_OK;
    }
    rc = demo_path_resolve(dir, d->dir, sizeof d->dir);
    if (rc == ADMIN_OK && ret_made && !exists(d)) /* one that is there goes on as it is */
        rc = demo_path_check(d->dir);
    if (rc != ADMIN_OK || !ret_made)
        return rc;
    *ret_made = mkdir(d->dir, 0755) == 0;
    return *ret_made || errno == EEXIST ? ADMIN_OK
                                        : admin_fail(-errno, "demo: cannot make %s", d->dir);
}

/* Who has waited for it looks whether it is still this one: it goes with what it belongs to. */
int demo_lock(const struct demo *d, bool *ret_made)
{
    char path[PATH_MAX];
    struct stat held, there;

    snprintf(path, sizeof path, "%s/lock", d->dir);
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
        bool made = fd >= 0;

        if (!made && errno == EEXIST)
            fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
        if (fd >= 0)
            admin_waits_for("demo: another command works on %s: it is waited for", d->dir);
        if (fd < 0 || flock(fd, LOCK_EX) != 0 || fstat(fd, &held) != 0)
            return admin_fail(-errno, "demo: cannot lock %s", path);
        admin_waited();
        if (stat(path, &there) == 0 && there.st_ino == held.st_ino && there.st_dev == held.st_dev) {
            if (ret_made)
                *ret_made = made;
            return ADMIN_OK;
        }
        close(fd);
    }
}

static int say_none(const struct demo *d)
{
    admin_error("there is no demo in %s (start one with: aifs-admin demo up --dir %s)", d->dir,
                d->dir);
    return ADMIN_NOT_FOUND;
}

int demo_say_damaged(const struct demo *d, int err)
{
    if (err != -EINVAL)
        return admin_fail(err, "demo: cannot read %s/demo.json", d->dir);
    admin_error("demo: %s/demo.json is damaged, so what belongs to this demo is not known. Its "
                "servers and mounts are processes with %s/ in their command line (pgrep -af %s/): "
                "unmount and end them, then remove the directory",
                d->dir, d->dir, d->dir);
    return ADMIN_FAILED;
}

int demo_open(struct demo *d, const char *dir)
{
    bool made = false;
    int rc = demo_resolve(d, dir, NULL);

    if (rc != ADMIN_OK)
        return rc;
    if (!exists(d))
        return say_none(d);
    rc = demo_lock(d, &made);
    if (rc != ADMIN_OK)
        return rc;
    rc = demo_load(d);
    if (rc == -ENOENT) { /* who had the lock has purged it */
        char path[PATH_MAX];

        snprintf(path, sizeof path, "%s/lock", d->dir);
        if (made)
            unlink(path);
        return say_none(d);
    }
    return rc < 0 ? demo_say_damaged(d, rc) : ADMIN_OK;
}
