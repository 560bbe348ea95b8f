// SPDX-License-Identifier: Apache-2.0
/* BATCH: many changes of names in one message, each with its outcome, all of them exactly once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fault/fault.h"
#include "mds/store/key_fmt.h"
#include "proto/header_fmt.h"
#include "tests/component/mds_server/rig_int.h"

#define ROOT         KEY_ROOT_INO
#define CRASH_STATUS 137

static struct rig rig;
static struct rig_call held;
static struct msg_batch_item items[MSG_BATCH_MAX];
static char texts[MSG_BATCH_MAX][16];
static uint32_t n;

static void setup(void)
{
    rig_begin(&rig, 2, 2);
    n = 0;
}

static void teardown(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (rig.client[i].rpc)
            rig_client_answer(&rig, i);
    }
    rig_settle(&rig);
    rig_forget(&held);
    rig_end(&rig);
}

static void add_item(unsigned op, uint64_t parent, const char *name)
{
    snprintf(texts[n], sizeof texts[n], "%s", name);
    items[n] = (struct msg_batch_item){
        .op = op, .parent = parent, .name = str(texts[n]), .mode = 0750, .masked = 022};
    n++;
}

static void add_files(uint64_t parent, unsigned many)
{
    char name[16];

    for (unsigned i = 0; i < many; i++) {
        snprintf(name, sizeof name, "f%u", i);
        add_item(RPC_OP_MKNOD, parent, name);
    }
}

static struct msg_batch_req request(void)
{
    return (struct msg_batch_req){.n_items = n, .items = items};
}

static const struct msg_batch_rep *batch(unsigned client)
{
    struct msg_batch_req req = request();
    const void *rep;

    ck_ok(rig_do(&rig, client, RPC_OP_BATCH, &req, &rep));
    ck_assert_uint_eq(((const struct msg_batch_rep *)rep)->n_items, n);
    return rep;
}

static int status(const struct msg_batch_rep *rep, uint32_t k)
{
    return err_from_wire(rep->items[k].status);
}

static unsigned kept(const struct msg_batch_rep *rep, uint32_t k)
{
    return rep->kept.len ? ((const uint8_t *)rep->kept.data)[k] : 0;
}

static uint64_t lookup(unsigned client, uint64_t dir, const char *name)
{
    struct msg_name_req req = {.parent = dir, .name = str(name)};
    const void *rep;
    int rc = rig_do(&rig, client, RPC_OP_LOOKUP, &req, &rep);

    ck_assert(rc == 0 || rc == -ENOENT);
    return rc == 0 ? ((const struct msg_inode_rep *)rep)->inode.attr.ino : 0;
}

static uint64_t make_dir(const char *name)
{
    struct msg_create_req req = {.parent = ROOT, .name = str(name), .mode = 0777};
    const void *rep;

    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &req, &rep));
    return ((const struct msg_inode_rep *)rep)->inode.attr.ino;
}

START_TEST(every_change_of_a_batch_has_an_outcome_of_its_own)
{
    const struct msg_batch_rep *rep;
    struct mds_inode root;

    add_files(ROOT, 20);
    add_item(RPC_OP_MKNOD, ROOT, "f3");
    add_item(RPC_OP_MKDIR, ROOT, "d");
    add_item(RPC_OP_UNLINK, ROOT, "none");
    add_item(RPC_OP_RMDIR, ROOT, "none");
    add_item(RPC_OP_MKNOD, 4711, "f");
    add_item(RPC_OP_LINK, ROOT, "f1");
    add_item(RPC_OP_MKNOD, ROOT, "last");
    rep = batch(0);
    for (uint32_t k = 0; k < 20; k++) {
        ck_ok(status(rep, k));
        ck_assert_uint_eq(rep->items[k].rep.inode.attr.mode, 0100750);
        ck_assert_uint_ne(rep->items[k].rep.inode.layout.table_len, 0);
        ck_assert(!rep->items[k].rep.has_dir);
    }
    ck_assert_int_eq(status(rep, 20), -EEXIST);
    ck_ok(status(rep, 21));
    ck_assert_int_eq(status(rep, 22), -ENOENT);
    ck_assert_int_eq(status(rep, 23), -ENOENT);
    ck_assert_int_eq(status(rep, 24), -ENOENT);
    ck_assert_int_eq(status(rep, 25), -EOPNOTSUPP);
    ck_ok(status(rep, 26));
    ck_assert(rep->items[26].rep.has_dir); /* the last of the directory tells */
    ck_assert_uint_eq(kept(rep, 0), RPC_FLAG_KEPT_DIR | RPC_FLAG_KEPT_INODE);
    ck_assert_uint_eq(kept(rep, 20), 0);
    ck_ok(rig_inode(&rig, ROOT, &root));
    ck_assert_uint_eq(root.entries, 22);
    ck_assert_uint_eq(rep->items[26].rep.dir.change, root.change);
    n = 0;
    add_item(RPC_OP_UNLINK, ROOT, "f0");
    add_item(RPC_OP_UNLINK, ROOT, "d");
    add_item(RPC_OP_RMDIR, ROOT, "f1");
    add_item(RPC_OP_RMDIR, ROOT, "d");
    rep = batch(0);
    ck_ok(status(rep, 0));
    ck_assert_int_eq(status(rep, 1), -EISDIR);
    ck_assert_int_eq(status(rep, 2), -ENOTDIR);
    ck_ok(status(rep, 3));
    ck_assert_uint_eq(lookup(0, ROOT, "f0"), 0);
    ck_assert_uint_ne(lookup(0, ROOT, "f1"), 0);
    ck_assert_uint_eq(lookup(0, ROOT, "d"), 0);
}
END_TEST

