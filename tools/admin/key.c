/* SPDX-License-Identifier: Apache-2.0 */
/* `key`: the keys of a cluster. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tools/admin/admin.h"

static int not_saved(int rc, const char *path)
{
    if (rc != -EEXIST)
        return admin_fail(rc, "%s", path);
    admin_error("%s is there already: no key is overwritten", path);
    return ADMIN_CONFLICT;
}

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
        return not_saved(rc, argv[0]);
    uuid_format(&key.cluster, id);
    if (!a->quiet && !a->json)
        printf("key of the new cluster %s, role server: %s\n", id, argv[0]);
    out_fields(
        a, "aifs.key.create/1",
        (struct out_field[]){{"file", argv[0], 0}, {"role", "server", 0}, {"cluster", id, 0}}, 3);
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
    if (key.role != CRYPTO_ROLE_SERVER) {
        admin_error("%s is a key of role %s: keys are derived from the one of role server", argv[0],
                    crypto_role_name(key.role));
        return ADMIN_PERMISSION;
    }
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (strcmp(argv[1], crypto_role_name(roles[i])) != 0)
            continue;
        rc = crypto_key_derive(&key, roles[i], &derived);
        if (rc == 0)
            rc = crypto_key_save(argv[2], &derived);
        if (rc < 0)
            return not_saved(rc, argv[2]);
        if (!a->quiet && !a->json)
            printf("key of role %s: %s\n", argv[1], argv[2]);
        out_fields(a, "aifs.key.derive/1",
                   (struct out_field[]){{"file", argv[2], 0}, {"role", argv[1], 0}}, 2);
        return ADMIN_OK;
    }
    return admin_usage("key", "derive", "a role is admin or client, not \"%s\"", argv[1]);
}
