// SPDX-License-Identifier: Apache-2.0
/*
 * The targets of this server: opened from the configuration at start, formatted when empty, added
 * online by an administrator. One that was added is remembered in the file `added` of the first
 * target until the configuration names it. A target that cannot be opened keeps the server from
 * starting: it would look like lost data.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/oss.h"

#define ADDED_FILE "added"

struct oss_target *oss_target_find(struct oss *o, uint32_t id)
{
    for (uint32_t i = 0; id && i < o->n_targets; i++)
        if (o->targets[i].id == id && !o->targets[i].away)
            return &o->targets[i];
    return NULL;
}

void oss_target_stat(struct oss_target *t, struct msg_target_stat *ret_stat)
{
    const struct super *super = chunk_store_super(t->store);
    const char *path = chunk_store_path(t->store);
    struct chunk_stat st;

    chunk_store_stat(t->store, &st);
    *ret_stat = (struct msg_target_stat){
        .id = t->id,
        .uuid = super->target,
        .path = {path, (uint32_t)strlen(path)},
        .pool = {super->pool, (uint32_t)strlen(super->pool)},
        .total_bytes = st.total_bytes,
        .free_bytes = st.free_bytes,
        .used_bytes = st.used_bytes,
        .chunks = st.chunks,
        .verifier = chunk_store_verifier(t->store),
        .errors = (uint32_t)MIN(st.errors, UINT32_MAX),
    };
}

static void target_options(struct oss *o, const char *path, struct chunk_store_options *ret)
{
    chunk_store_options_default(ret);
    ret->path = path;
    ret->reactor = o->reactor;
    ret->fio = o->fio;
    ret->cluster = o->key.cluster;
    ret->engine = conf_str(o->conf, "target.engine");
    ret->capacity_bytes = conf_u64(o->conf, "target.capacity");
    ret->cache_bytes = conf_u64(o->conf, "target.cache");
    ret->log_bytes = conf_u64(o->conf, "target.log");
    ret->dirty_bytes = conf_u64(o->conf, "target.dirty");
    ret->commit_interval_ns = conf_u64(o->conf, "target.commit_interval");
    ret->memtable_bytes = conf_u64(o->conf, "target.memtable");
    ret->block_cache_bytes = conf_u64(o->conf, "target.index_cache");
    ret->tombstone_ns = conf_u64(o->conf, "target.tombstone_time");
    ret->mapped_bytes = conf_u64(o->conf, "target.mapped");
    ret->ready_bytes = conf_u64(o->conf, "target.ready");
}

/* Formats dir unless it is a target already. The node id comes from the first target there is. */
static int target_prepare(struct oss *o, const char *dir, const char *pool, char *err,
                          size_t err_len)
{
    struct super s;
    int rc = super_load(dir, &s, err, err_len);

    if (rc == -ENOENT) {
        if (uuid_is_zero(&o->node) && (rc = uuid_random(&o->node)))
            return rc;
        rc = super_format(dir, &o->key.cluster, &o->node, pool, err, err_len);
        if (!rc)
            LOG_INFO("oss", "%s: formatted as a new target for pool %s", dir, pool);
        return rc;
    }
    if (!rc && uuid_is_zero(&o->node))
        o->node = s.node;
    return rc;
}

/* dir[:pool]; the colon counts only when no slash follows it. */
static int target_parse(const char *spec, char *dir, size_t dir_len, char *pool, size_t pool_len)
{
    const char *colon = strrchr(spec, ':');
    size_t len = colon && !strchr(colon, '/') ? (size_t)(colon - spec) : strlen(spec), all = len;

    while (len > 1 && spec[len - 1] == '/') /* one path, one text: the metadata server compares */
        len--;
    if (!len || len >= dir_len || strpbrk(spec, "\n\r") || spec[0] != '/')
        return -EINVAL;
    memcpy(dir, spec, len);
    dir[len] = 0;
    snprintf(pool, pool_len, "%s", spec[all] == ':' ? spec + all + 1 : "default");
    return 0;
}

static bool target_is_open(const struct oss *o, const char *dir)
{
    char a[PATH_MAX], b[PATH_MAX];

    for (uint32_t i = 0; i < o->n_targets; i++)
        if (!o->targets[i].away && realpath(dir, a) &&
            realpath(chunk_store_path(o->targets[i].store), b) && !strcmp(a, b))
            return true;
    return false;
}

static void target_fence(void *arg, uint64_t session, uint32_t generation)
{
    if (oss_session_fence(arg, session, generation))
        LOG_ERROR("oss", "out of memory: a fence is not in force before registration");
}

