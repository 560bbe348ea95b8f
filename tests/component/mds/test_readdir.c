/* SPDX-License-Identifier: Apache-2.0 */
/* Directory pages: complete, in cookie order, stable while the directory changes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ops/readdir.h"
#include "proto/dirent_fmt.h"
#include "tests/component/mds/bed.h"
#include "tests/support/suite.h"

static struct bed bed;
#define ROOT KEY_ROOT_INO

static void setup(void)
{
    bed_open(&bed);
}

static void teardown(void)
{
    bed_check_tree(&bed);
    bed_close(&bed);
}

struct listing {
    unsigned count, pages, attrs;
    uint64_t last;
    unsigned seen[200000];
};
static struct listing all;

/* One page from all.last on; false: that was the last. Names are "f<number>". */
static bool page(uint64_t dir, uint32_t max, bool plus)
{
    struct readdir_page p = {.cookie = all.last, .max = max, .plus = plus};
    struct view v;
    bool more;

    view_pin(bed.shard, &v);
    ck_ok(readdir_page_fill(&p, &v, dir));
    view_unpin(&v);
    for (uint32_t at = 0, n = 0; at < p.len; n++) {
        struct dirent_wire w;
        const char *name = (const char *)p.data + at + sizeof(w);
        struct dirent_attr_wire a;

        ck_assert_uint_lt(n, p.count);
        memcpy(&w, p.data + at, sizeof(w));
        ck_assert_uint_eq(w.record_len % 8, 0);
        ck_assert_uint_gt(w.cookie, all.last);
        ck_assert_int_gt((int64_t)w.cookie, 0xffff);
        ck_assert_uint_eq(w.has_attr, plus);
        if (plus) {
            memcpy(&a, name, sizeof(a));
            name += sizeof(a);
            all.attrs += S_ISREG(a.mode) && a.nlink == 1;
        }
        ck_assert_uint_eq(w.type, DT_REG);
        ck_assert_int_eq(name[0], 'f');
        all.seen[atoi(name + 1)]++;
        all.last = w.cookie;
        all.count++;
        at += w.record_len;
    }
    more = p.full;
    all.pages++;
    readdir_page_fini(&p);
    return more;
}

static uint64_t fill(uint64_t parent, unsigned n)
{
    uint64_t d = bed_dir(&bed, parent, "many");
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        bed_file(&bed, d, name);
    }
    return d;
}

START_TEST(every_entry_comes_once_whatever_the_size_of_the_page)
{
    static const uint32_t sizes[] = {512, 4096, 65536, 1u << 20};
    uint64_t d = fill(ROOT, 1000);

    for (unsigned plus = 0; plus < 2; plus++) {
        memset(&all, 0, sizeof(all));
        while (page(d, sizes[_i], plus))
            ;
        ck_assert_uint_eq(all.count, 1000);
        ck_assert_uint_eq(all.attrs, plus ? 1000 : 0);
        for (unsigned i = 0; i < 1000; i++)
            ck_assert_uint_eq(all.seen[i], 1);
    }
}
END_TEST

START_TEST(the_first_page_of_attributes_of_a_large_directory_is_short)
{
    struct msg_readdir_req req = {.max_bytes = 256 * KIB, .plus = true};

    ck_assert_uint_eq(readdir_page_bytes(&req, 4096), 256 * KIB);
    ck_assert_uint_eq(readdir_page_bytes(&req, 4097), 16 * KIB);
    req.max_bytes = 8 * KIB;
    ck_assert_uint_eq(readdir_page_bytes(&req, 4097), 8 * KIB);
    req.max_bytes = 256 * KIB;
    req.cookie = 65537; /* who goes on wants them */
    ck_assert_uint_eq(readdir_page_bytes(&req, 4097), 256 * KIB);
    req.cookie = 0;
    req.alone = true;
    ck_assert_uint_eq(readdir_page_bytes(&req, 4097), 256 * KIB);
    req.plus = req.alone = false;
    ck_assert_uint_eq(readdir_page_bytes(&req, 4097), 256 * KIB);
    req.max_bytes = 0;
    ck_assert_uint_gt(readdir_page_bytes(&req, 1), 0);
    req.max_bytes = UINT32_MAX;
    ck_assert_uint_eq(readdir_page_bytes(&req, 1), MSG_BULK_MAX);
}
END_TEST

