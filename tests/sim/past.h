/* SPDX-License-Identifier: Apache-2.0 */
/* What may be there of a number that is written, lost and seen: part of the model's value. */
#ifndef AIFS_TESTS_SIM_PAST_H
#define AIFS_TESTS_SIM_PAST_H

#include <stdbool.h>
#include <stdint.h>

#define PAST_MAX 4u
#define PAST_ANY 2u
#define PAST_OWN 2u

/*
 * A number that its writer has not made durable: the last durable one and those since, the newest
 * last. After its writer's death any of them may be there (unsure), until somebody has seen which.
 */
struct past {
    uint32_t v[PAST_MAX];
    uint8_t n;
    uint8_t owner;
    uint8_t unsure; /* PAST_OWN: its writer lives, and may see what others do not */
    uint8_t wild; /* there were more than fit; PAST_ANY: nobody knows, each time it is looked at */
};

struct past past_of(uint32_t v); /* durable */
uint32_t past_now(const struct past *p);
bool past_has(const struct past *p, uint32_t v);
void past_push(struct past *p, uint32_t v, uint8_t owner); /* written */
/* Written behind what is there now: what will be there if only that is lost. */
void past_insert(struct past *p, uint32_t v, uint8_t owner);
void past_sync(struct past *p);
void past_lose(struct past *p, uint8_t owner); /* its writer has died */
/* Its writer could not store it; and has told it, and sees what others do. */
void past_spoil(struct past *p, uint8_t owner);
void past_told(struct past *p, uint8_t owner);
/* Is what there may be not what this one sees? */
static inline bool past_is_own(const struct past *p, uint8_t who)
{
    return p->unsure == PAST_OWN && p->owner == who;
}
/* Somebody has seen it: false, it can not be. */
bool past_see(struct past *p, uint32_t v, uint8_t who);

#endif
