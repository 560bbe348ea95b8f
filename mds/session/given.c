// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers that sessions give to the files they make (proto/number.h, docs/adr/0018): each once,
 * whatever became of its file.
 *
 * Happy path: the session's record has a bit for each of the last NUMBER_WINDOW numbers; the one
 * that comes is among them and unused, or higher than any before; its bit is set, in the same
 * commit as the file. What is sent again gets its slot's reply and does not come here; what was
 * answered RETRY was undone with its bit. Failure modes: as txn.h; a number that is refused is a
 * client's error.
 */
#include "mds/session/given.h"

#include <string.h>

#include "common/base/err.h"
#include "mds/session/exec.h"

static uint8_t given_bit(uint32_t count)
{
    return (uint8_t)(1u << count % 8);
}

static uint8_t *given_byte(struct given_rec *rec, uint32_t count)
{
    return &rec->used[count % NUMBER_WINDOW / 8];
}

/* Those that are skipped are unused. */
static void given_advance(struct given_rec *rec, uint32_t from, uint32_t to)
{
    if (to - from >= NUMBER_WINDOW)
        memset(rec->used, 0, sizeof rec->used);
    for (uint32_t n = from; to - from < NUMBER_WINDOW && n < to; n++)
        *given_byte(rec, n) &= (uint8_t)~given_bit(n);
    rec->next = htole32(to);
}

bool given_is_used(const struct given_rec *rec, uint32_t count)
{
    uint32_t next = le32toh(rec->next);

    return count < next && (next - count > NUMBER_WINDOW ||
                            rec->used[count % NUMBER_WINDOW / 8] & given_bit(count));
}

int given_use(struct given_rec *rec, uint32_t count)
{
    uint32_t next = le32toh(rec->next);

    if (given_is_used(rec, count))
        return -AIFS_EPROTO;
    if (count >= next)
        given_advance(rec, next, count + 1);
    *given_byte(rec, count) |= given_bit(count);
    return 0;
}

int given_decode(const void *value, uint32_t len, struct given_rec *ret_rec)
{
    struct given_rec rec;

    if (len < sizeof rec.version)
        return -AIFS_ECORRUPT;
    memcpy(&rec, value, MIN(len, sizeof rec));
    if (le16toh(rec.version) != GIVEN_REC_VERSION)
        return -AIFS_EFORMAT;
    if (len != sizeof rec || le32toh(rec.next) > NUMBER_COUNT_MAX + 1)
        return -AIFS_ECORRUPT;
    *ret_rec = rec;
    return 0;
}

int exec_given_number(struct txn *t, const struct shard_entry *e, uint64_t dir, uint64_t ino)
{
    struct given_rec rec = {.version = htole16(GIVEN_REC_VERSION)};
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    if (!number_is_given_by(ino, dir, e->session))
        return -AIFS_EPROTO;
    key_number(&k, KEY_GIVEN, e->session);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc == 0)
        rc = given_decode(value, len, &rec);
    else if (rc == -ENOENT)
        rc = 0; /* its first one */
    if (rc == 0)
        rc = given_use(&rec, number_count(ino));
    return rc < 0 ? rc : txn_record_put(t, &k, &rec, sizeof rec);
}
