/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump records and loading them. Loading reads the stream once, checks each record's CRC, and
 * commits in batches without sync; the last commit, after the trailer was seen and agreed, is
 * synced. A dump that turns out to be damaged leaves nothing behind.
 */
#include "mds/store/dump_fmt.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/crc.h"
#include "common/base/err.h"
#include "mds/store/key_fmt.h"
#include "mds/store/rec_fmt.h"
#include "mds/store/store.h"

#define LOAD_BUFFER      (4u << 20)
#define LOAD_SKIP_MIN    (1ull << 20)
#define LOAD_SKIP_NS     1000 /* no server hands out a number more often */
#define LOAD_BATCH_BYTES (1u << 20)

static uint32_t record_crc(const uint8_t *lengths, const void *key, size_t key_len,
                           const void *value, size_t value_len)
{
    uint32_t crc = crc32c(lengths, 8);

    crc = crc32c_more(crc, key, key_len);
    return crc32c_more(crc, value, value_len);
}

int dump_append(void *buf, size_t cap, size_t *len, const void *key, size_t key_len,
                const void *value, size_t value_len)
{
    uint8_t *at = (uint8_t *)buf + *len;
    size_t size = sizeof(struct dump_record) + key_len + value_len;

    if (key_len > DUMP_KEY_MAX || value_len > DUMP_VALUE_MAX)
        return -EFBIG;
    if (size > cap - *len)
        return *len == 0 ? -EFBIG : -ENOSPC;
    le32_store(at, (uint32_t)key_len);
    le32_store(at + 4, (uint32_t)value_len);
    le32_store(at + 8, record_crc(at, key, key_len, value, value_len));
    memcpy(at + 12, key, key_len);
    if (value_len)
        memcpy(at + 12 + key_len, value, value_len);
    *len += size;
    return 0;
}

int dump_parse(const void *buf, size_t len, struct dump_item *ret_item)
{
    const uint8_t *at = buf;
    uint32_t key_len, value_len;

    if (len < sizeof(struct dump_record))
        return -EAGAIN;
    key_len = le32_load(at);
    value_len = le32_load(at + 4);
    if (key_len == 0 || key_len > DUMP_KEY_MAX || value_len > DUMP_VALUE_MAX)
        return -AIFS_ECORRUPT;
    if (len < 12 + (size_t)key_len + value_len)
        return -EAGAIN;
    if (record_crc(at, at + 12, key_len, at + 12 + key_len, value_len) != le32_load(at + 8))
        return -AIFS_ECORRUPT;
    *ret_item = (struct dump_item){.key = at + 12,
                                   .value = at + 12 + key_len,
                                   .key_len = key_len,
                                   .value_len = value_len,
                                   .size = 12 + (size_t)key_len + value_len};
    return 0;
}

struct load {
    int fd;
    uint8_t *buf;
    size_t at, end;
    uint64_t records;
    uint64_t skip; /* see skip_numbers() */
    struct store *store;
    struct store_batch *batch;
    char *err;
    size_t err_len;
};

/* Bytes are there, unless the stream has ended. */
static int load_fill(struct load *l)
{
    memmove(l->buf, l->buf + l->at, l->end - l->at);
    l->end -= l->at;
    l->at = 0;
    while (l->end < LOAD_BUFFER) {
        ssize_t n = read(l->fd, l->buf + l->end, LOAD_BUFFER - l->end);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        l->end += (size_t)n;
    }
    return 0;
}

static int damaged(struct load *l, const char *what)
{
    snprintf(l->err, l->err_len, "the dump is damaged: %s after %llu records", what,
             (unsigned long long)l->records);
    return -AIFS_ECORRUPT;
}

static int load_header(struct load *l)
{
    struct dump_header h;
    uint32_t crc;
    int64_t age_ns;
    int rc = load_fill(l);

    if (rc < 0)
        return rc;
    if (l->end < sizeof h)
        return damaged(l, "no header");
    memcpy(&h, l->buf, sizeof h);
    if (memcmp(h.magic, DUMP_MAGIC, sizeof h.magic) != 0) {
        snprintf(l->err, l->err_len, "this is not a dump: it does not begin with " DUMP_MAGIC);
        return -AIFS_ECORRUPT;
    }
    if (le32toh(h.version) != DUMP_VERSION) {
        snprintf(l->err, l->err_len, "the dump has format version %u, this program knows %u",
                 le32toh(h.version), DUMP_VERSION);
        return -AIFS_EFORMAT;
    }
    crc = le32toh(h.crc);
    h.crc = 0;
    if (crc32c(&h, sizeof h) != crc)
        return damaged(l, "checksum of the header");
    age_ns = clock_wall_ns(clock_real()) - (int64_t)le64toh((uint64_t)h.created_ns);
    l->skip = LOAD_SKIP_MIN + (age_ns > 0 ? (uint64_t)age_ns / LOAD_SKIP_NS : 0);
    l->at = sizeof h;
    return 0;
}

