/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard that runs out of memory: of every operation each allocation fails in turn, with nothing
 * cached. The operation ends in ENOMEM and has changed nothing, neither for readers nor in the
 * store, and the same once more works; or the commit could not be made known: then the shard says
 * so, and the store has all of it or nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "mds/cluster/exec.h"
#include "mds/locks/exec.h"
#include "mds/ops/exec.h"
#include "mds/ops/trash.h"
#include "mds/session/exec.h"
#include "proto/number.h"
#include "tests/component/mds/bed.h"
#include "tests/support/suite.h"

#define ROOT      KEY_ROOT_INO
#define SWEEP_MAX 500u /* no operation makes so many allocations */

static struct bed bed;
static uint64_t file, large, dir, sub;
static bool *swept; /* [SHARD_OP_LIMIT] has been, in memory that all tests of a run share */

/* Nothing stays cached between calls. */
static void start(void)
{
    bed.options.overlay_bytes = bed.options.view_bytes = 1;
    bed_start(&bed);
}

/* A little of everything. */
static void setup(void)
{
    static const char text[] = "some bytes";
    struct msg_size_req grow;
    struct mds_inode in;

    bed_open(&bed);
    bed_stop(&bed);
    start();
    file = bed_file(&bed, ROOT, "file");
    large = bed_file(&bed, ROOT, "large");
    dir = bed_dir(&bed, ROOT, "dir");
    sub = bed_dir(&bed, dir, "sub");
    bed_file(&bed, dir, "other");
    bed_file(&bed, sub, "deep");
    ck_ok(bed_link(&bed, file, dir, "second"));
    ck_ok(bed_make(&bed, RPC_OP_SYMLINK, dir, "symlink", 0777, NULL));
    ck_ok(bed_write(&bed, file, 0, text, sizeof text, 0));
    ck_ok(bed_call(
        &bed, RPC_OP_XATTR_SET,
        &(struct msg_xattr_req){.ino = file, .name = str("user.old"), .value = str("value")}));
    ck_ok(bed_inode(&bed, large, &in));
    grow = (struct msg_size_req){
        .ino = large, .size = 100000, .layout_generation = in.layout.generation, .mtime = in.mtime};
    ck_ok(bed_call(&bed, RPC_OP_GROW, &grow));
}

static void teardown(void)
{
    fault_disarm_all();
    bed_check_tree(&bed);
    bed_close(&bed);
}

/* ---- what is in the store ---- */

static int add_record(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    uint64_t *sum = arg;
    const uint8_t *parts[] = {key, value};
    const size_t lens[] = {key_len, len};

    for (unsigned p = 0; p < 2; p++)
        for (size_t i = 0; i < lens[p]; i++)
            *sum = (*sum ^ parts[p][i]) * 0x100000001b3ull;
    return 0;
}

/* Of every record but the index of the last entry. */
static uint64_t digest(void)
{
    uint64_t sum = 0xcbf29ce484222325ull;
    struct view v;
    struct key k;

    view_pin(bed.shard, &v);
    for (unsigned type = 1; type < 0x40; type++) {
        key_single(&k, (enum key_type)type);
        if (type != KEY_APPLIED)
            ck_ok(view_scan(&v, &k, NULL, add_record, &sum));
    }
    view_unpin(&v);
    return sum;
}

/* ---- the sweep ---- */

struct scene {
    unsigned op;
    const void *msg;
    const void *bulk;
    bool is_open;
    uint64_t session, marks; /* of the caller; it opens for writing, by this number */
};

static int call(const struct scene *s, unsigned nth, uint32_t *ret_result)
{
    struct shard_entry e;
    char spec[64];
    int rc;

    shard_entry_init(&e, s->op, s->msg, NULL, NULL);
    e.is_open[0] = s->is_open;
    e.session = s->session;
    e.marks_writer = s->marks != 0;
    e.open_id = s->marks;
    e.bulk = s->bulk;
    e.bulk_len = s->bulk ? (uint32_t)strlen(s->bulk) : 0;
    e.has_layout = true;
    e.layout = (struct msg_layout){1, 1, 4, 1u << 20, 4, 2, 1};
    snprintf(spec, sizeof spec, "mem.alloc=error@%u", nth);
    ck_assert_int_eq(fault_arm(spec), 0);
    rc = shard_run(bed.shard, &e);
    fault_disarm_all();
    *ret_result = e.result;
    shard_entry_fini(&e);
    return rc;
}

