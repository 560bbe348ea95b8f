// SPDX-License-Identifier: Apache-2.0
/* Lists of locks as records. What is stored is not believed: a list that breaks the rules of list.h
 * in a way that could mislead its readers is damage. */
#include <endian.h>
#include <string.h>

#include "common/base/err.h"
#include "mds/locks/lock_fmt.h"

void lock_rec_encode(const struct lock *list, uint32_t n, void *out)
{
    struct lock_head head = {.version = htole32(LOCK_REC_VERSION), .count = htole32(n)};
    uint8_t *to = (uint8_t *)out + sizeof head;

    memcpy(out, &head, sizeof head);
    for (uint32_t i = 0; i < n; i++, to += sizeof(struct lock_rec)) {
        const struct lock *l = &list[i];
        struct lock_rec rec = {.start = htole64(l->start),
                               .end = htole64(l->end),
                               .session = htole64(l->session),
                               .owner = htole64(l->owner),
                               .since_ns = (int64_t)htole64((uint64_t)l->since_ns),
                               .pid = htole32(l->pid),
                               .kind = l->kind,
                               .type = l->type};

        memcpy(to, &rec, sizeof rec);
    }
}

int lock_rec_count(const void *rec, uint32_t len, uint32_t *ret_n)
{
    struct lock_head head;
    uint32_t n;

    if (len < sizeof head)
        return -AIFS_ECORRUPT;
    memcpy(&head, rec, sizeof head);
    if (le32toh(head.version) != LOCK_REC_VERSION)
        return -AIFS_EFORMAT;
    n = le32toh(head.count);
    if (n > LOCKS_INODE_MAX || len != lock_rec_bytes(n))
        return -AIFS_ECORRUPT;
    *ret_n = n;
    return 0;
}

int lock_rec_decode(const void *rec, uint32_t len, struct lock *ret_list)
{
    const uint8_t *from = (const uint8_t *)rec + sizeof(struct lock_head);
    uint32_t n;
    int rc = lock_rec_count(rec, len, &n);

    for (uint32_t i = 0; rc == 0 && i < n; i++, from += sizeof(struct lock_rec)) {
        struct lock *l = &ret_list[i];
        struct lock_rec r;

        memcpy(&r, from, sizeof r);
        *l = (struct lock){.start = le64toh(r.start),
                           .end = le64toh(r.end),
                           .session = le64toh(r.session),
                           .owner = le64toh(r.owner),
                           .since_ns = (int64_t)le64toh((uint64_t)r.since_ns),
                           .pid = le32toh(r.pid),
                           .kind = r.kind,
                           .type = r.type};
        if (l->start > l->end || l->end > MSG_LOCK_END || l->kind > MSG_LOCK_FLOCK ||
            l->type > MSG_LOCK_WRITE)
            rc = -AIFS_ECORRUPT;
    }
    return rc;
}
