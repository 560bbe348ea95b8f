// SPDX-License-Identifier: Apache-2.0
/* Lists of locks; see the header. */
#include "mds/locks/list.h"

#include "common/base/compiler.h"

struct lock lock_of_msg(const struct msg_lock *m, uint64_t session)
{
    bool whole = m->kind == MSG_LOCK_FLOCK;

    return (struct lock){.start = whole ? 0 : m->start,
                         .end = whole ? MSG_LOCK_END : m->end,
                         .session = session,
                         .owner = m->owner,
                         .pid = m->pid,
                         .kind = (uint8_t)m->kind,
                         .type = (uint8_t)m->type};
}

void lock_to_msg(const struct lock *l, struct msg_lock *ret_msg)
{
    *ret_msg = (struct msg_lock){.kind = l->kind,
                                 .type = l->type,
                                 .start = l->start,
                                 .end = l->end,
                                 .owner = l->owner,
                                 .session = l->session,
                                 .pid = l->pid};
}

bool lock_same_owner(const struct lock *a, const struct lock *b)
{
    return a->session == b->session && a->owner == b->owner && a->kind == b->kind;
}

bool lock_overlaps(const struct lock *a, const struct lock *b)
{
    return a->start <= b->end && b->start <= a->end;
}

bool lock_conflicts(const struct lock *a, const struct lock *b)
{
    return a->kind == b->kind && lock_overlaps(a, b) && !lock_same_owner(a, b) &&
           a->type != MSG_LOCK_UNLOCK && b->type != MSG_LOCK_UNLOCK &&
           (a->type == MSG_LOCK_WRITE || b->type == MSG_LOCK_WRITE);
}

const struct lock *lock_list_conflict(const struct lock *list, uint32_t n, const struct lock *want)
{
    for (uint32_t i = 0; i < n; i++) {
        if (lock_conflicts(&list[i], want))
            return &list[i];
    }
    return NULL;
}

/* MSG_LOCK_END + 1 does not wrap: the end is a signed maximum. */
static bool touches(const struct lock *a, const struct lock *b)
{
    return a->start <= b->end + 1 && b->start <= a->end + 1;
}

/* What is left of l, which change's owner has, beside the range of change. */
static uint32_t put_rest(const struct lock *l, const struct lock *change, struct lock *out)
{
    uint32_t n = 0;

    if (l->start < change->start) {
        out[n] = *l;
        out[n++].end = change->start - 1;
    }
    if (l->end > change->end) {
        out[n] = *l;
        out[n++].start = change->end + 1;
    }
    return n;
}

static uint32_t insert_by_start(struct lock *list, uint32_t n, const struct lock *l)
{
    uint32_t at = n;

    for (; at > 0 && list[at - 1].start > l->start; at--)
        list[at] = list[at - 1];
    list[at] = *l;
    return n + 1;
}

uint32_t lock_list_apply(const struct lock *list, uint32_t n, const struct lock *change,
                         struct lock *out)
{
    struct lock merged = *change, rest[2];
    uint32_t n_out = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct lock *l = &list[i];
        uint32_t n_rest;

        if (lock_same_owner(l, change) && l->type == change->type && touches(l, change)) {
            merged.start = MIN(merged.start, l->start);
            merged.end = MAX(merged.end, l->end);
        } else if (lock_same_owner(l, change) && lock_overlaps(l, change)) {
            n_rest = put_rest(l, change, rest);
            for (uint32_t k = 0; k < n_rest; k++)
                n_out = insert_by_start(out, n_out, &rest[k]);
        } else {
            n_out = insert_by_start(out, n_out, l);
        }
    }
    if (change->type != MSG_LOCK_UNLOCK)
        n_out = insert_by_start(out, n_out, &merged);
    return n_out;
}

uint32_t lock_list_drop_session(struct lock *list, uint32_t n, uint64_t session)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (list[i].session != session)
            list[left++] = list[i];
    }
    return left;
}

uint32_t lock_list_count(const struct lock *list, uint32_t n, uint64_t session)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += list[i].session == session;
    return count;
}

bool lock_list_owns(const struct lock *list, uint32_t n, const struct lock *who)
{
    for (uint32_t i = 0; i < n; i++) {
        if (lock_same_owner(&list[i], who))
            return true;
    }
    return false;
}