START_TEST(an_empty_directory_has_an_empty_page)
{
    uint64_t d = bed_dir(&bed, ROOT, "empty");

    memset(&all, 0, sizeof(all));
    ck_assert(!page(d, 4096, true));
    ck_assert_uint_eq(all.count, 0);
}
END_TEST

static uint64_t listed_in_memory(void)
{
    struct shard_stats s;

    shard_get_stats(bed.shard, &s);
    return s.rolled;
}

START_TEST(what_stays_is_listed_once_while_others_come_and_go)
{
    static const struct {
        uint32_t max;
        bool plus;
    } how[] = {{1024, true}, {1024, false}, {2048, false}}; /* 1024: too little for a roll */
    uint64_t d = fill(ROOT, 500);
    unsigned seed = 7, n = 500;
    bool more = true;
    char name[16];

    memset(&all, 0, sizeof(all));
    while (more) {
        ck_assert(shard_is_idle(bed.shard)); /* the writer has let go of its lock */
        more = page(d, how[_i].max, how[_i].plus);
        ck_assert_uint_eq(listed_in_memory(), _i < 2 ? 0 : all.pages < 6 ? all.pages : 0);
        for (unsigned i = 0; i < 5; i++) { /* odd numbers of the first 500 go, new ones come */
            unsigned victim = 1 + 2 * ((unsigned)rand_r(&seed) % 250);

            snprintf(name, sizeof(name), "f%u", victim);
            if (bed_lookup(&bed, d, name))
                ck_ok(bed_name(&bed, RPC_OP_UNLINK, d, name));
            snprintf(name, sizeof(name), "f%u", n++);
            bed_file(&bed, d, name);
        }
        /* the entry of the cookie itself may go too, and a restart does not matter */
        if (all.pages == 5) {
            bed_stop(&bed);
            bed_start(&bed);
        }
    }
    for (unsigned i = 0; i < 500; i += 2)
        ck_assert_uint_eq(all.seen[i], 1);
    for (unsigned i = 1; i < n; i++)
        ck_assert_uint_le(all.seen[i], 1);
}
END_TEST

/* The listing of d by its cookies, which hold the hashes of the names. */
static unsigned list_all(uint64_t d, uint32_t max, uint64_t *cookies, unsigned n)
{
    unsigned got = 0;

    ck_assert(shard_is_idle(bed.shard)); /* the writer has let go of its lock */
    memset(&all, 0, sizeof(all));
    for (bool more = true; more; got++) {
        struct readdir_page p = {.cookie = all.last, .max = max};
        struct view v;

        view_pin(bed.shard, &v);
        ck_ok(readdir_page_fill(&p, &v, d));
        view_unpin(&v);
        for (uint32_t at = 0; at < p.len; at += le16_load(p.data + at + 16)) {
            all.last = le64_load(p.data + at + 8);
            ck_assert_uint_lt(all.count, n);
            cookies[all.count++] = all.last;
        }
        more = p.full;
        readdir_page_fini(&p);
    }
    ck_assert_uint_eq(all.count, n);
    return got;
}

START_TEST(names_come_without_the_store_in_the_same_order)
{
    enum { N = 3000 };
    static uint64_t memory[N], store[N];
    uint64_t d = fill(ROOT, N);
    unsigned pages = list_all(d, 16384, memory, N);

    ck_assert_uint_gt(pages, 3);
    ck_assert_uint_eq(listed_in_memory(), pages);
    bed_stop(&bed);
    bed_start(&bed);
    ck_assert_uint_eq(list_all(d, 16384, store, N), pages);
    ck_assert_uint_eq(listed_in_memory(), 0);
    ck_assert_mem_eq(memory, store, sizeof memory);
}
END_TEST

