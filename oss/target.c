// SPDX-License-Identifier: Apache-2.0
/*
 * The targets of this server: opened from the configuration at start, added online by an
 * administrator. One that was added is remembered in the file `added` of the first target until
 * the configuration names it. An empty directory is formatted once the metadata server has shown
 * that it is of our cluster: a wrong key writes nowhere. One that is not there is left out, for the
 * others have data to serve; any other that cannot be opened keeps the server from starting: it
 * would look like lost data.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
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

static int target_of_another(const struct oss *o, const char *dir, const struct super *s, char *err,
                             size_t err_len)
{
    char its[UUID_TEXT_BYTES], ours[UUID_TEXT_BYTES];

    uuid_format(&s->cluster, its);
    uuid_format(&o->key.cluster, ours);
    snprintf(err, err_len, "%s is a target of cluster %s, and the key of this server of cluster %s",
             dir, its, ours);
    return -AIFS_ECLUSTER;
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

static bool same_dir(const char *a, const char *b)
{
    char real_a[PATH_MAX], real_b[PATH_MAX];

    return realpath(a, real_a) && realpath(b, real_b) && !strcmp(real_a, real_b);
}

static bool target_is_known(const struct oss *o, const char *dir)
{
    char blank[PATH_MAX], pool[SUPER_POOL_BYTES];

    for (uint32_t i = 0; i < o->n_targets; i++)
        if (!o->targets[i].away && same_dir(dir, chunk_store_path(o->targets[i].store)))
            return true;
    for (uint32_t i = 0; i < o->n_blank; i++)
        if (!target_parse(o->blank[i], blank, sizeof blank, pool, sizeof pool) &&
            same_dir(dir, blank))
            return true;
    return false;
}

/* A copy of a directory: which of the two has what was written last nobody could tell. */
static int target_is_twice(const struct oss *o, const char *dir, const struct super *s, char *err,
                           size_t err_len)
{
    for (uint32_t i = 0; i < o->n_targets; i++) {
        const struct chunk_store *other = o->targets[i].store;

        if (!uuid_equal(&chunk_store_super(other)->target, &s->target))
            continue;
        snprintf(err, err_len, "%s is the same target as %s, or a copy of it", dir,
                 chunk_store_path(other));
        return -ENOTUNIQ;
    }
    return 0;
}

static void target_fence(void *arg, uint64_t session, uint32_t generation)
{
    if (oss_session_fence(arg, session, generation))
        LOG_ERROR("oss", "out of memory: a fence is not in force before registration");
}

static int target_open(struct oss *o, const char *dir, char *err, size_t err_len)
{
    struct oss_target *t = &o->targets[o->n_targets];
    struct chunk_store_options options;
    int rc;

    target_options(o, dir, &options);
    rc = chunk_store_open(&options, &t->store);
    if (rc) {
        snprintf(err, err_len, "%s: %s", dir,
                 rc == -EBUSY    ? "another server has it open"
                 : rc == -ENOENT ? "a part of this target is missing"
                                 : err_text(rc));
        return rc == -ENOENT ? -AIFS_ECORRUPT : rc; /* the directory is there */
    }
    t->oss = o;
    t->id = chunk_store_super(t->store)->target_id;
    snprintf(t->pool, sizeof t->pool, "%s", chunk_store_super(t->store)->pool);
    o->n_targets++;
    chunk_store_fences(t->store, target_fence, o);
    return 0;
}

static int target_format(struct oss *o, const char *dir, const char *pool, char *err,
                         size_t err_len)
{
    int rc = super_format(dir, &o->key.cluster, &o->node, pool, err, err_len);

    if (!rc)
        LOG_INFO("oss", "%s: formatted as a new target for pool %s", dir, pool);
    return rc;
}

static int target_note_blank(struct oss *o, const char *spec, const char *dir, const char *pool,
                             char *err, size_t err_len)
{
    int rc = super_check_new(dir, pool, err, err_len);

    if (rc)
        return rc;
    o->blank[o->n_blank] = mem_strdup(spec);
    if (!o->blank[o->n_blank])
        return -ENOMEM;
    o->n_blank++;
    return 0;
}

static int target_take(struct oss *o, const char *spec, bool at_start, char *err, size_t err_len)
{
    char dir[PATH_MAX], pool[SUPER_POOL_BYTES];
    struct super s;
    int rc = target_parse(spec, dir, sizeof dir, pool, sizeof pool);

    if (rc) {
        snprintf(err, err_len, "'%s' is not an absolute path, or path:pool", spec);
        return rc;
    }
    if (o->n_targets + o->n_blank == OSS_TARGETS_MAX || target_is_known(o, dir)) {
        rc = target_is_known(o, dir) ? -EEXIST : -ENFILE;
        snprintf(err, err_len, "%s: %s", dir,
                 rc == -EEXIST ? "is a target of this server already" : "too many targets");
        return rc;
    }
    rc = super_load(dir, &s, err, err_len);
    if (rc == -ENOENT && at_start)
        return target_note_blank(o, spec, dir, pool, err, err_len);
    if (rc == -ENOENT)
        rc = target_format(o, dir, pool, err, err_len);
    else if (!rc && !uuid_equal(&s.cluster, &o->key.cluster))
        rc = target_of_another(o, dir, &s, err, err_len);
    else if (!rc)
        rc = target_is_twice(o, dir, &s, err, err_len);
    return rc ? rc : target_open(o, dir, err, err_len);
}