int oss_target_add(struct oss *o, const char *spec, char *err, size_t err_len)
{
    struct oss_target *t = &o->targets[o->n_targets];
    char dir[PATH_MAX], pool[SUPER_POOL_BYTES];
    struct chunk_store_options options;
    int rc = target_parse(spec, dir, sizeof dir, pool, sizeof pool);

    if (rc) {
        snprintf(err, err_len, "'%s' is not an absolute path, or path:pool", spec);
        return rc;
    }
    if (o->n_targets == OSS_TARGETS_MAX || target_is_open(o, dir)) {
        rc = o->n_targets == OSS_TARGETS_MAX ? -ENFILE : -EEXIST;
        snprintf(err, err_len, "%s: %s", dir,
                 rc == -EEXIST ? "is a target of this server already" : "too many targets");
        return rc;
    }
    rc = target_prepare(o, dir, pool, err, err_len);
    if (rc)
        return rc;
    target_options(o, dir, &options);
    rc = chunk_store_open(&options, &t->store);
    if (rc) {
        snprintf(err, err_len, "%s: %s", dir,
                 rc == -EBUSY ? "another server has it open" : err_text(rc));
        return rc;
    }
    t->oss = o;
    t->id = chunk_store_super(t->store)->target_id;
    snprintf(t->pool, sizeof t->pool, "%s", chunk_store_super(t->store)->pool);
    o->n_targets++;
    chunk_store_fences(t->store, target_fence, o);
    return 0;
}

static int targets_open_added(struct oss *o, char *err, size_t err_len)
{
    char path[PATH_MAX], line[PATH_MAX];
    FILE *f;
    int rc = 0;

    if (!o->n_targets)
        return 0;
    snprintf(path, sizeof path, "%s/" ADDED_FILE, chunk_store_path(o->targets[0].store));
    f = fopen(path, "re");
    if (!f)
        return 0;
    while (!rc && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        rc = oss_target_add(o, line, err, err_len);
        if (rc == -EEXIST)
            rc = 0; /* the configuration names it by now */
    }
    fclose(f);
    return rc;
}

int oss_targets_remember(struct oss *o)
{
    char path[PATH_MAX], tmp[PATH_MAX + 8];
    const char *configured = conf_str(o->conf, "oss.targets");
    FILE *f;
    int rc = 0;

    if (chunk_store_is_away(o->targets[0].store)) /* whatever is there is not ours */
        return -AIFS_ENOTARGET;
    snprintf(path, sizeof path, "%s/" ADDED_FILE, chunk_store_path(o->targets[0].store));
    snprintf(tmp, sizeof tmp, "%s.new", path);
    f = fopen(tmp, "we");
    if (!f)
        return -errno;
    for (uint32_t i = 1; i < o->n_targets; i++)
        if (!configured || !strstr(configured, chunk_store_path(o->targets[i].store)))
            fprintf(f, "%s\n", chunk_store_path(o->targets[i].store));
    if (fflush(f) || fsync(fileno(f)) < 0)
        rc = -errno;
    if (fclose(f) && !rc)
        rc = -errno;
    if (!rc && rename(tmp, path) < 0)
        rc = -errno;
    return rc ? rc : super_sync_dir(chunk_store_path(o->targets[0].store));
}

/* The first formatted target says who we are, before new ones are formatted. */
static void targets_find_node(struct oss *o, char *list)
{
    char dir[PATH_MAX], pool[SUPER_POOL_BYTES], err[256], *save = NULL;
    struct super s;

    for (char *t = strtok_r(list, ", ", &save); t; t = strtok_r(NULL, ", ", &save))
        if (uuid_is_zero(&o->node) && !target_parse(t, dir, sizeof dir, pool, sizeof pool) &&
            !super_load(dir, &s, err, sizeof err))
            o->node = s.node;
}

int oss_targets_open(struct oss *o, char *err, size_t err_len)
{
    const char *list = conf_str(o->conf, "oss.targets");
    char *copy, *save = NULL;
    int rc = 0;

    copy = list ? mem_strdup(list) : NULL;
    if (copy)
        targets_find_node(o, copy);
    mem_free(copy);
    copy = list ? mem_strdup(list) : NULL;
    for (char *t = copy ? strtok_r(copy, ", ", &save) : NULL; t && !rc;
         t = strtok_r(NULL, ", ", &save))
        rc = oss_target_add(o, t, err, err_len);
    mem_free(copy);
    if (!rc)
        rc = targets_open_added(o, err, err_len);
    if (!rc && uuid_is_zero(&o->node)) /* none yet: an administrator will add one */
        rc = uuid_random(&o->node);
    return rc;
}

/* ---- closing, one after the other ---- */

struct closing {
    struct oss *oss;
    void (*done)(void *arg);
    void *arg;
};

static void target_closed(void *arg, int status)
{
    struct closing *c = arg;
    struct oss *o = c->oss;

    (void)status;
    while (o->n_targets) {
        struct oss_target *t = &o->targets[--o->n_targets];

        if (t->look.busy) {
            LOG_WARN("oss", "%s does not answer: ended without closing it",
                     chunk_store_path(t->store));
            o->left_open = true;
            continue;
        }
        chunk_store_close(t->store, target_closed, c);
        return;
    }
    c->done(c->arg);
    mem_free(c);
}

static void nobody_looks(void *arg)
{
    target_closed(arg, 0);
}

void oss_targets_close(struct oss *o, void (*done)(void *arg), void *arg)
{
    struct closing *c = mem_alloc(sizeof *c);

    if (!c) { /* no clean end then: what is committed is safe */
        o->left_open = true;
        done(arg);
        return;
    }
    *c = (struct closing){o, done, arg};
    oss_targets_look_stop(o, nobody_looks, c); /* it looks at what is to be closed */
}
