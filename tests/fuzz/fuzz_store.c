// SPDX-License-Identifier: Apache-2.0
/*
 * What comes from the disk: records of the metadata store and of a target's index, and the files
 * that say who a server and a target are. Valid ones, damaged ones, random bytes, in memory that
 * ends where they end. Sums are often put right after the damage, so that what is behind them is
 * reached. A decoder fails with one of its errors, or gives values within its bounds; what was not
 * damaged comes back byte by byte.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "mds/locks/lock_fmt.h"
#include "mds/session/given.h"
#include "mds/session/session_int.h"
#include "mds/shard/format.h"
#include "mds/store/dump_fmt.h"
#include "mds/store/rec.h"
#include "oss/chunk/chunk_fmt.h"
#include "oss/chunk/super.h"
#include "tests/fuzz/fuzz.h"

#define RECORD_MAX 8192u
#define LOCKS_MAX  40u

static struct session_module sessions;
static struct mds mds;
static char dir[128];
static volatile unsigned char sink;

static void touch(const void *data, size_t len)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++)
        sink ^= p[i];
}

static void fill(struct rng *g, void *out, size_t len)
{
    uint8_t *p = out;
    bool plain = rng_below(g, 4) == 0; /* small numbers */

    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(plain && rng_below(g, 4) ? 0 : rng_below(g, 256));
}

/* A record as it lies on the disk, in memory that ends where it ends. */
struct stored {
    uint8_t *data;
    size_t len;
    bool sane; /* as it was written */
};

static struct stored stored(struct rng *g, const void *valid, size_t len)
{
    static uint8_t copy[RECORD_MAX];
    struct stored s = {.sane = rng_below(g, 4) == 0};

    memcpy(copy, valid, len);
    if (!s.sane && rng_below(g, 4) == 0) {
        size_t keep = rng_below(g, 9); /* version and lengths may stay */

        len = rng_below(g, rng_below(g, 2) ? (uint32_t)len + 8 : 512);
        keep = MIN(keep, len);
        fill(g, copy + keep, len - keep);
    } else if (!s.sane) {
        len = fuzz_mutate(g, copy, len);
    }
    s.data = malloc(len ? len : 1);
    s.len = len;
    memcpy(s.data, copy, len);
    return s;
}

static bool refused(int rc)
{
    FUZZ_CHECK(rc == 0 || rc == -AIFS_EFORMAT || rc == -AIFS_ECORRUPT);
    return rc != 0;
}

/* Of what was accepted: again to bytes, and the same if nobody has damaged it. */
static void came_back(struct stored *s, int rc, const void *again, size_t len)
{
    FUZZ_CHECK(!s->sane || rc == 0);
    FUZZ_CHECK(!s->sane || (len == s->len && memcmp(again, s->data, len) == 0));
    free(s->data);
}

/* ---- the metadata store ---- */

static void fuzz_inode(struct rng *g)
{
    static const uint32_t types[] = {S_IFREG,  S_IFDIR, S_IFLNK, S_IFIFO,
                                     S_IFSOCK, S_IFCHR, S_IFBLK};
    struct inode_rec rec, again = {0};
    struct mds_inode in = {0};
    struct stored s;
    int rc;

    fill(g, &rec, sizeof rec);
    rec.version = htole16(REC_VERSION);
    rec.zero = 0;
    rec.mode = htole32(types[rng_below(g, ARRAY_LEN(types))] | rng_below(g, 07777));
    memset(rec.reserved, 0, sizeof rec.reserved);
    s = stored(g, &rec, sizeof rec);
    rc = rec_inode_decode(7, s.data, s.len, &in);
    if (!refused(rc)) {
        bool known = false;

        for (size_t i = 0; i < ARRAY_LEN(types); i++)
            known |= (in.mode & S_IFMT) == types[i];
        FUZZ_CHECK(known && in.ino == 7 && in.acl.len == 0);
        rec_inode_encode(&in, &again);
    }
    came_back(&s, rc, &again, sizeof again);
}