START_TEST(a_directory_of_no_shard_spoils_only_its_own_change)
{
    const struct msg_batch_rep *rep;

    add_item(RPC_OP_MKNOD, UINT64_MAX, "f");
    add_item(RPC_OP_MKNOD, ROOT, "f");
    rep = batch(0);
    ck_assert_int_eq(status(rep, 0), -ENOENT);
    ck_ok(status(rep, 1));
}
END_TEST

START_TEST(what_depends_on_another_of_the_batch_is_left_to_come_alone)
{
    const struct msg_batch_rep *rep;

    add_item(RPC_OP_MKNOD, ROOT, "a");
    add_item(RPC_OP_UNLINK, ROOT, "a"); /* was not there when it was resolved */
    add_item(RPC_OP_MKNOD, ROOT, "b");
    rep = batch(0);
    ck_ok(status(rep, 0));
    ck_assert_int_eq(status(rep, 1), -AIFS_ERETRY);
    ck_ok(status(rep, 2));
    ck_assert_uint_ne(lookup(0, ROOT, "a"), 0);
}
END_TEST

START_TEST(what_would_wait_for_somebody_is_not_executed_and_keeps_nobody_waiting)
{
    uint64_t busy = make_dir("busy"), quiet = make_dir("quiet");
    struct msg_create_req alone = {.parent = busy, .name = str("x"), .mode = 0100644};
    const struct msg_batch_rep *rep;

    ck_assert_uint_eq(lookup(1, busy, "x"), 0); /* and believes it from now on */
    rig.client[1].mute = true;
    add_item(RPC_OP_MKNOD, quiet, "x");
    add_item(RPC_OP_MKNOD, busy, "x");
    add_item(RPC_OP_MKNOD, quiet, "y");
    rep = batch(0);
    ck_ok(status(rep, 0));
    ck_assert_int_eq(status(rep, 1), -AIFS_ERETRY);
    ck_ok(status(rep, 2));
    ck_assert_uint_eq(rig_client_count(&rig.client[1], RPC_OP_INVALIDATE, busy), 0);
    rig_send(&rig, 0, 2, &held, RPC_OP_MKNOD, &alone);
    rig_settle(&rig);
    ck_assert(!held.done);
    rig_client_answer(&rig, 1);
    ck_assert(rig_until(&rig, 5000, rig_is_done, &held));
    ck_ok(held.status);
    ck_assert_uint_ne(lookup(1, busy, "x"), 0);
}
END_TEST

