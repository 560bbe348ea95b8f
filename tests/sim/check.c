/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linearizability, by search (Wing and Gong, "Testing and verifying concurrent objects", 1993, in
 * the just-in-time form of Lowe, "Testing for linearizability", 2017): the set of all pairs of a
 * model and the operations that have taken effect in it, carried along the history. A call adds a
 * possibility; at an answer every pair that has not yet done this operation tries all orders of
 * those under way until it has, or is dropped. No pair left: nothing explains the answer.
 *
 * An operation whose outcome is unknown may take effect until its client's session has ended
 * (OP_LOSE), or never. One that is still waiting in its client then may go on in the next session,
 * until it is answered.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/model.h"
#include "tests/sim/sim.h"

#define PAIRS_MAX   6000u
#define TABLE_SIZE  16384u
#define PENDING_MAX 32u

struct pair {
    struct model model;
    uint64_t done; /* of the pending places */
    uint64_t hash;
};

struct set {
    struct pair *pairs;
    unsigned n;
    uint32_t *table; /* index + 1 */
};

struct search {
    const struct history *h;
    struct set now, next;
    const struct op *pending[PENDING_MAX];
    uint8_t place[SIM_OPS_MAX], dir[SIM_OPS_MAX];
    bool too_much;
};

static struct search search;

static bool only_reads(enum op_kind k)
{
    return k == OP_LOOKUP || k == OP_GETATTR || k == OP_READDIR || k == OP_GETXATTR ||
           k == OP_READLINK || k == OP_READ || k == OP_FLUSH || k == OP_FSYNC;
}

/* ---- sets ---- */

static uint64_t hash_of(const struct pair *p)
{
    uint64_t x = p->done * 0x9e3779b97f4a7c15ull, w[4];
    const uint8_t *at = (const uint8_t *)&p->model;

    for (size_t i = 0; i < sizeof p->model; i += sizeof w) {
        memset(w, 0, sizeof w);
        memcpy(w, at + i, MIN(sizeof w, sizeof p->model - i));
        x = (x ^ w[0] ^ (w[1] << 17 | w[1] >> 47)) * 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 31) ^ w[2] ^ (w[3] << 29 | w[3] >> 35)) * 0xbf58476d1ce4e5b9ull;
    }
    return x ^ (x >> 29);
}

static void set_clear(struct set *s)
{
    if (!s->pairs) {
        s->pairs = malloc(PAIRS_MAX * sizeof *s->pairs);
        s->table = malloc(TABLE_SIZE * sizeof *s->table);
        SIM_CHECK(s->pairs && s->table);
        memset(s->table, 0, TABLE_SIZE * sizeof *s->table);
    }
    for (unsigned i = 0; i < s->n; i++) {
        uint32_t at = (uint32_t)(s->pairs[i].hash % TABLE_SIZE);

        for (; s->table[at]; at = (at + 1) % TABLE_SIZE)
            s->table[at] = 0;
    }
    s->n = 0;
}

/* Fills it in at set->pairs[set->n] first. */
static void set_keep_last(struct search *s, struct set *set)
{
    struct pair *p = &set->pairs[set->n];
    uint32_t at;

    p->hash = hash_of(p);
    for (at = (uint32_t)(p->hash % TABLE_SIZE); set->table[at]; at = (at + 1) % TABLE_SIZE) {
        const struct pair *other = &set->pairs[set->table[at] - 1];

        if (other->hash == p->hash && other->done == p->done &&
            memcmp(&other->model, &p->model, sizeof p->model) == 0)
            return;
    }
    set->table[at] = ++set->n;
    if (set->n == PAIRS_MAX) {
        s->too_much = true;
        set->n--;
        set->table[at] = 0;
    }
}

/* ---- the search ---- */

/* o belongs to the session that lose ends. */
static bool dies_with(const struct search *s, const struct op *o, const struct op *lose)
{
    if (!o->unknown || o->ends || o->client != lose->client || o->call > lose->end ||
        (lose->answer && o->answer > lose->answer))
        return false;
    for (unsigned i = 0; i < s->h->n; i++) {
        const struct op *other = &s->h->ops[i];

        if (other->kind == OP_LOSE && other->client == o->client && other->end > o->call &&
            other->end < lose->end)
            return false;
    }
    return true;
}

/* set->pairs[from] with pending operation k done, as the last one of the set `to`. */
static bool step(struct search *s, const struct pair *from, unsigned k, struct set *to)
{
    const struct op *o = s->pending[k];
    struct pair *p = &to->pairs[to->n];
    size_t index = (size_t)(o - s->h->ops);

    memcpy(p, from, sizeof *p);
    if (!model_do(&p->model, o, s->place[index], s->dir[index]))
        return false;
    p->done |= 1ull << k;
    for (unsigned i = 0; o->kind == OP_LOSE && i < PENDING_MAX; i++)
        if (s->pending[i] && dies_with(s, s->pending[i], o))
            p->done |= 1ull << i;
    return true;
}