static void fuzz_dirent(struct rng *g)
{
    struct mds_dirent d = {.ino = rng_next(g) | 1,
                           .ordinal = (uint16_t)(1 + rng_below(g, UINT16_MAX)),
                           .type = (uint8_t)rng_below(g, 16)};
    struct dirent_rec rec, again = {0};
    struct stored s;
    int rc;

    rec_dirent_encode(&d, &rec);
    s = stored(g, &rec, sizeof rec);
    rc = rec_dirent_decode(s.data, s.len, &d);
    if (!refused(rc)) {
        FUZZ_CHECK(d.ino != 0 && d.ordinal != 0);
        rec_dirent_encode(&d, &again);
    }
    came_back(&s, rc, &again, sizeof again);
}

static void fuzz_queue(struct rng *g)
{
    struct mds_queue_item item;
    struct queue_rec rec, again = {0};
    struct stored s;
    int rc;

    fill(g, &item, sizeof item);
    rec_queue_encode(&item, &rec);
    s = stored(g, &rec, sizeof rec);
    rc = rec_queue_decode(s.data, s.len, &item);
    if (!refused(rc))
        rec_queue_encode(&item, &again);
    came_back(&s, rc, &again, sizeof again);
}

static void fuzz_trash(struct rng *g)
{
    struct trash_rec rec, again = {0};
    uint64_t tree = rng_next(g);
    struct stored s;
    int rc;

    rec_trash_encode(tree, &rec);
    s = stored(g, &rec, sizeof rec);
    rc = rec_trash_decode(s.data, s.len, &tree);
    if (!refused(rc))
        rec_trash_encode(tree, &again);
    came_back(&s, rc, &again, sizeof again);
}

static void fuzz_trash_tree(struct rng *g)
{
    uint8_t rec[REC_TRASH_TREE_MAX], again[REC_TRASH_TREE_MAX] = {0};
    struct mds_trash_tree t;
    uint32_t len = 0;
    struct stored s;
    int rc;

    fill(g, &t, sizeof t);
    t.name_len = rng_below(g, MSG_NAME_MAX + 1);
    s = stored(g, rec, rec_trash_tree_encode(&t, rec));
    rc = rec_trash_tree_decode(s.data, s.len, &t);
    if (!refused(rc)) {
        FUZZ_CHECK(t.name_len <= MSG_NAME_MAX);
        len = rec_trash_tree_encode(&t, again);
    }
    came_back(&s, rc, again, len);
}

static struct lock random_lock(struct rng *g)
{
    uint64_t start = rng_next(g) & MSG_LOCK_END;

    return (struct lock){.start = start,
                         .end = start + rng_next(g) % (MSG_LOCK_END - start + 1),
                         .session = rng_next(g),
                         .owner = rng_next(g),
                         .since_ns = (int64_t)rng_next(g),
                         .pid = rng_below(g, UINT32_MAX),
                         .kind = (uint8_t)rng_below(g, MSG_LOCK_FLOCK + 1),
                         .type = (uint8_t)rng_below(g, MSG_LOCK_WRITE + 1)};
}

static void fuzz_locks(struct rng *g)
{
    static uint8_t rec[RECORD_MAX], again[RECORD_MAX];
    struct lock list[LOCKS_MAX], *got;
    uint32_t n = rng_below(g, LOCKS_MAX + 1);
    struct stored s;
    int rc;

    for (uint32_t i = 0; i < n; i++)
        list[i] = random_lock(g);
    lock_rec_encode(list, n, rec);
    s = stored(g, rec, lock_rec_bytes(n));
    rc = lock_rec_count(s.data, (uint32_t)s.len, &n);
    if (!refused(rc)) {
        FUZZ_CHECK(n <= LOCKS_INODE_MAX && lock_rec_bytes(n) == s.len);
        got = malloc(n ? n * sizeof *got : 1);
        rc = lock_rec_decode(s.data, (uint32_t)s.len, got);
        if (!refused(rc)) {
            for (uint32_t i = 0; i < n; i++)
                FUZZ_CHECK(got[i].start <= got[i].end && got[i].end <= MSG_LOCK_END &&
                           got[i].kind <= MSG_LOCK_FLOCK && got[i].type <= MSG_LOCK_WRITE);
            lock_rec_encode(got, n, again);
        }
        free(got);
    }
    came_back(&s, rc, again, lock_rec_bytes(n));
}

