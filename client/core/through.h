/* SPDX-License-Identifier: Apache-2.0 */
/* Writes under a write lease that no target has promised room for: through.c. */
#ifndef AIFS_CLIENT_CORE_THROUGH_H
#define AIFS_CLIENT_CORE_THROUGH_H

#include <stdbool.h>

#include "client/core/stripe.h"

struct core_req;

/* Of core_req.p.flags of writes. */
#define WRITE_ALONE                                                                                \
    0x40u /* on core_inode.straight, and nobody else writes anywhere in the file                   \
           */

/* The piece is stored first; then q goes on with the next, or ends. */
void through_write(struct core_req *q, const struct stripe_piece *p);
/* The small file grows first, while nobody else writes. */
void through_grow(struct core_req *q);
/* A piece of q was refused: what came before it has been written, or nothing was. */
void through_refused(struct core_req *q, int status);

#endif