START_TEST(an_open_file_that_a_batch_unlinks_lives_until_it_is_closed)
{
    const struct msg_inode_rep *made = rig_create(&rig, 0, "open", O_RDWR);
    uint64_t ino = made->inode.attr.ino, open_id = made->open_id;

    ck_assert_uint_ne(rig_create(&rig, 0, "other", O_RDWR)->open_id, 0);
    add_item(RPC_OP_UNLINK, ROOT, "open");
    add_item(RPC_OP_UNLINK, ROOT, "other");
    ck_ok(status(batch(0), 0));
    ck_ok(status(rig.call.c.rep, 1));
    ck_assert(rig_has(&rig, KEY_ORPHAN, ino));
    rig_close_file(&rig, 0, ino, open_id);
    rig_settle(&rig);
    ck_assert(!rig_has(&rig, KEY_ORPHAN, ino));
    ck_assert(!rig_has(&rig, KEY_INODE, ino));
}
END_TEST

static void reclaim(unsigned client)
{
    ck_ok(rig_reclaim(&rig, client, 0, 0, 0, MSG_LEASE_NONE, 0));
}

static void add_rename(const char *from, const char *to, uint32_t flags)
{
    static char names[MSG_BATCH_MAX][16];

    add_item(RPC_OP_RENAME, ROOT, from);
    snprintf(names[n - 1], sizeof names[0], "%s", to);
    items[n - 1].new_name = str(names[n - 1]);
    items[n - 1].flags = flags;
}

START_TEST(a_batch_renames_in_a_directory)
{
    const struct msg_batch_rep *rep;
    struct mds_inode root;
    uint64_t f[3];
    char name[16];

    add_files(ROOT, 3);
    batch(0);
    for (unsigned k = 0; k < 3; k++) {
        snprintf(name, sizeof name, "f%u", k);
        f[k] = lookup(0, ROOT, name);
    }
    n = 0;
    ck_ok(rig_inode(&rig, ROOT, &root));
    rig_pass(&rig, 10000);
    add_rename("f0", "g", RENAME_NOREPLACE);
    items[0].when_ns = (uint64_t)root.mtime.sec * NS_PER_S + 5 * NS_PER_S; /* it was there then */
    add_rename("f1", "f2", RENAME_NOREPLACE);
    add_rename("f1", "f2", 0);
    add_rename("none", "h", 0);
    rep = batch(0);
    ck_ok(status(rep, 0));
    ck_assert_uint_eq(rep->items[0].rep.inode.attr.ino, f[0]);
    ck_assert_int_eq(rep->items[0].rep.inode.attr.ctime.sec, root.mtime.sec + 5);
    ck_assert_uint_eq(kept(rep, 0), RPC_FLAG_KEPT_DIR);
    ck_assert_int_eq(status(rep, 1), -EEXIST);
    ck_ok(status(rep, 2));
    ck_assert(rep->items[2].rep.has_victim && rep->items[2].rep.has_dir);
    ck_assert_uint_eq(rep->items[2].rep.victim.ino, f[2]);
    ck_assert_uint_eq(rep->items[2].rep.victim.nlink, 0);
    ck_assert_int_eq(status(rep, 3), -ENOENT);
    ck_assert_uint_eq(lookup(0, ROOT, "g"), f[0]);
    ck_assert_uint_eq(lookup(0, ROOT, "f2"), f[1]);
    ck_assert_uint_eq(lookup(0, ROOT, "f0"), 0);
    ck_assert_uint_eq(lookup(0, ROOT, "f1"), 0);
}
END_TEST