static void fuzz_session(struct rng *g)
{
    struct session_rec rec;
    struct session *got;
    struct stored s;
    int rc;

    fill(g, &rec, sizeof rec);
    rec.state = (uint8_t)(SESSION_OPEN + rng_below(g, 2));
    rec.version = SESSION_REC_VERSION;
    s = stored(g, &rec, sizeof rec);
    rc = session_add(&sessions, 9, s.data, (uint32_t)s.len, &got);
    FUZZ_CHECK(!s.sane || rc == 0);
    if (!refused(rc)) {
        FUZZ_CHECK(strlen(got->host) < SESSION_TEXT_BYTES && strlen(got->job) < SESSION_TEXT_BYTES);
        FUZZ_CHECK(strlen(got->mount) < SESSION_PATH_BYTES && got->id == 9);
        FUZZ_CHECK(s.data[0] == (got->phase == PHASE_LIVE ? SESSION_OPEN : SESSION_EVICTED));
        session_free(&sessions, got);
    }
    free(s.data);
}

/* Of a session that is not there: only what the record says is looked at. */
static void fuzz_writer(struct rng *g)
{
    struct writer_rec rec = {.version = htole16(WRITER_REC_VERSION), .id = rng_next(g)};
    struct stored s = stored(g, &rec, sizeof rec);
    int rc = session_mark_load(&sessions, 10, 11, s.data, s.len);

    FUZZ_CHECK(refused(rc) ? !s.sane : s.len == sizeof rec);
    free(s.data);
}

/* As a list of all that were used would have it. */
static void fuzz_given(struct rng *g)
{
    static bool used[3 * NUMBER_WINDOW];
    struct given_rec rec = {.version = htole16(GIVEN_REC_VERSION)};
    uint32_t around = rng_below(g, 2) ? 0 : NUMBER_COUNT_MAX + 1 - ARRAY_LEN(used), next = 0;
    struct stored s;
    int rc;

    memset(used, 0, sizeof used);
    for (unsigned n = rng_below(g, 200); n > 0; n--) {
        uint32_t count = next + rng_below(g, rng_below(g, 8) ? 8 : 3000);
        uint32_t back = rng_below(g, rng_below(g, 8) ? 40 : ARRAY_LEN(used));
        bool is_new;

        count = MIN(count - MIN(count, back), (uint32_t)ARRAY_LEN(used) - 1);
        is_new = count >= next || (next - count <= NUMBER_WINDOW && !used[count]);
        FUZZ_CHECK(given_use(&rec, around + count) == (is_new ? 0 : -AIFS_EPROTO));
        used[count] = true;
        next = MAX(next, count + 1);
    }
    FUZZ_CHECK(next == 0 || le32toh(rec.next) == around + next);
    s = stored(g, &rec, sizeof rec);
    rc = given_decode(s.data, (uint32_t)s.len, &rec);
    if (!refused(rc))
        (void)!given_use(&rec, rng_below(g, NUMBER_COUNT_MAX + 1));
    FUZZ_CHECK(rc ? !s.sane : le32toh(rec.next) <= NUMBER_COUNT_MAX + 1);
    free(s.data);
}