START_TEST(names_that_hash_to_one_place_come_in_order_too)
{
    enum { N = 200 };
    static uint64_t cookies[N];
    uint64_t d = bed_dir(&bed, ROOT, "d");
    unsigned n = 0;
    char name[16];

    for (unsigned i = 0; n < N; i++) {
        uint64_t hash = key_name_hash(name, (uint32_t)snprintf(name, sizeof(name), "f%u", i));

        if (hash >> (KEY_HASH_BITS - 7) == 5) {
            bed_file(&bed, d, name);
            n++;
        }
    }
    (void)list_all(d, 65536, cookies, N);
    ck_assert_uint_gt(listed_in_memory(), 0);
    for (unsigned i = 1; i < N; i++)
        ck_assert_uint_lt(cookies[i - 1], cookies[i]);
}
END_TEST

START_TEST(a_listing_in_memory_tells_what_has_changed_since_its_last_page)
{
    uint64_t d = fill(ROOT, 300);
    char name[16];

    memset(&all, 0, sizeof(all));
    ck_assert(shard_is_idle(bed.shard)); /* the writer has let go of its lock */
    ck_assert(page(d, 4096, false));
    ck_assert_uint_eq(listed_in_memory(), 1);
    for (unsigned i = 0; i < 300; i++) { /* all that is still to come goes, but for one */
        snprintf(name, sizeof(name), "f%u", i);
        if (!all.seen[i] && i != 299)
            ck_ok(bed_name(&bed, RPC_OP_UNLINK, d, name));
    }
    if (!all.seen[299])
        ck_ok(bed_rename(&bed, d, "f299", d, "f1000", 0));
    ck_assert(shard_is_idle(bed.shard));
    while (page(d, 4096, false))
        ;
    for (unsigned i = 0; i < 299; i++)
        ck_assert_uint_le(all.seen[i], 1);
    ck_assert_uint_eq(listed_in_memory(), all.pages);
    ck_assert_uint_le(all.seen[1000], 1); /* it may have got a place that was behind us */
    memset(&all, 0, sizeof(all));
    while (page(d, 4096, false))
        ;
    ck_assert_uint_eq(all.seen[299] + all.seen[1000], 1);
}
END_TEST

/* Two names with one hash are too rare to find: put three into one group by hand. */
START_TEST(names_with_one_hash_come_in_the_order_of_their_ordinals)
{
    static const struct {
        const char *name;
        uint16_t ordinal;
    } same[] = {{"f1", 3}, {"f2", 1}, {"f3", 2}};
    uint64_t d = bed_dir(&bed, ROOT, "d"), want[3];
    struct store_options o = {0};
    struct store_batch *batch;
    struct store *s;
    struct key k;

    bed_stop(&bed);
    ck_ok(store_open(bed.dir, &o, &s));
    ck_ok(store_batch_create(s, &batch));
    for (unsigned i = 0; i < 3; i++) {
        struct mds_dirent e = {.ino = ROOT, .ordinal = same[i].ordinal, .type = DT_REG};
        struct dirent_rec rec;

        rec_dirent_encode(&e, &rec);
        key_dirent_hash(&k, d, 77);
        key_append(&k, same[i].name, 2);
        store_batch_put(batch, k.b, k.len, &rec, sizeof(rec));
        want[same[i].ordinal - 1] = (uint64_t)(same[i].name[1] - '0');
    }
    ck_ok(store_commit(s, batch, true));
    store_batch_destroy(batch);
    store_close(s);
    bed_start(&bed);
    for (unsigned from = 0; from < 3; from++) {
        memset(&all, 0, sizeof(all));
        all.last = from ? 77u << 16 | from : 0;
        ck_assert(!page(d, 4096, false));
        ck_assert_uint_eq(all.count, 3 - from);
        for (unsigned i = 0; i < 3; i++)
            ck_assert_uint_eq(all.seen[want[i]], i >= from);
    }
    /* take them out again: the tree shall agree with itself */
    bed_stop(&bed);
    ck_ok(store_open(bed.dir, &o, &s));
    ck_ok(store_batch_create(s, &batch));
    for (unsigned i = 0; i < 3; i++) {
        key_dirent_hash(&k, d, 77);
        key_append(&k, same[i].name, 2);
        store_batch_delete(batch, k.b, k.len);
    }
    ck_ok(store_commit(s, batch, true));
    store_batch_destroy(batch);
    store_close(s);
    bed_start(&bed);
}
END_TEST

struct burst {
    struct shard_entry e;
    struct msg_create_req req;
    char name[16];
};

static _Atomic unsigned burst_done;