int oss_target_add(struct oss *o, const char *spec, char *err, size_t err_len)
{
    return target_take(o, spec, false, err, err_len);
}

bool oss_targets_format_next(struct oss *o)
{
    char err[PATH_MAX + 512], *spec;
    int rc;

    if (!o->n_blank)
        return false;
    spec = o->blank[0];
    memmove(o->blank, o->blank + 1, --o->n_blank * sizeof *o->blank);
    rc = oss_target_add(o, spec, err, sizeof err);
    if (rc)
        LOG_ERROR("oss", "%s; it is looked at again when this server starts again", err);
    mem_free(spec);
    return true;
}

/* One that is not there is missed by whoever knows it; err keeps the last one. */
static int target_at_start(struct oss *o, const char *spec, char *err, size_t err_len)
{
    int rc = target_take(o, spec, true, err, err_len);

    if (rc != -ENOENT)
        return rc;
    LOG_ERROR("oss", "%s It is left out until this server starts again and finds it", err);
    return 0;
}

static int targets_open_added_of(struct oss *o, const char *first, char *err, size_t err_len)
{
    char path[PATH_MAX], line[PATH_MAX];
    FILE *f;
    int rc = 0;

    snprintf(path, sizeof path, "%s/" ADDED_FILE, first);
    f = fopen(path, "re");
    if (!f)
        return 0;
    while (!rc && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        rc = target_at_start(o, line, err, err_len);
        if (rc == -EEXIST)
            rc = 0; /* the configuration names it by now */
    }
    fclose(f);
    return rc;
}

/* The first one has it, and which is the first changes with the configuration. */
static int targets_open_added(struct oss *o, char *err, size_t err_len)
{
    uint32_t n = o->n_targets;
    int rc = 0;

    for (uint32_t i = 0; i < n && !rc; i++)
        rc = targets_open_added_of(o, chunk_store_path(o->targets[i].store), err, err_len);
    return rc;
}

static bool is_configured(const struct oss *o, const char *path)
{
    char *copy =
        conf_str(o->conf, "oss.targets") ? mem_strdup(conf_str(o->conf, "oss.targets")) : 0;
    char dir[PATH_MAX], pool[SUPER_POOL_BYTES], *save = NULL;
    bool found = false;

    for (char *t = copy ? strtok_r(copy, ", ", &save) : NULL; t && !found;
         t = strtok_r(NULL, ", ", &save))
        found = !target_parse(t, dir, sizeof dir, pool, sizeof pool) && !strcmp(dir, path);
    mem_free(copy);
    return found;
}

static bool is_open_at(const struct oss *o, const char *path)
{
    for (uint32_t i = 0; i < o->n_targets; i++)
        if (!strcmp(chunk_store_path(o->targets[i].store), path))
            return true;
    return false;
}

/* What was added and was not there at start: it may come back. */
static void remember_absent(const struct oss *o, const char *added, struct strbuf *to)
{
    char line[PATH_MAX];
    FILE *f = fopen(added, "re");

    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!is_configured(o, line) && !is_open_at(o, line))
            strbuf_printf(to, "%s\n", line);
    }
    if (f)
        fclose(f);
}

int oss_targets_remember(struct oss *o)
{
    char path[PATH_MAX];
    struct strbuf text;
    int rc;

    if (chunk_store_is_away(o->targets[0].store)) /* whatever is there is not ours */
        return -AIFS_ENOTARGET;
    snprintf(path, sizeof path, "%s/" ADDED_FILE, chunk_store_path(o->targets[0].store));
    strbuf_init(&text);
    for (uint32_t i = 1; i < o->n_targets; i++)
        if (!is_configured(o, chunk_store_path(o->targets[i].store)))
            strbuf_printf(&text, "%s\n", chunk_store_path(o->targets[i].store));
    remember_absent(o, path, &text);
    rc = strbuf_failed(&text) ? -ENOMEM : file_replace(path, text.data, text.len, 0644);
    strbuf_fini(&text);
    return rc;
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
    uint32_t n_named = 0;
    int rc = 0;

    copy = list ? mem_strdup(list) : NULL;
    if (copy)
        targets_find_node(o, copy);
    mem_free(copy);
    copy = list ? mem_strdup(list) : NULL;
    for (char *t = copy ? strtok_r(copy, ", ", &save) : NULL; t && !rc;
         t = strtok_r(NULL, ", ", &save), n_named++)
        rc = target_at_start(o, t, err, err_len);
    mem_free(copy);
    if (!rc && n_named && !o->n_targets && !o->n_blank)
        rc = -ENOENT; /* none of them is there, as err says of one */
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

    while (o->n_blank)
        mem_free(o->blank[--o->n_blank]);
    if (!c) { /* no clean end then: what is committed is safe */
        o->left_open = true;
        done(arg);
        return;
    }
    *c = (struct closing){o, done, arg};
    oss_targets_look_stop(o, nobody_looks, c); /* it looks at what is to be closed */
}