/* The client has told its kernel so. The directory has been changed later by then. */
START_TEST(a_renamed_file_has_the_time_that_was_told_of_it)
{
    const struct msg_batch_rep *rep;
    struct mds_inode root;

    add_files(ROOT, 2);
    batch(0);
    n = 0;
    ck_ok(rig_inode(&rig, ROOT, &root));
    rig_pass(&rig, 10000);
    add_rename("f0", "g0", RENAME_NOREPLACE);
    items[0].when_ns = (uint64_t)root.mtime.sec * NS_PER_S + 8 * NS_PER_S;
    add_rename("f1", "g1", RENAME_NOREPLACE);
    items[1].when_ns = (uint64_t)root.mtime.sec * NS_PER_S + 5 * NS_PER_S;
    rep = batch(0);
    for (unsigned k = 0; k < 2; k++) {
        ck_ok(status(rep, k));
        ck_assert_int_eq(rep->items[k].rep.inode.attr.ctime.sec, root.mtime.sec + (k ? 5 : 8));
    }
    ck_assert_int_eq(rep->items[1].rep.dir.mtime.sec, root.mtime.sec + 8);
}
END_TEST

START_TEST(an_open_file_that_a_batch_replaces_lives_until_it_is_closed)
{
    const struct msg_inode_rep *made = rig_create(&rig, 0, "open", O_RDWR);
    uint64_t ino = made->inode.attr.ino, open_id = made->open_id;

    ck_assert_uint_ne(rig_create(&rig, 0, "other", O_RDWR)->open_id, 0);
    add_rename("other", "open", 0);
    ck_ok(status(batch(0), 0));
    ck_assert(rig_has(&rig, KEY_ORPHAN, ino));
    rig_close_file(&rig, 0, ino, open_id);
    rig_settle(&rig);
    ck_assert(!rig_has(&rig, KEY_ORPHAN, ino));
    ck_assert(!rig_has(&rig, KEY_INODE, ino));
}
END_TEST

START_TEST(while_sessions_reclaim_all_of_a_batch_is_left_to_come_alone)
{
    const struct msg_batch_rep *rep;

    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_oss_start(&rig, 0, 2);
    reclaim(0); /* and client 1 has not yet */
    add_files(ROOT, 5);
    rep = batch(0);
    for (uint32_t k = 0; k < n; k++)
        ck_assert_int_eq(status(rep, k), -AIFS_ERETRY);
    ck_assert_uint_eq(lookup(0, ROOT, "f0"), 0);
    reclaim(1);
    ck_ok(status(batch(0), 0));
}
END_TEST

START_TEST(a_batch_that_is_none_is_refused)
{
    struct msg_batch_req none = {0};

    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_BATCH, &none, NULL), -AIFS_EPROTO);
    add_item(RPC_OP_MKNOD, ROOT, "a/b");
    none = request();
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_BATCH, &none, NULL), -AIFS_EPROTO);
    n = 0;
    add_item(RPC_OP_MKNOD, ROOT, "f");
    none = request();
    rig_send(&rig, 0, RIG_SLOTS, &held, RPC_OP_BATCH, &none);
    rig_settle(&rig);
    ck_ok(held.status);
    rig_send(&rig, 0, 0, &held, RPC_OP_BATCH, &none);
    rig_settle(&rig);
    ck_assert_int_eq(held.status, -AIFS_EPROTO);
}
END_TEST

static uint64_t inos[MSG_BATCH_MAX];

static void remember(const struct msg_batch_rep *rep)
{
    for (uint32_t k = 0; k < n; k++) {
        ck_ok(status(rep, k));
        inos[k] = rep->items[k].rep.inode.attr.ino;
    }
}

/* The same message again: the same answers, granting nothing. */
static void sent_again(void)
{
    struct msg_batch_req req = request();
    const struct msg_batch_rep *rep;
    struct mds_inode root;

    rig_send_again(&rig, 0, 1, &held, RPC_OP_BATCH, &req);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &held));
    ck_ok(held.status);
    rep = held.c.rep;
    ck_assert_uint_eq(rep->n_items, n);
    ck_assert_uint_eq(rep->kept.len, 0);
    for (uint32_t k = 0; k < n; k++) {
        ck_ok(status(rep, k));
        ck_assert_uint_eq(rep->items[k].rep.inode.attr.ino, inos[k]);
    }
    ck_ok(rig_inode(&rig, ROOT, &root));
    ck_assert_uint_eq(root.entries, n);
}

START_TEST(a_repeated_batch_gets_its_answers_again_and_changes_nothing)
{
    add_files(ROOT, MSG_BATCH_MAX);
    remember(batch(0));
    sent_again();
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_oss_start(&rig, 0, 2);
    reclaim(0);
    reclaim(1);
    sent_again();
}
END_TEST

