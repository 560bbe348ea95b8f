/* SPDX-License-Identifier: Apache-2.0 */
/* See past.h. */
#include "tests/sim/past.h"

#include <string.h>

struct past past_of(uint32_t v)
{
    return (struct past){.v = {v}, .n = 1};
}

uint32_t past_now(const struct past *p)
{
    return p->v[p->n - 1];
}

bool past_has(const struct past *p, uint32_t v)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->v[i] == v)
            return true;
    return p->wild;
}

void past_push(struct past *p, uint32_t v, uint8_t owner)
{
    if (!p->unsure && p->owner != owner)
        *p = past_of(past_now(p)); /* what others can see is durable */
    p->owner = owner;
    p->unsure = 0;
    if (p->wild == PAST_ANY) { /* what is known now; after its loss nothing is */
        *p = (struct past){.v = {v}, .n = 1, .owner = owner, .wild = 1};
        return;
    }
    if (past_now(p) == v)
        return;
    if (p->n == PAST_MAX) {
        p->wild = 1;
        memmove(p->v, p->v + 1, sizeof p->v - sizeof p->v[0]);
        p->n--;
    }
    p->v[p->n++] = v;
}

void past_insert(struct past *p, uint32_t v, uint8_t owner)
{
    if (p->unsure || p->owner != owner || p->n < 2 || past_has(p, v))
        return;
    if (p->n == PAST_MAX) {
        p->wild = 1;
        return;
    }
    p->v[p->n] = p->v[p->n - 1];
    p->v[p->n++ - 1] = v;
}

void past_sync(struct past *p)
{
    if (!p->unsure)
        *p = past_of(past_now(p));
}

void past_lose(struct past *p, uint8_t owner)
{
    if (p->owner == owner && (p->n > 1 || p->wild))
        p->unsure = 1;
}

void past_spoil(struct past *p, uint8_t owner)
{
    if (!p->unsure && p->owner == owner && (p->n > 1 || p->wild))
        p->unsure = PAST_OWN;
}

void past_told(struct past *p, uint8_t owner)
{
    if (past_is_own(p, owner))
        p->unsure = 1;
}

bool past_see(struct past *p, uint32_t v, uint8_t who)
{
    if (past_is_own(p, who))
        return past_has(p, v);
    if (p->unsure && p->wild == PAST_ANY)
        return true;
    if (p->unsure && p->wild && p->owner == who)
        return true; /* its own, which can be lost once more */
    if (p->unsure) {
        if (!past_has(p, v))
            return false;
        *p = past_of(v);
        return true;
    }
    if (past_now(p) != v)
        return false;
    if (p->owner != who)
        *p = past_of(v);
    return true;
}