static void keep_without(struct search *s, const struct pair *from, unsigned k)
{
    struct pair *p = &s->next.pairs[s->next.n];

    memcpy(p, from, sizeof *p);
    p->done &= ~(1ull << k);
    set_keep_last(s, &s->next);
}

/* Operation k has taken effect by now; if it is not known whether it ever does: or never will. */
static bool answer(struct search *s, unsigned k)
{
    bool maybe = s->pending[k]->unknown;

    set_clear(&s->next);
    for (unsigned i = 0; i < s->now.n && !s->too_much; i++) {
        bool done = s->now.pairs[i].done >> k & 1;

        if (done || maybe)
            keep_without(s, &s->now.pairs[i], k);
        for (unsigned j = 0; j < PENDING_MAX && !done && !s->too_much; j++)
            if (s->pending[j] && !(s->now.pairs[i].done >> j & 1) &&
                step(s, &s->now.pairs[i], j, &s->now))
                set_keep_last(s, &s->now); /* looked at in its turn */
    }
    s->pending[k] = NULL;
    struct set swap = s->now;
    s->now = s->next;
    s->next = swap;
    return s->now.n > 0 || s->too_much;
}

static bool call(struct search *s, const struct op *o)
{
    unsigned k = 0;

    if (o->unknown && only_reads(o->kind))
        return true;
    while (k < PENDING_MAX && s->pending[k])
        k++;
    if (k == PENDING_MAX)
        return false;
    s->pending[k] = o;
    return true;
}

/* Its answer, an error that says nothing: it waited in its client when the session ended. */
static bool outlived_session(const struct search *s, const struct op *o)
{
    for (unsigned i = 0; i < s->h->n; i++) {
        const struct op *lose = &s->h->ops[i];

        if (lose->kind == OP_LOSE && lose->client == o->client && lose->answer > o->call &&
            lose->answer < o->answer)
            return true;
    }
    return false;
}

/* After the end of its session nothing that was unknown happens any more. */
static void bury(struct search *s, const struct op *o)
{
    for (unsigned k = 0; k < PENDING_MAX; k++) {
        if (!s->pending[k] || s->pending[k] == o || !dies_with(s, s->pending[k], o))
            continue;
        s->pending[k] = NULL;
        for (unsigned i = 0; i < s->now.n; i++)
            s->now.pairs[i].done &= ~(1ull << k);
    }
}

static bool event(struct search *s, const struct op *o, bool is_answer)
{
    if (!is_answer) {
        s->too_much |= !call(s, o);
        return true;
    }
    for (unsigned k = 0; k < PENDING_MAX; k++) {
        if (s->pending[k] != o || (o->unknown && !o->ends && !outlived_session(s, o)))
            continue;
        if (!answer(s, k))
            return false;
        if (o->kind == OP_LOSE)
            bury(s, o);
        return true;
    }
    return true;
}

static void number_places(struct search *s)
{
    unsigned place = 1, dir = 1;

    for (unsigned i = 0; i < s->h->n; i++) {
        const struct op *o = &s->h->ops[i];

        if (o->kind != OP_CREATE && o->kind != OP_MKDIR && o->kind != OP_SYMLINK &&
            o->kind != OP_TMPFILE)
            continue;
        SIM_CHECK(place < MODEL_INODES && dir < MODEL_DIRS + (o->kind != OP_MKDIR));
        s->place[i] = (uint8_t)place++;
        s->dir[i] = o->kind == OP_MKDIR ? (uint8_t)dir++ : 0;
    }
}

int history_check(const struct history *h, const struct op **ret_op)
{
    struct search *s = &search;
    static struct {
        const struct op *op;
        bool is_answer;
    } at[8 * SIM_OPS_MAX]; /* some numbers of the sequence are nobody's */

    SIM_CHECK(h->next <= ARRAY_LEN(at));
    s->h = h;
    s->too_much = false;
    memset(s->pending, 0, sizeof s->pending);
    memset(at, 0, sizeof at);
    number_places(s);
    for (unsigned i = 0; i < h->n; i++) {
        if (op_is_lock(h->ops[i].kind))
            continue;
        at[h->ops[i].call].op = &h->ops[i];
        at[h->ops[i].call].is_answer = false;
        at[h->ops[i].answer].op = h->ops[i].answer ? &h->ops[i] : NULL;
        at[h->ops[i].answer].is_answer = true;
    }
    set_clear(&s->now);
    set_clear(&s->next);
    memset(&s->now.pairs[0], 0, sizeof s->now.pairs[0]);
    model_init(&s->now.pairs[0].model, h->root);
    set_keep_last(s, &s->now);
    for (uint32_t e = 1; e < h->next && !s->too_much; e++) {
        if (at[e].op && !event(s, at[e].op, at[e].is_answer)) {
            *ret_op = at[e].op;
            return 1;
        }
    }
    return s->too_much ? -1 : 0;
}