/* 1: the trailer is here and right. */
static int load_trailer(struct load *l)
{
    const uint8_t *t = l->buf + l->at;

    if (l->end - l->at < 4 || le32_load(t) != DUMP_END)
        return 0;
    if (l->end - l->at < sizeof(struct dump_trailer))
        return damaged(l, "cut short");
    if (crc32c(t + 8, 8) != le32_load(t + 4) || le64_load(t + 8) != l->records)
        return damaged(l, "the number of records is wrong");
    return 1;
}

/*
 * After the dump was made its server has gone on handing out numbers, and the object storage
 * servers remember them: chunks of inodes that the dump does not know, fences of sessions. None
 * may be given to anybody else, so that a loaded server begins behind them, the further the older
 * the dump is, and directories forget the runs of inode numbers they had.
 */
static void skip_numbers(const struct load *l, const struct dump_item *item, uint8_t *value)
{
    const uint8_t *key = item->key;
    bool counter = item->key_len == 2 && key[0] == KEY_COUNTER && item->value_len == 8;
    bool inode =
        item->key_len == 9 && key[0] == KEY_INODE && item->value_len == sizeof(struct inode_rec);

    if (counter &&
        (key[1] == COUNTER_INODE || key[1] == COUNTER_SESSION || key[1] == COUNTER_FENCE))
        le64_store(value, le64_load(value) + l->skip);
    if (inode) /* zero for all but directories */
        memset(value + offsetof(struct inode_rec, run_left), 0, sizeof(uint32_t));
}

static int load_records(struct load *l)
{
    for (;;) {
        struct dump_item item;
        int rc = load_trailer(l);

        if (rc != 0)
            return rc < 0 ? rc : store_commit(l->store, l->batch, true);
        rc = dump_parse(l->buf + l->at, l->end - l->at, &item);
        if (rc == -EAGAIN) {
            size_t had = l->end - l->at;

            rc = load_fill(l);
            if (rc < 0)
                return rc;
            if (l->end == had)
                return damaged(l, "cut short");
            continue;
        }
        if (rc < 0)
            return damaged(l, "checksum of a record");
        skip_numbers(l, &item, (uint8_t *)(uintptr_t)item.value); /* in our buffer */
        store_batch_put(l->batch, item.key, item.key_len, item.value, item.value_len);
        l->at += item.size;
        l->records++;
        if (store_batch_bytes(l->batch) > LOAD_BATCH_BYTES) {
            rc = store_commit(l->store, l->batch, false);
            if (rc < 0)
                return rc;
        }
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* 0 when dir is absent or an empty directory. */
static int must_be_empty(const char *dir)
{
    struct dirent *e;
    int rc = 0;
    DIR *d = opendir(dir);

    if (!d)
        return errno == ENOENT ? 0 : -errno;
    while ((e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = -EEXIST;
    closedir(d);
    return rc;
}

/* What fails leaves nothing. */
static int load_into(struct load *l, const char *shard)
{
    const struct store_options options = {.create = true};
    int rc = mkdir(shard, 0750) == 0 ? 0 : -errno;

    if (rc < 0)
        return rc;
    rc = store_open(shard, &options, &l->store);
    if (rc < 0)
        goto err_dir;
    rc = store_batch_create(l->store, &l->batch);
    if (rc == 0) {
        rc = load_records(l);
        store_batch_destroy(l->batch);
    }
    store_close(l->store);
    if (rc == 0)
        return 0;
err_dir:
    nftw(shard, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}

int dump_load(int fd, const char *dir, uint64_t *ret_records, char *err, size_t err_len)
{
    struct load l = {.fd = fd, .err = err, .err_len = err_len};
    AUTO_FREE char *shard = mem_printf("%s/shard0", dir);
    int rc = must_be_empty(dir);
    bool made;

    if (!shard)
        return -ENOMEM;
    if (err_len)
        err[0] = '\0';
    if (rc < 0)
        return rc;
    l.buf = mem_alloc(LOAD_BUFFER);
    if (!l.buf)
        return -ENOMEM;
    rc = load_header(&l);
    if (rc < 0)
        goto out_buf;
    made = mkdir(dir, 0750) == 0;
    rc = made || errno == EEXIST ? 0 : -errno;
    if (rc == 0)
        rc = load_into(&l, shard);
    if (rc == 0)
        *ret_records = l.records;
    else if (made)
        rmdir(dir);
out_buf:
    mem_free(l.buf);
    return rc;
}