/* The process would end here, and the next one read what is on the disk. */
static void start_over(void)
{
    bed_stop(&bed);
    start();
}

static void sweep(const struct scene *s)
{
    unsigned nth = 1, failed = 0;
    uint64_t before = digest();
    bool done = false;

    for (; !done; nth++) {
        uint32_t result;
        int rc = call(s, nth, &result);

        ck_assert_msg(nth < SWEEP_MAX, "%u: more allocations than ever", s->op);
        if (result & SHARD_R_UNKNOWN) {
            start_over();
            done = digest() != before;
        } else if (rc == 0) {
            done = true;
        } else {
            ck_assert_msg(rc == -ENOMEM, "%u, allocation %u: %s", s->op, nth, err_name(rc));
            ck_assert_msg(digest() == before, "%u, allocation %u: it has failed and changed", s->op,
                          nth);
            failed++;
        }
        bed_check_tree(&bed);
    }
    ck_assert_uint_gt(failed, 0);
    ck_assert_uint_ne(digest(), before);
    start_over(); /* the same from the disk */
    bed_check_tree(&bed);
    swept[s->op] = true;
}

#define SWEEP(opcode, message) sweep(&(struct scene){.op = opcode, .msg = &(message)})

START_TEST(names_that_are_made)
{
    struct msg_create_req req = {
        .parent = dir, .name = str("new"), .mode = 0644, .target = str("somewhere")};
    struct msg_link_req link = {.ino = file, .new_parent = dir, .new_name = str("third")};

    SWEEP(RPC_OP_CREATE, req);
    req.name = str("new directory");
    SWEEP(RPC_OP_MKDIR, req);
    req.name = str("new node");
    req.mode = S_IFIFO | 0600;
    SWEEP(RPC_OP_MKNOD, req);
    req.name = str("new link");
    SWEEP(RPC_OP_SYMLINK, req);
    SWEEP(RPC_OP_LINK, link);
}
END_TEST

START_TEST(names_that_go)
{
    struct msg_name_req first = {.parent = ROOT, .name = str("file")};
    struct msg_name_req last = {.parent = dir, .name = str("second")};
    struct msg_name_req symlink = {.parent = dir, .name = str("symlink")};
    struct msg_name_req chunks = {.parent = ROOT, .name = str("large")};
    struct msg_name_req open = {.parent = sub, .name = str("deep")};
    struct msg_name_req empty = {.parent = dir, .name = str("sub")};
    struct shard_ino orphan = {.ino = bed_lookup(&bed, sub, "deep")};
    struct shard_queue_done destroyed = {.queue = KEY_DESTROY, .ino = large};
    const void *value;
    struct mds_queue_item item;
    struct arena a;
    struct view v;
    uint32_t len;
    struct key k;

    SWEEP(RPC_OP_UNLINK, first);
    SWEEP(RPC_OP_UNLINK, last);
    SWEEP(RPC_OP_UNLINK, symlink);
    SWEEP(RPC_OP_UNLINK, chunks);
    arena_init(&a, 0);
    key_number(&k, KEY_DESTROY, large);
    view_pin(bed.shard, &v);
    ck_ok(view_record(&v, &k, &a, &value, &len));
    view_unpin(&v);
    ck_ok(rec_queue_decode(value, len, &item));
    arena_reset(&a);
    destroyed.index = item.index;
    SWEEP(SHARD_OP_QUEUE_DONE, destroyed);
    sweep(&(struct scene){.op = RPC_OP_UNLINK, .msg = &open, .is_open = true});
    SWEEP(SHARD_OP_ORPHAN_RELEASE, orphan);
    SWEEP(RPC_OP_RMDIR, empty);
}
END_TEST