static void burst_one(struct shard_entry *e)
{
    if (e->status == 0)
        burst_done++;
}

START_TEST(a_hundred_thousand_entries_in_one_directory)
{
    enum { N = 100000, WAVE = 1000 };
    uint64_t d = bed_dir(&bed, ROOT, "big");
    struct burst *b = calloc(WAVE, sizeof(*b));
    struct mds_inode in;

    for (unsigned n = 0; n < N; n += WAVE) {
        for (unsigned i = 0; i < WAVE; i++) {
            struct burst *x = &b[i];

            shard_entry_init(&x->e, RPC_OP_CREATE, &x->req, NULL, burst_one);
            snprintf(x->name, sizeof(x->name), "f%u", n + i);
            x->req = (struct msg_create_req){.parent = d, .name = str(x->name), .mode = 0644};
            x->e.has_layout = true;
            ck_ok(shard_submit(bed.shard, &x->e));
        }
        /* one that is answered last: the writer keeps the order */
        struct msg_setattr_req last = {.ino = d, .set = MSG_SET_MODE, .mode = 0755};

        ck_ok(bed_call(&bed, RPC_OP_SETATTR, &last));
        for (unsigned i = 0; i < WAVE; i++)
            shard_entry_fini(&b[i].e);
    }
    free(b);
    ck_assert_uint_eq(burst_done, N);
    ck_ok(bed_inode(&bed, d, &in));
    ck_assert_uint_eq(in.entries, N);
    memset(&all, 0, sizeof(all));
    while (page(d, 1u << 20, true))
        ;
    ck_assert_uint_eq(all.count, N);
    ck_assert_uint_eq(all.attrs, N);
    ck_assert_uint_le(all.pages, 20);
    memset(&all, 0, sizeof(all));
    while (page(d, 1u << 20, false))
        ;
    ck_assert_uint_eq(all.count, N);
    ck_assert_int_eq(bed_name(&bed, RPC_OP_RMDIR, ROOT, "big"), -ENOTEMPTY);
}
END_TEST

static void expect_links(struct view *v, const uint64_t inos[2], unsigned a, unsigned b)
{
    struct mds_inode in[2];
    bool found[2];

    ck_ok(view_inodes(v, 2, inos, in, found));
    ck_assert(found[0] && found[1]);
    ck_assert_uint_eq(in[0].nlink, a);
    ck_assert_uint_eq(in[1].nlink, b);
}

START_TEST(attributes_are_of_the_state_that_is_listed_though_the_cache_knows_newer)
{
    const uint64_t inos[2] = {bed_file(&bed, ROOT, "a"), bed_file(&bed, ROOT, "b")};
    struct mds_inode in;
    struct view v;

    ck_ok(bed_inode(&bed, inos[0], &in));
    view_pin(bed.shard, &v);
    expect_links(&v, inos, 1, 1);
    ck_ok(bed_link(&bed, inos[0], ROOT, "c"));
    ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "b"));
    expect_links(&v, inos, 1, 1);
    view_unpin(&v);
    view_pin(bed.shard, &v);
    ck_ok(view_inodes(&v, 1, inos, &in, &(bool){false}));
    ck_assert_uint_eq(in.nlink, 2);
    view_unpin(&v);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("readdir");

    tcase_set_timeout(t, 100);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, every_entry_comes_once_whatever_the_size_of_the_page, 0, 4);
    tcase_add_test(t, the_first_page_of_attributes_of_a_large_directory_is_short);
    tcase_add_test(t, an_empty_directory_has_an_empty_page);
    tcase_add_loop_test(t, what_stays_is_listed_once_while_others_come_and_go, 0, 3);
    tcase_add_test(t, names_come_without_the_store_in_the_same_order);
    tcase_add_test(t, names_that_hash_to_one_place_come_in_order_too);
    tcase_add_test(t, a_listing_in_memory_tells_what_has_changed_since_its_last_page);
    tcase_add_test(t, names_with_one_hash_come_in_the_order_of_their_ordinals);
    tcase_add_test(t, attributes_are_of_the_state_that_is_listed_though_the_cache_knows_newer);
    tcase_add_test(t, a_hundred_thousand_entries_in_one_directory);
    return suite_run_case("readdir", t);
}
