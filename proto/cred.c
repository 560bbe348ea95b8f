/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks; see cred.h. Pure functions: nothing can fail. */
#include "proto/cred.h"

#include <string.h>

#include "common/base/hmap.h"

static bool covers(const uint32_t *ranges, uint32_t n, uint32_t id)
{
    for (uint32_t i = 0; i + 1 < n; i += 2)
        if (id >= ranges[i] && id - ranges[i] < ranges[i + 1])
            return true;
    return false;
}

bool cred_can_user(const struct msg_cred *c, uint32_t cap, uint32_t uid)
{
    return (c->caps & cap) && (!c->mapped || covers(c->uids, c->n_uids, uid));
}

bool cred_can(const struct msg_cred *c, uint32_t cap, uint32_t uid, uint32_t gid)
{
    return cred_can_user(c, cap, uid) && (!c->mapped || covers(c->gids, c->n_gids, gid));
}

bool cred_can_all(const struct msg_cred *c, uint32_t cap)
{
    return (c->caps & cap) && !c->mapped;
}

static bool same_array(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m)
{
    return n == m && (n == 0 || memcmp(a, b, n * sizeof *a) == 0);
}

bool cred_is_same(const struct msg_cred *a, const struct msg_cred *b)
{
    return a->uid == b->uid && a->gid == b->gid && a->caps == b->caps && a->mapped == b->mapped &&
           same_array(a->groups, a->n_groups, b->groups, b->n_groups) &&
           same_array(a->uids, a->n_uids, b->uids, b->n_uids) &&
           same_array(a->gids, a->n_gids, b->gids, b->n_gids);
}

static uint64_t hash_array(const uint32_t *a, uint32_t n, uint64_t seed)
{
    return n ? hash_bytes(a, n * sizeof *a, seed) : seed;
}

uint64_t cred_hash(const struct msg_cred *c)
{
    uint32_t rest[] = {c->caps, c->mapped};

    if (!c->n_groups && !c->caps)
        return 0;
    return hash_array(c->groups, c->n_groups,
                      hash_array(c->uids, c->n_uids,
                                 hash_array(c->gids, c->n_gids, hash_bytes(rest, sizeof rest, 1))));
}

size_t cred_space(const struct msg_cred *c)
{
    return ((size_t)c->n_groups + c->n_uids + c->n_gids) * sizeof(uint32_t);
}

static const uint32_t *take(uint32_t **at, const uint32_t *from, uint32_t n)
{
    uint32_t *to = *at;

    if (!n)
        return NULL;
    memcpy(to, from, n * sizeof *to);
    *at += n;
    return to;
}

void cred_copy(struct msg_cred *dst, const struct msg_cred *src, void *space)
{
    uint32_t *at = space;

    *dst = *src;
    dst->groups = take(&at, src->groups, src->n_groups);
    dst->uids = take(&at, src->uids, src->n_uids);
    dst->gids = take(&at, src->gids, src->n_gids);
}