START_TEST(names_that_change)
{
    struct msg_rename_req plain = {
        .parent = ROOT, .name = str("file"), .new_parent = sub, .new_name = str("moved")};
    struct msg_rename_req over = {
        .parent = dir, .name = str("other"), .new_parent = ROOT, .new_name = str("large")};
    struct msg_rename_req swap = {.parent = dir,
                                  .name = str("sub"),
                                  .new_parent = ROOT,
                                  .new_name = str("large"),
                                  .flags = RENAME_EXCHANGE};

    SWEEP(RPC_OP_RENAME, plain);
    SWEEP(RPC_OP_RENAME, over);
    SWEEP(RPC_OP_RENAME, swap);
}
END_TEST

START_TEST(attributes)
{
    struct msg_setattr_req mode = {.ino = file, .set = MSG_SET_MODE, .mode = 0600};
    struct msg_setattr_req cut = {.ino = large, .set = MSG_SET_SIZE, .size = 10};
    struct msg_setattr_req shorter = {.ino = file, .set = MSG_SET_SIZE, .size = 4};
    struct msg_xattr_req set = {.ino = file, .name = str("user.new"), .value = str("value")};
    struct msg_xattr_req gone = {.ino = file, .name = str("user.old")};

    SWEEP(RPC_OP_SETATTR, mode);
    SWEEP(RPC_OP_SETATTR, cut);
    SWEEP(RPC_OP_SETATTR, shorter);
    SWEEP(RPC_OP_XATTR_SET, set);
    SWEEP(RPC_OP_XATTR_REMOVE, gone);
}
END_TEST

START_TEST(files_that_were_read)
{
    const struct msg_time now = {.sec = INT64_MAX}; /* as the server's clock says it */
    struct msg_read_item items[] = {{.ino = file, .atime = now}, {.ino = dir, .atime = now}};
    struct shard_reads reads = {.n = ARRAY_LEN(items), .items = items};

    for (unsigned i = 0; i < ARRAY_LEN(items); i++) {
        struct mds_inode in;

        ck_ok(bed_inode(&bed, items[i].ino, &in));
        items[i].was = in.atime;
    }
    clock_virtual_advance(&bed.clock, NS_PER_S);
    SWEEP(SHARD_OP_READS, reads);
}
END_TEST

START_TEST(content)
{
    struct msg_write_inline_req write = {.ino = file, .append = true};
    struct msg_size_req size = {.ino = large, .size = 200000};
    struct msg_append_req range = {.ino = large, .len = 1000};
    struct msg_open_req trunc = {.ino = file, .flags = O_WRONLY | O_TRUNC};
    struct shard_size unsure = {.ino = large, .session = 3};
    struct shard_size found = {.ino = large, .size = 300000, .session = 3};
    struct shard_size times = {.ino = large, .has_mtime = true, .mtime = {.sec = 5}};
    struct mds_inode in;

    ck_ok(bed_inode(&bed, file, &in));
    write.layout_generation = in.layout.generation;
    write.truncate_gen = in.truncate_gen;
    sweep(&(struct scene){.op = RPC_OP_WRITE_INLINE, .msg = &write, .bulk = "more bytes"});
    SWEEP(RPC_OP_OPEN, trunc);
    ck_ok(bed_inode(&bed, large, &in));
    size.layout_generation = in.layout.generation;
    size.mtime = in.mtime;
    SWEEP(RPC_OP_SIZE, size);
    SWEEP(RPC_OP_APPEND_RANGE, range);
    SWEEP(SHARD_OP_TIMES, times);
    SWEEP(SHARD_OP_SIZE_UNSURE, unsure);
    ck_ok(bed_call(&bed, SHARD_OP_SIZE_UNSURE, &unsure));
    found.index = bed.e.index;
    SWEEP(SHARD_OP_SIZE_RECOVERED, found);
}
END_TEST

