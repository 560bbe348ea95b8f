/* SPDX-License-Identifier: Apache-2.0 */
/* Large writes that leave from the caller's memory, under a write lease: straight.c. */
#ifndef AIFS_CLIENT_CORE_STRAIGHT_H
#define AIFS_CLIENT_CORE_STRAIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct core_inode;
struct core_req;

/* Of core_req.p.flags of writes. */
#define WRITE_STRAIGHT 0x10u /* is under way so, on core_inode.straight */
#define WRITE_COPIED   0x20u /* it was not durable, or its memory changes while it is sent */

/* Of a file that is to grow the chunks are not its own yet, and may never be: flushes it, for who
 * would be one. It may be found at once that the file does not grow. */
void straight_prepare(struct core_req *q);
bool straight_may(struct core_req *q); /* may this write be one? Under a write lease */
void straight_enter(struct core_req *q);
/* The transfers of a write are over. true: it was one, and has been dealt with. */
bool straight_over(struct core_req *q);
/* true: q waits until none is under way in the blocks it touches, or in the file; resume comes. */
bool straight_wait(struct core_req *q, void (*resume)(struct core_req *q));
bool straight_wait_all(struct core_req *q, void (*resume)(struct core_req *q));
bool straight_touches(const struct core_inode *i, uint64_t block);
void straight_lost(struct core_inode *i); /* the session: those that were sent fail */

#endif
