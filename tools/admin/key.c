/* SPDX-License-Identifier: Apache-2.0 */
/* `key` and `version`. */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tools/admin/cluster.h"

int cmd_key_create(struct admin *a, int argc, char **argv)
{
    struct crypto_key key;
    char id[UUID_TEXT_BYTES];
    int rc;

    if (argc != 1)
        return admin_usage("key", "create", "say into which file");
    rc = crypto_key_create(&key);
    if (rc == 0)
        rc = crypto_key_save(argv[0], &key);
    if (rc < 0)
        return admin_fail(rc, "%s", argv[0]);
    uuid_format(&key.cluster, id);
    if (!a->quiet)
        printf("key of the new cluster %s, role server: %s\n", id, argv[0]);
    return ADMIN_OK;
}

int cmd_key_derive(struct admin *a, int argc, char **argv)
{
    static const enum crypto_role roles[] = {CRYPTO_ROLE_ADMIN, CRYPTO_ROLE_CLIENT};
    struct crypto_key key, derived;
    char err[512];
    int rc;

    if (argc != 3)
        return admin_usage("key", "derive",
                           "say from which server key, for which role, into which file");
    rc = crypto_key_load(argv[0], &key, err, sizeof err);
    if (rc < 0) {
        admin_error("%s", err);
        return rc == -ENOENT ? ADMIN_NOT_FOUND : ADMIN_FAILED;
    }
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (strcmp(argv[1], crypto_role_name(roles[i])) != 0)
            continue;
        rc = crypto_key_derive(&key, roles[i], &derived);
        if (rc == 0)
            rc = crypto_key_save(argv[2], &derived);
        if (rc < 0)
            return admin_fail(rc, "%s", argv[2]);
        if (!a->quiet)
            printf("key of role %s: %s\n", argv[1], argv[2]);
        return ADMIN_OK;
    }
    return admin_usage("key", "derive", "a role is admin or client, not \"%s\"", argv[1]);
}

int cmd_version(struct admin *a, int argc, char **argv)
{
    static const struct out_column columns[] = {
        {"COMPONENT", OUT_TEXT, NULL}, {"VERSION", OUT_TEXT, NULL}, {"WIRE", OUT_COUNT, NULL}};
    struct cluster c;
    struct out *o;
    char text[64];
    bool asked = a->mds || a->config;

    if (argc != 0)
        return admin_usage("version", NULL, "unexpected argument %s", argv[0]);
    o = out_table(a, "aifs.version/1", columns, ARRAY_LEN(columns));
    out_text(o, "aifs-admin");
    out_text(o, AIFS_VERSION);
    out_number(o, 1);
    if (asked && cluster_get(a, &c) == ADMIN_OK) {
        snprintf(text, sizeof text, "%.*s", (int)c.status->version.len,
                 (const char *)c.status->version.data);
        out_text(o, "mds");
        out_text(o, text);
        out_number(o, 1);
        cluster_put(&c);
    }
    out_print(o);
    return ADMIN_OK;
}