START_TEST(a_tree_that_goes)
{
    struct trash_detach detach = {.parent = ROOT, .ino = dir, .name = str("dir")};
    struct trash_name names[] = {
        {.ino = bed_lookup(&bed, dir, "other"), .name = str("other")},
        {.ino = file, .name = str("second"), .told = true},
        {.ino = bed_lookup(&bed, dir, "symlink"), .name = str("symlink")},
        {.ino = sub, .name = str("sub")},
    };
    struct trash_name deep = {
        .ino = bed_lookup(&bed, sub, "deep"), .name = str("deep"), .is_open = true};
    struct trash_names above = {.dir = dir, .last = true, .n = ARRAY_LEN(names), .names = names};
    struct trash_names below = {.dir = sub, .last = true, .n = 1, .names = &deep};

    SWEEP(SHARD_OP_TRASH_TREE, detach);
    SWEEP(SHARD_OP_TRASH_NAMES, above);
    SWEEP(SHARD_OP_TRASH_NAMES, below);
    ck_assert_uint_eq(bed_count(&bed, KEY_TRASH) + bed_count(&bed, KEY_TRASH_TREE), 0);
}
END_TEST

START_TEST(a_file_that_grows)
{
    struct msg_size_req grow = {.ino = file, .size = 100000};
    struct mds_inode in;

    ck_ok(bed_inode(&bed, file, &in));
    grow.layout_generation = in.layout.generation;
    grow.mtime = in.mtime;
    SWEEP(RPC_OP_GROW, grow);
}
END_TEST

#define SWEEP_OF(opcode, message)                                                                  \
    sweep(&(struct scene){.op = opcode, .msg = &(message), .session = SESSION})
#define SESSION 1u /* the first one that is created */

static void session_begins(void)
{
    struct session_create create = {
        .generation = 1, .host = str("node"), .mount = str("/mnt"), .job = str("job")};
    uint32_t nothing = 0;

    SWEEP(SHARD_OP_BOOT, nothing);
    SWEEP(SHARD_OP_SESSION_CREATE, create);
}

static void opens_for_writing(uint64_t ino, uint64_t id)
{
    struct msg_open_req open = {.ino = ino, .flags = O_WRONLY};

    sweep(&(struct scene){.op = RPC_OP_OPEN, .msg = &open, .session = SESSION, .marks = id});
}

static void locks_two_files(void)
{
    struct msg_lock_req whole = {
        .ino = file,
        .lock = {.kind = MSG_LOCK_FLOCK, .type = MSG_LOCK_WRITE, .end = MSG_LOCK_END, .owner = 1}};
    struct msg_lock_req range = {
        .ino = large,
        .lock = {.kind = MSG_LOCK_RECORD, .type = MSG_LOCK_WRITE, .end = 99, .owner = 1}};
    struct msg_lock_req middle = {
        .ino = large,
        .lock = {
            .kind = MSG_LOCK_RECORD, .type = MSG_LOCK_UNLOCK, .start = 10, .end = 19, .owner = 1}};

    SWEEP_OF(RPC_OP_LOCK, whole);
    SWEEP_OF(RPC_OP_LOCK, range);
    SWEEP_OF(RPC_OP_LOCK, middle);
}

START_TEST(locks)
{
    struct msg_lock_req other = {
        .ino = file,
        .lock = {.kind = MSG_LOCK_FLOCK, .type = MSG_LOCK_WRITE, .end = MSG_LOCK_END, .owner = 1}};
    struct locks_free all = {.session = SESSION};

    session_begins();
    locks_two_files();
    SWEEP(SHARD_OP_LOCKS_FREE, all);
    ck_assert_uint_eq(bed_count(&bed, KEY_LOCK) + bed_count(&bed, KEY_LOCK_SESSION), 0);
    sweep(&(struct scene){.op = RPC_OP_LOCK, .msg = &other, .session = SESSION + 1});
}
END_TEST

