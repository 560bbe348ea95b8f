/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts as people and clients ask for them, against the current cluster map.
 *
 * Happy path: what was asked over what the directory says over the defaults (proto/layout.h);
 * unless a start was named, files begin on one chain after the other. Failure modes: -ENODEV for a
 * pool that does not exist, -EINVAL for a number that cannot be, -ENOSPC for a pool without
 * targets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "mds/dispatch.h"
#include "mds/ops/op.h"
#include "proto/layout.h"

/* The wishes of a directory in the form that layout_make() takes. false: it has none. */
static bool stripe_wishes(const struct cluster_map *map, const struct mds_stripe *s,
                          struct msg_stripe *ret)
{
    const struct map_pool *pool;

    if (!(s->flags & STRIPE_REC_SET))
        return false;
    *ret = (struct msg_stripe){.chunk_bytes = s->chunk_bytes,
                               .stripe_count = s->stripe_count,
                               .all = s->flags & STRIPE_REC_ALL,
                               .copies = s->copies,
                               .has_start = s->flags & STRIPE_REC_HAS_START,
                               .start = s->start};
    pool = s->pool ? map_pool(map, s->pool) : NULL;
    if (pool)
        ret->pool = (struct msg_bytes){.data = pool->name, .len = (uint32_t)strlen(pool->name)};
    return true;
}

int op_layout_new(struct mds *m, const struct mds_inode *dir, const struct msg_stripe *asked,
                  struct msg_layout *ret_layout)
{
    const struct cluster_map *map = m->cluster_ops->map(m);
    struct msg_stripe inherited;
    bool has = dir && stripe_wishes(map, &dir->stripe, &inherited);
    uint64_t turn = m->dispatch->layout_turn++;
    int rc = layout_make(map, asked, has ? &inherited : NULL, turn, ret_layout);

    if (rc < 0)
        return rc == -ENOENT ? -ENODEV : rc; /* no such pool: ENOENT would be a name's */
    if (!(asked && asked->has_start) && !(has && inherited.has_start))
        layout_turn(map, turn, ret_layout);
    return 0;
}

int op_stripe_of(struct mds *m, const struct msg_stripe *asked, struct mds_stripe *ret_stripe)
{
    const struct cluster_map *map = m->cluster_ops->map(m);
    const struct map_pool *pool = NULL;
    struct msg_layout l;

    if (asked->inherit) {
        *ret_stripe = (struct mds_stripe){0};
        return 0;
    }
    if (asked->pool.len) {
        pool = map_pool_by_name(map, asked->pool.data, asked->pool.len);
        if (!pool)
            return -ENODEV;
    }
    /* a pool may still be empty when a directory is told to use it */
    if (asked->chunk_bytes &&
        (asked->chunk_bytes < LAYOUT_CHUNK_MIN || asked->chunk_bytes > LAYOUT_CHUNK_MAX ||
         (asked->chunk_bytes & (asked->chunk_bytes - 1))))
        return -EINVAL;
    if (asked->copies > MSG_COPIES_MAX || layout_make(map, asked, NULL, 0, &l) == -EINVAL)
        return -EINVAL;
    *ret_stripe = (struct mds_stripe){.flags = STRIPE_REC_SET | (asked->all ? STRIPE_REC_ALL : 0) |
                                               (asked->has_start ? STRIPE_REC_HAS_START : 0),
                                      .pool = pool ? pool->id : 0,
                                      .chunk_bytes = asked->chunk_bytes,
                                      .stripe_count = asked->stripe_count,
                                      .copies = asked->copies,
                                      .start = asked->has_start ? asked->start : 0};
    return 0;
}

static int parse_u32(const char *text, uint32_t *ret)
{
    uint64_t v;
    int rc = text_parse_size(text, &v);

    if (rc < 0 || v > UINT32_MAX)
        return -EINVAL;
    *ret = (uint32_t)v;
    return 0;
}

/* One "name=value"; at: the same place in the original text, which outlives the copy. */
static int parse_word(char *word, const char *at, struct msg_stripe *s)
{
    char *eq = strchr(word, '=');
    const char *value;

    if (strcmp(word, "inherit") == 0) {
        s->inherit = true;
        return 0;
    }
    if (!eq)
        return -EINVAL;
    *eq = '\0';
    value = eq + 1;
    if (strcmp(word, "pool") == 0) {
        s->pool = (struct msg_bytes){.data = at + (value - word), .len = (uint32_t)strlen(value)};
        return s->pool.len && s->pool.len < MAP_NAME_BYTES ? 0 : -EINVAL;
    }
    if (strcmp(word, "chunk") == 0)
        return parse_u32(value, &s->chunk_bytes);
    if (strcmp(word, "copies") == 0)
        return parse_u32(value, &s->copies);
    if (strcmp(word, "table") == 0)
        return 0; /* part of what is told of a file; the map of the day decides */
    if (strcmp(word, "start") == 0) {
        s->has_start = true;
        return parse_u32(value, &s->start);
    }
    if (strcmp(word, "count") != 0)
        return -EINVAL;
    if (strcmp(value, "all") == 0 || strcmp(value, "0") == 0) {
        s->all = true;
        return 0;
    }
    return parse_u32(value, &s->stripe_count);
}

int op_layout_parse(const struct msg_bytes *text, struct msg_stripe *ret_stripe)
{
    struct msg_stripe s = {0};
    char copy[256], *save = NULL;
    int rc = 0;

    if (text->len == 0 || text->len >= sizeof(copy) || memchr(text->data, '\0', text->len))
        return -EINVAL;
    memcpy(copy, text->data, text->len);
    copy[text->len] = '\0';
    for (char *w = strtok_r(copy, " \t\n,", &save); w && rc == 0;
         w = strtok_r(NULL, " \t\n,", &save))
        rc = parse_word(w, (const char *)text->data + (w - copy), &s);
    if (rc == 0)
        *ret_stripe = s;
    return rc;
}

int op_layout_print(struct mds *m, const struct mds_inode *in, char *out, size_t out_len,
                    uint32_t *ret_len)
{
    const struct cluster_map *map = m->cluster_ops->map(m);
    const struct map_pool *pool;
    struct msg_layout l = in->layout;
    struct msg_stripe own;
    const char *table = "";
    int n;

    if (S_ISDIR(in->mode)) {
        bool has = stripe_wishes(map, &in->stripe, &own);

        if (layout_make(map, NULL, has ? &own : NULL, 0, &l) < 0) { /* no targets yet */
            l = (struct msg_layout){.pool = in->stripe.pool,
                                    .chunk_bytes = in->stripe.chunk_bytes,
                                    .stripe_count = in->stripe.stripe_count,
                                    .copies = MAX(in->stripe.copies, 1u)};
            if (!l.pool && (pool = layout_pool_default(map)))
                l.pool = pool->id;
            if (!l.chunk_bytes)
                l.chunk_bytes = LAYOUT_CHUNK_DEFAULT;
            table = " table=0";
        }
    }
    pool = map_pool(map, l.pool);
    n = snprintf(out, out_len, "pool=%s chunk=%u count=%u copies=%u%s", pool ? pool->name : "?",
                 l.chunk_bytes, l.stripe_count, l.copies, table);
    if (n > 0 && (size_t)n < out_len && !S_ISDIR(in->mode)) /* where it is, not what it asks for */
        n += snprintf(out + n, out_len - (size_t)n, " start=%u table=%u", l.start, l.table_len);
    if (n < 0 || (size_t)n >= out_len)
        return -ERANGE;
    *ret_len = (uint32_t)n;
    return 0;
}
