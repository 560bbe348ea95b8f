/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list: a head and the links inside the elements; the caller owns both. Not
 * thread-safe. */
#ifndef AIFS_COMMON_BASE_LIST_H
#define AIFS_COMMON_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert_(struct list *e, struct list *prev, struct list *next)
{
    e->prev = prev;
    e->next = next;
    prev->next = e;
    next->prev = e;
}

static inline void list_push_back(struct list *head, struct list *e)
{
    list_insert_(e, head->prev, head);
}

static inline void list_push_front(struct list *head, struct list *e)
{
    list_insert_(e, head, head->next);
}

/* Leaves e initialised, so that removing twice is harmless and list_empty(e) tells whether it is on
 * a list. */
static inline void list_remove(struct list *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
    list_init(e);
}

static inline struct list *list_pop_front(struct list *head)
{
    struct list *e = head->next;

    if (e == head)
        return NULL;
    list_remove(e);
    return e;
}

/* Moves all elements of src to the end of dst; src is empty afterwards. */
static inline void list_splice(struct list *dst, struct list *src)
{
    if (list_empty(src))
        return;
    src->next->prev = dst->prev;
    dst->prev->next = src->next;
    src->prev->next = dst;
    dst->prev = src->prev;
    list_init(src);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_for_each(pos, head)      for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)
#define list_for_each_safe(pos, tmp, head)                                                         \
    for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head);                               \
         (pos) = (tmp), (tmp) = (pos)->next)

#endif