static void fuzz_dump(struct rng *g)
{
    uint8_t key[64], value[1024], rec[RECORD_MAX];
    uint32_t key_len = 1 + rng_below(g, sizeof key), value_len = rng_below(g, sizeof value);
    struct dump_item item;
    size_t len = 0;
    struct stored s;
    int rc;

    fill(g, key, key_len);
    fill(g, value, value_len);
    FUZZ_CHECK(dump_append(rec, sizeof rec, &len, key, key_len, value, value_len) == 0);
    s = stored(g, rec, len);
    if (s.len >= 12 && rng_below(g, 2)) { /* the sum is right again */
        uint64_t n = (uint64_t)le32_load(s.data) + le32_load(s.data + 4);

        if (n <= s.len - 12)
            le32_store(s.data + 8, crc32c_more(crc32c(s.data, 8), s.data + 12, n));
    }
    rc = dump_parse(s.data, s.len, &item);
    FUZZ_CHECK(rc == 0 || rc == -EAGAIN || rc == -AIFS_ECORRUPT);
    FUZZ_CHECK(!s.sane || (rc == 0 && item.key_len == key_len && item.value_len == value_len));
    if (rc == 0) {
        FUZZ_CHECK(item.size <= s.len && item.key_len > 0 && item.key_len <= DUMP_KEY_MAX);
        FUZZ_CHECK(item.size == 12 + (size_t)item.key_len + item.value_len);
        touch(item.key, item.key_len);
        touch(item.value, item.value_len);
    }
    free(s.data);
}

/* ---- a target's index ---- */

/* Makes the sum over key and the first len bytes of a record right. */
static void put_crc(struct stored *s, const uint8_t *key, size_t key_len, size_t at, size_t len)
{
    if (s->len < len || s->len < at + 4)
        return;
    le32_store(s->data + at, 0);
    le32_store(s->data + at, crc32c_more(crc32c(key, key_len), s->data, len));
}

static void fuzz_key(struct rng *g)
{
    uint8_t key[CHUNK_KEY_MAX], again[CHUNK_KEY_MAX];
    uint64_t ino = rng_next(g), chunk = rng_next(g);
    struct chunk_key k;
    struct stored s;
    size_t len = 0;
    int rc;

    switch (rng_below(g, 4)) {
    case 0:
        s = stored(g, key, chunk_key_chunk(key, ino, chunk));
        break;
    case 1:
        s = stored(g, key, chunk_key_inode(key, ino));
        break;
    case 2:
        s = stored(g, key, chunk_key_log(key, ino, chunk, rng_below(g, UINT32_MAX)));
        break;
    default:
        s = stored(g, key, chunk_key_fence(key, ino));
    }
    rc = chunk_key_parse(s.data, s.len, &k);
    FUZZ_CHECK(rc == 0 || rc == -AIFS_ECORRUPT);
    if (rc == 0) {
        if (k.type == CHUNK_KEY_CHUNK)
            len = chunk_key_chunk(again, k.ino, k.chunk);
        else if (k.type == CHUNK_KEY_LOG)
            len = chunk_key_log(again, k.ino, k.chunk, k.block);
        else
            len = k.type == CHUNK_KEY_INODE ? chunk_key_inode(again, k.ino)
                                            : chunk_key_fence(again, k.ino);
        s.sane = true; /* every key that is taken is one that is made */
    }
    came_back(&s, rc, again, len);
}

static void use_chunk(const struct stored *s, const struct chunk_record *r)
{
    const uint8_t *end = s->data + s->len;
    uint32_t blocks = chunk_blocks(r->len);

    FUZZ_CHECK(r->len <= CHUNK_MAX_BYTES);
    FUZZ_CHECK(r->slot.class ? r->slot.class >= CHUNK_CLASS_MIN &&
                                   r->slot.class <= CHUNK_CLASS_MAX && r->len <= 1u << r->slot.class
                             : r->bitmap || blocks == 0);
    FUZZ_CHECK(r->crcs >= s->data && r->crcs + (size_t)blocks * 4 == end);
    for (uint32_t b = 0; b < blocks; b++)
        sink ^= (unsigned char)(chunk_record_present(r, b) + le32_load(r->crcs + b * 4));
}

