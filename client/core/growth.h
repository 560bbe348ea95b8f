/* SPDX-License-Identifier: Apache-2.0 */
/* A small file that grows into chunks, or can not: growth.c. GROW itself is flush.c's. */
#ifndef AIFS_CLIENT_CORE_GROWTH_H
#define AIFS_CLIENT_CORE_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

struct core_inode;

void inline_grow(struct core_inode *i); /* from now on striped; contents are cached */
/* It does not: back to what the server has. That the rest is lost has been noted as an error. */
bool growth_may_end(const struct core_inode *i); /* it is given up if it fails */
void growth_give_up(struct core_inode *i);
void growth_tell(struct core_inode *i); /* the server, of that; i->giving_up until it has heard */
/* A write up to end would reach what the targets have yet to cut: punch_wait(). */
bool growth_must_wait(const struct core_inode *i, uint64_t end);
/* Flushes it now: large writes wait for its growth to be over. background.c */
void flush_growth(struct core_inode *i);

#endif