START_TEST(sessions_from_their_opening_to_their_fence)
{
    struct session_mark mark = {.session = SESSION, .ino = file, .id = 5};
    struct session_unmark unmark = {.n = 1, .marks = &mark};
    struct session_set_alone alone = {.session = SESSION, .alone = true};
    struct session_evict evict = {.session = SESSION};
    struct session_remove gone = {.session = SESSION};
    struct msg_create_req given = {.parent = dir,
                                   .name = str("given"),
                                   .ino = number_given(dir, SESSION, 3),
                                   .data = str("some bytes"),
                                   .has_since = true,
                                   .since = {.set = MSG_SET_MODE, .mode = 0600}};
    uint64_t fence = 1;
    struct session_fence_forget forget = {.n = 1, .fences = &fence};

    session_begins();
    opens_for_writing(file, mark.id);
    SWEEP(SHARD_OP_SESSION_UNMARK, unmark);
    SWEEP(SHARD_OP_SESSION_ALONE, alone);
    ck_assert_uint_eq(bed_count(&bed, KEY_WRITER), 0);
    opens_for_writing(file, 6);
    opens_for_writing(large, 7);
    SWEEP_OF(RPC_OP_MKNOD, given);
    ck_assert(bed_has(&bed, KEY_INODE, given.ino) && bed_has(&bed, KEY_GIVEN, SESSION));
    locks_two_files();
    SWEEP(SHARD_OP_SESSION_EVICT, evict);
    ck_assert(bed_has(&bed, KEY_PUNCH, file) && bed_has(&bed, KEY_RECOVER, large));
    SWEEP(SHARD_OP_SESSION_REMOVE, gone);
    ck_assert_uint_eq(bed_count(&bed, KEY_SESSION) + bed_count(&bed, KEY_LOCK), 0);
    ck_assert_uint_eq(bed_count(&bed, KEY_GIVEN), 0);
    SWEEP(SHARD_OP_FENCE_FORGET, forget);
    ck_assert_uint_eq(bed_count(&bed, KEY_FENCE), 0);
}
END_TEST

START_TEST(the_cluster_map)
{
    static const char text[] = "a map";
    struct cluster_map_set set = {.data = text, .len = sizeof text};

    SWEEP(SHARD_OP_MAP_SET, set);
}
END_TEST

START_TEST(an_operation_and_its_kept_reply_fail_together)
{
    struct msg_create_req req = {.parent = dir, .name = str("once"), .mode = 0644};
    int rc = -ENOMEM;

    bed_session(&bed, 7);
    for (unsigned nth = 1; rc != 0; nth++) {
        struct shard_entry e;
        char spec[64];

        ck_assert_uint_lt(nth, SWEEP_MAX);
        shard_entry_init(&e, RPC_OP_CREATE, &req, NULL, NULL);
        e.session = 7;
        e.slot = 1;
        e.sequence = nth; /* a new call */
        e.has_layout = true;
        e.layout = (struct msg_layout){1, 1, 4, 1u << 20, 4, 2, 1};
        snprintf(spec, sizeof spec, "mem.alloc=error@%u", nth);
        ck_assert_int_eq(fault_arm(spec), 0);
        rc = shard_run(bed.shard, &e);
        fault_disarm_all();
        if (e.result & SHARD_R_UNKNOWN) {
            start_over();
            rc = bed_lookup(&bed, dir, "once") ? 0 : -ENOMEM;
        } else {
            ck_assert(rc == 0 || rc == -ENOMEM);
            ck_assert_int_eq(bed_lookup(&bed, dir, "once") != 0, rc == 0);
        }
        shard_entry_fini(&e);
    }
    bed.session = 0;
}
END_TEST

#define PARTS 4u

/* Changes of the same directory: what one has left behind would be seen in the next. */
static void add_parts(struct shard_item *items, struct msg_create_req *make,
                      struct msg_name_req *gone, const struct msg_bytes *names)
{
    static const uint16_t ops[PARTS] = {RPC_OP_MKDIR, RPC_OP_UNLINK, RPC_OP_MKNOD, RPC_OP_MKDIR};

