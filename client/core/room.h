/* SPDX-License-Identifier: Apache-2.0 */
/* What targets promise room for, and what has been acknowledged for it: room.c. */
#ifndef AIFS_CLIENT_CORE_ROOM_H
#define AIFS_CLIENT_CORE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct core_inode;
struct msg_write_rep;
struct oss_io;
struct oss_target;
struct stripe_piece;

/* Bytes of slots that a block may take on its target when what is dirty in it, bytes that end at
 * end, is sent. */
uint64_t room_charge(const struct core_inode *i, uint64_t index, uint32_t end, uint32_t bytes);
/* Promised by the target, with what has been acknowledged for it; 0: nothing, or too long ago. */
uint64_t room_granted(const struct oss_target *t);
uint64_t room_owed(const struct oss_target *t); /* of that: for what was acknowledged, not stored */
/* May these bytes of a block be acknowledged before they are stored? */
bool room_for(const struct core_inode *i, const struct oss_target *t, uint64_t index,
              uint32_t start, uint32_t end);
/* And an append of somebody without a lease, at about this place, be given that, or all parts of a
 * write be sent at once? */
bool room_to_append(const struct core_inode *i, uint64_t offset, uint32_t len);
void room_noted(struct oss_target *t, const struct msg_write_rep *rep);

#endif
