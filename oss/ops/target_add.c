// SPDX-License-Identifier: Apache-2.0
/* OSS_TARGET_ADD, from an administrator: format a directory, open it, and tell the cluster. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/oss.h"

/* A mount point whose disk is not mounted would be made as well as a misspelt one; and nothing is
 * written below it where the cluster knows that a target lived. */
static int add_there_is(const struct msg_target_add_req *m)
{
    char path[MSG_PATH_MAX + 1], err[256];
    struct super super;
    struct stat st;

    snprintf(path, sizeof path, "%.*s", (int)m->path.len, (const char *)m->path.data);
    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    return m->lived && super_load(path, &super, err, sizeof err) == -ENOENT ? -AIFS_ENOTARGET : 0;
}

void oss_op_target_add(struct oss_request *r)
{
    const struct msg_target_add_req *m = r->msg;
    char spec[MSG_PATH_MAX + MSG_NAME_MAX + 2], text[MSG_PATH_MAX + 512];
    struct msg_target_add_rep rep = {.text = {text, 0}};
    uint32_t n = r->oss->n_targets;
    int rc = 0;

    if (!m->path.len || m->path.len > MSG_PATH_MAX || m->pool.len > MSG_NAME_MAX ||
        memchr(m->path.data, 0, m->path.len)) {
        oss_reply(r, -EINVAL, NULL);
        return;
    }
    snprintf(spec, sizeof spec, "%.*s:%.*s", (int)m->path.len, (const char *)m->path.data,
             m->pool.len ? (int)m->pool.len : 7,
             m->pool.len ? (const char *)m->pool.data : "default");
    rc = add_there_is(m);
    if (rc) {
        oss_reply(r, rc, NULL);
        return;
    }
    rc = oss_target_add(r->oss, spec, text, sizeof text);
    if (rc) {
        LOG_WARN("oss", "target add %s: %s", spec, text);
        oss_reply(r, rc, NULL);
        return;
    }
    rc = oss_targets_remember(r->oss);
    if (rc)
        LOG_WARN("oss", "the new target is not remembered (%s): add it to oss.targets",
                 err_text(rc));
    snprintf(text, sizeof text, "%s is formatted", chunk_store_path(r->oss->targets[n].store));
    rep.text.len = (uint32_t)strlen(text);
    rep.uuid = chunk_store_super(r->oss->targets[n].store)->target;
    oss_cluster_register(r->oss);
    oss_reply(r, 0, &rep);
}