/* ---- kill -9 ---- */

static const char *const crashes[] = {"mds.commit.before=crash", "mds.commit.after=crash",
                                      "rpc.BATCH.after=crash"};

/* In a child: the server dies around the commit, or with the answer on its lips. */
static void run_to_the_crash(const char *root, const char *fault, struct rig_client *who)
{
    struct msg_batch_req req;

    rig_open(&rig, root);
    rig_oss_start(&rig, 0, 2);
    rig_client_open(&rig, 0);
    rig_settle(&rig);
    *who = rig.client[0];
    ck_ok(fault_arm(fault));
    add_files(ROOT, MSG_BATCH_MAX);
    req = request();
    rig_send(&rig, 0, 1, &held, RPC_OP_BATCH, &req);
    rig_pass(&rig, 20000);
    _exit(0); /* it did not crash */
}

/* Its client goes on, with the session it had. */
static void come_back(const struct rig_client *who)
{
    struct rig_client *c = &rig.client[0];

    c->id = who->id;
    c->node = who->node;
    rig_client_connect(&rig, 0);
    c->session = who->session;
    c->generation = who->generation;
    memcpy(c->sequence, who->sequence, sizeof c->sequence);
    c->sequence[1]++;
    c->alive = c->release = true;
    reclaim(0);
}

START_TEST(a_batch_whose_answer_died_with_the_server_is_executed_once)
{
    char root[sizeof rig.root];
    struct rig_client *who =
        mmap(NULL, sizeof *who, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct msg_batch_req req;
    int how;
    pid_t pid;

    ck_assert_ptr_ne(who, MAP_FAILED);
    rig_make_root(root, sizeof root);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        run_to_the_crash(root, crashes[_i], who);
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == CRASH_STATUS,
                  "%s was not reached (status %#x)", crashes[_i], (unsigned)how);
    rig_open(&rig, root);
    rig_oss_start(&rig, 0, 2);
    come_back(who);
    if (_i > 0) /* it was committed */
        ck_assert_uint_ne(lookup(0, ROOT, "f0"), 0);
    n = 0;
    add_files(ROOT, MSG_BATCH_MAX);
    req = request();
    rig_send_again(&rig, 0, 1, &held, RPC_OP_BATCH, &req);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &held));
    ck_ok(held.status);
    remember(held.c.rep);
    for (uint32_t k = 0; k < n; k++)
        ck_assert_uint_eq(lookup(0, ROOT, texts[k]), inos[k]);
    sent_again();
    munmap(who, sizeof *who);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, every_change_of_a_batch_has_an_outcome_of_its_own);
    tcase_add_test(t, a_directory_of_no_shard_spoils_only_its_own_change);
    tcase_add_test(t, what_depends_on_another_of_the_batch_is_left_to_come_alone);
    tcase_add_test(t, what_would_wait_for_somebody_is_not_executed_and_keeps_nobody_waiting);
    tcase_add_test(t, an_open_file_that_a_batch_unlinks_lives_until_it_is_closed);
    tcase_add_test(t, a_batch_renames_in_a_directory);
    tcase_add_test(t, a_renamed_file_has_the_time_that_was_told_of_it);
    tcase_add_test(t, an_open_file_that_a_batch_replaces_lives_until_it_is_closed);
    tcase_add_test(t, while_sessions_reclaim_all_of_a_batch_is_left_to_come_alone);
    tcase_add_test(t, a_batch_that_is_none_is_refused);
    tcase_add_test(t, a_repeated_batch_gets_its_answers_again_and_changes_nothing);
}

static void add_crashes(TCase *t)
{
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_loop_test(t, a_batch_whose_answer_died_with_the_server_is_executed_once, 0,
                        (int)ARRAY_LEN(crashes));
}

int main(void)
{
    int rc = rig_main("mds-batch", add);

    return rig_main("mds-batch-crash", add_crashes) == EXIT_SUCCESS ? rc : EXIT_FAILURE;
}