static void fuzz_chunk(struct rng *g)
{
    static uint8_t rec[RECORD_MAX], present[RECORD_MAX];
    static uint32_t crcs[1024];
    uint8_t key[CHUNK_KEY_MAX];
    size_t key_len = chunk_key_chunk(key, rng_next(g), rng_below(g, 100));
    struct chunk_record r = {
        .slot = {.number = rng_below(g, 1000), .class = (uint8_t)(20 + rng_below(g, 7))},
        .len = rng_below(g, 1u << 20),
        .write_version = rng_next(g)};
    struct stored s;
    int rc;

    memset(present, rng_below(g, 2) ? 0xff : 0x5a, sizeof present);
    fill(g, crcs, sizeof crcs);
    s = stored(g, rec, chunk_record_encode(key, key_len, &r, present, crcs, rec));
    if (rng_below(g, 4))
        put_crc(&s, key, key_len, offsetof(struct chunk_record_fmt, crc), s.len);
    rc = chunk_record_decode(key, key_len, s.data, s.len, &r);
    FUZZ_CHECK(!s.sane || rc == 0);
    if (!refused(rc))
        use_chunk(&s, &r);
    free(s.data);
}

static void fuzz_chunk_inode(struct rng *g)
{
    struct inode_record r = {
        .truncate_gen = rng_next(g), .tombstone = rng_below(g, 2), .destroyed_ns = rng_next(g)};
    uint8_t key[CHUNK_KEY_MAX], rec[sizeof(struct inode_record_fmt)], again[sizeof rec] = {0};
    size_t key_len = chunk_key_inode(key, rng_next(g));
    struct stored s = stored(g, rec, inode_record_encode(key, key_len, &r, rec));
    int rc;

    if (rng_below(g, 4))
        put_crc(&s, key, key_len, offsetof(struct inode_record_fmt, crc), s.len);
    rc = inode_record_decode(key, key_len, s.data, s.len, &r);
    if (!refused(rc))
        inode_record_encode(key, key_len, &r, again);
    came_back(&s, rc, again, sizeof again);
}

static void fuzz_log(struct rng *g)
{
    static uint8_t rec[LOG_RECORD_BYTES], again[LOG_RECORD_BYTES], block[CHUNK_BLOCK];
    const size_t head = sizeof(struct log_record_fmt);
    struct log_record r = {.write_version = rng_next(g), .op_id = rng_next(g), .data = block};
    uint8_t key[CHUNK_KEY_MAX];
    size_t key_len = chunk_key_log(key, rng_next(g), 1, rng_below(g, CHUNK_MAX_BLOCKS));
    struct stored s;
    int rc;

    fill(g, block, 256);
    r.block_crc = crc32c(block, sizeof block);
    s = stored(g, rec, log_record_encode(key, key_len, &r, rec));
    if (s.len == LOG_RECORD_BYTES && rng_below(g, 2))
        le32_store(s.data + offsetof(struct log_record_fmt, block_crc),
                   crc32c(s.data + head, CHUNK_BLOCK));
    if (rng_below(g, 4))
        put_crc(&s, key, key_len, offsetof(struct log_record_fmt, crc), head);
    rc = log_record_decode(key, key_len, s.data, s.len, &r);
    if (!refused(rc)) {
        FUZZ_CHECK(r.data == s.data + head && crc32c(r.data, CHUNK_BLOCK) == r.block_crc);
        log_record_encode(key, key_len, &r, again);
    }
    came_back(&s, rc, again, sizeof again);
}

static void fuzz_fence(struct rng *g)
{
    uint8_t key[CHUNK_KEY_MAX], rec[sizeof(struct fence_record_fmt)], again[sizeof rec] = {0};
    uint32_t generation = rng_below(g, UINT32_MAX);
    size_t key_len = chunk_key_fence(key, rng_next(g));
    struct stored s = stored(g, rec, fence_record_encode(key, key_len, generation, rec));
    int rc;

    if (rng_below(g, 4))
        put_crc(&s, key, key_len, offsetof(struct fence_record_fmt, crc), s.len);
    rc = fence_record_decode(key, key_len, s.data, s.len, &generation);
    if (!refused(rc))
        fence_record_encode(key, key_len, generation, again);
    came_back(&s, rc, again, sizeof again);
}

/* ---- files ---- */