    for (unsigned k = 0; k < PARTS; k++) {
        bool goes = ops[k] == RPC_OP_UNLINK;

        make[k] = (struct msg_create_req){
            .parent = dir, .name = names[k], .mode = ops[k] == RPC_OP_MKNOD ? 0100644 : 0755};
        gone[k] = (struct msg_name_req){.parent = dir, .name = names[k]};
        items[k] =
            (struct shard_item){.op = ops[k],
                                .msg = goes ? (const void *)&gone[k] : (const void *)&make[k],
                                .has_layout = true,
                                .layout = {1, 1, 4, 1u << 20, 4, 2, 1}};
    }
}

/* 0: all have happened. Else so many have not; PARTS also when nobody knows. */
static unsigned batch_fails(unsigned nth)
{
    char texts[PARTS][16], spec[64];
    struct shard_item items[PARTS];
    struct msg_create_req make[PARTS];
    struct msg_name_req gone[PARTS];
    struct msg_bytes names[PARTS];
    struct shard_entry e;
    unsigned n = 0;
    int rc;

    for (unsigned k = 0; k < PARTS; k++) {
        snprintf(texts[k], sizeof texts[k], "%u.%u", nth, k);
        names[k] = str(texts[k]);
    }
    add_parts(items, make, gone, names);
    bed_file(&bed, dir, texts[1]);
    shard_entry_init(&e, RPC_OP_BATCH, NULL, NULL, NULL);
    e.items = items;
    e.n_items = PARTS;
    snprintf(spec, sizeof spec, "mem.alloc=error@%u", nth);
    ck_assert_int_eq(fault_arm(spec), 0);
    rc = shard_run(bed.shard, &e);
    fault_disarm_all();
    if (e.result & SHARD_R_UNKNOWN)
        start_over();
    for (unsigned k = 0; k < PARTS && !(e.result & SHARD_R_UNKNOWN); k++) {
        bool happened = rc == 0 && items[k].status == 0;

        ck_assert(rc == 0 ? happened || items[k].status == -ENOMEM : rc == -ENOMEM);
        ck_assert_int_eq((bed_lookup(&bed, dir, texts[k]) != 0), (k == 1) != happened);
        n += !happened;
    }
    n = e.result & SHARD_R_UNKNOWN ? PARTS : n;
    shard_entry_fini(&e);
    bed_check_tree(&bed);
    return n;
}

START_TEST(each_change_of_a_batch_has_happened_or_has_not)
{
    unsigned n = PARTS, partly = 0;

    for (unsigned nth = 1; n > 0; nth++) {
        ck_assert_uint_lt(nth, SWEEP_MAX);
        n = batch_fails(nth);
        partly += n > 0 && n < PARTS;
    }
    ck_assert_uint_gt(partly, 0);
    start_over(); /* the same from the disk */
    bed_check_tree(&bed);
    swept[RPC_OP_BATCH] = true;
}
END_TEST

/* The last one of a run. Without a format there is no file system yet, and no server. */
START_TEST(there_is_no_operation_without_such_a_test)
{
    for (unsigned op = 0; op < SHARD_OP_LIMIT; op++)
        ck_assert_msg(!mds_exec_table[op] || swept[op] || op == SHARD_OP_FORMAT,
                      "%u is executed, and nobody knows what it does without memory", op);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("mds-allocations");

    swept = mmap(NULL, SHARD_OP_LIMIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (swept == MAP_FAILED)
        return 1;
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, names_that_are_made);
    tcase_add_test(t, names_that_go);
    tcase_add_test(t, names_that_change);
    tcase_add_test(t, attributes);
    tcase_add_test(t, files_that_were_read);
    tcase_add_test(t, content);
    tcase_add_test(t, a_tree_that_goes);
    tcase_add_test(t, a_file_that_grows);
    tcase_add_test(t, locks);
    tcase_add_test(t, sessions_from_their_opening_to_their_fence);
    tcase_add_test(t, the_cluster_map);
    tcase_add_test(t, an_operation_and_its_kept_reply_fail_together);
    tcase_add_test(t, each_change_of_a_batch_has_happened_or_has_not);
    tcase_add_test(t, there_is_no_operation_without_such_a_test);
    return suite_run_case("mds-allocations", t);
}
