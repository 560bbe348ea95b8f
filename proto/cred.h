/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks: user, groups, and the capabilities by which a process that is not root may do more
 * (capabilities(7)). A process in a user name space of its own, as containers of users without
 * privileges are, has them only over files whose owner and group that name space knows
 * (user_namespaces(7)): then the ranges of these ids come along.
 *
 * The arrays are borrowed, as those of every message.
 */
#ifndef AIFS_PROTO_CRED_H
#define AIFS_PROTO_CRED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define MSG_GROUPS_MAX    65536u
#define MSG_ID_RANGES_MAX 340u /* of a user name space: as many as the kernel takes */

/* Bits of struct msg_cred.caps: those of Linux, of the capabilities that count here. */
#define MSG_CAP_CHOWN           (1u << 0)
#define MSG_CAP_DAC_OVERRIDE    (1u << 1)
#define MSG_CAP_DAC_READ_SEARCH (1u << 2)
#define MSG_CAP_FOWNER          (1u << 3)
#define MSG_CAP_FSETID          (1u << 4)
#define MSG_CAP_SYS_ADMIN       (1u << 21)
#define MSG_CAP_MKNOD           (1u << 27)
#define MSG_CAP_SETFCAP         (1u << 31)
#define MSG_CAP_ALL                                                                                \
    (MSG_CAP_CHOWN | MSG_CAP_DAC_OVERRIDE | MSG_CAP_DAC_READ_SEARCH | MSG_CAP_FOWNER |             \
     MSG_CAP_FSETID | MSG_CAP_SYS_ADMIN | MSG_CAP_MKNOD | MSG_CAP_SETFCAP)

struct msg_cred {
    uint32_t uid, gid;
    uint32_t caps;
    bool mapped; /* caps count over uids and gids only: pairs of the first id and how many */
    uint32_t n_groups, n_uids, n_gids; /* numbers, so two for each range */
    const uint32_t *groups, *uids, *gids;
};

/* Has it cap over what belongs to uid (cred_can_user) and gid? */
bool cred_can(const struct msg_cred *c, uint32_t cap, uint32_t uid, uint32_t gid);
bool cred_can_user(const struct msg_cred *c, uint32_t cap, uint32_t uid);
/* Over everything: not in a user name space of its own. */
bool cred_can_all(const struct msg_cred *c, uint32_t cap);

bool cred_is_same(const struct msg_cred *a, const struct msg_cred *b);
/* Of all but uid and gid; 0 when there is nothing else. */
uint64_t cred_hash(const struct msg_cred *c);
/* A copy with arrays of its own, in so many bytes of space, aligned for uint32_t. */
size_t cred_space(const struct msg_cred *c);
void cred_copy(struct msg_cred *dst, const struct msg_cred *src, void *space);

#endif