static size_t read_file(const char *name, void *out, size_t size)
{
    char path[sizeof dir + 16];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = read(fd, out, size);
    FUZZ_CHECK(n > 0);
    close(fd);
    return (size_t)n;
}

static void write_file(const char *name, const struct stored *s)
{
    char path[sizeof dir + 16];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, s->data, s->len) == (ssize_t)s->len);
    FUZZ_CHECK(ftruncate(fd, (off_t)s->len) == 0); /* first to 0 would wait for the disk */
    close(fd);
}

static void fuzz_super(struct rng *g)
{
    static uint8_t valid[1024];
    static size_t len;
    struct super super = {.target_id = 5, .pool = "pool"};
    char err[256] = "";
    struct stored s;
    int rc;

    if (len == 0) {
        FUZZ_CHECK(super_save(dir, &super) == 0);
        len = read_file("target", valid, sizeof valid);
    }
    s = stored(g, valid, len);
    for (size_t at = 0; rng_below(g, 8) && at + 18 <= s.len; at++) {
        char sum[9];

        if (memcmp(s.data + at, "checksum ", 9) != 0)
            continue;
        snprintf(sum, sizeof sum, "%08x", crc32c(s.data, at));
        memcpy(s.data + at + 9, sum, 8);
        break;
    }
    write_file("target", &s);
    rc = super_load(dir, &super, err, sizeof err);
    FUZZ_CHECK(!s.sane || rc == 0);
    FUZZ_CHECK(refused(rc) == (err[0] != '\0'));
    FUZZ_CHECK(rc || (super.pool[0] && strlen(super.pool) < sizeof super.pool));
    free(s.data);
}

static void fuzz_node(struct rng *g)
{
    char text[UUID_TEXT_BYTES];
    struct uuid id, got;
    struct stored s;
    int rc;

    fill(g, &id, sizeof id);
    uuid_format(&id, text);
    text[UUID_TEXT_BYTES - 1] = '\n';
    s = stored(g, text, sizeof text);
    write_file("node", &s);
    rc = shard_dir_node(dir, &got);
    FUZZ_CHECK(rc <= 0 && (!s.sane || (rc == 0 && uuid_equal(&id, &got))));
    free(s.data);
}

static int run(int argc, char **argv)
{
    static const struct fuzz_case cases[] = {{"inode", fuzz_inode},
                                             {"dirent", fuzz_dirent},
                                             {"queue", fuzz_queue},
                                             {"trash", fuzz_trash},
                                             {"tree", fuzz_trash_tree},
                                             {"locks", fuzz_locks},
                                             {"session", fuzz_session},
                                             {"writer", fuzz_writer},
                                             {"given", fuzz_given},
                                             {"dump", fuzz_dump},
                                             {"key", fuzz_key},
                                             {"chunk", fuzz_chunk},
                                             {"chunk-inode", fuzz_chunk_inode},
                                             {"log", fuzz_log},
                                             {"fence", fuzz_fence},
                                             {"super", fuzz_super},
                                             {"node", fuzz_node}};

    return fuzz_main(argc, argv, cases, ARRAY_LEN(cases));
}

int main(int argc, char **argv)
{
    struct reactor_options options = {.name = "fuzz"};
    const char *tmp = getenv("TMPDIR");
    char path[sizeof dir + 16];
    int rc;

    log_set_level(LOG_LEVEL_ERROR);
    log_set_burst(1);
    sessions.mds = &mds;
    snprintf(dir, sizeof dir, "%s/aifs-fuzz-XXXXXX", tmp ? tmp : "/tmp");
    if (reactor_create(&options, &mds.reactor) < 0 || hmap_init(&sessions.sessions, 64) < 0 ||
        hmap_init(&sessions.clients, 64) < 0 || !mkdtemp(dir))
        return 1;
    rc = run(argc, argv);
    snprintf(path, sizeof path, "%s/target", dir);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/node", dir);
    (void)unlink(path);
    (void)rmdir(dir);
    hmap_fini(&sessions.sessions);
    hmap_fini(&sessions.clients);
    reactor_destroy(mds.reactor);
    return rc;
}
