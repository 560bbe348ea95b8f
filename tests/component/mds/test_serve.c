/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over the wire: reads, the life of a mutation, repeated requests, races. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "proto/dirent_fmt.h"
#include "tests/component/mds/serve.h"
#include "tests/support/suite.h"

static struct serve srv;
#define ROOT KEY_ROOT_INO

static void setup(void)
{
    serve_open(&srv);
}

static void teardown(void)
{
    serve_close(&srv);
}

static struct msg_create_req creation(const char *name, uint32_t flags)
{
    return (struct msg_create_req){
        .parent = ROOT, .name = str(name), .mode = 0644, .flags = flags, .open_flags = O_RDWR};
}

/* Creates and opens; returns the inode, the open in *ret_open. */
static uint64_t create_open(const char *name, uint64_t *ret_open)
{
    struct msg_create_req req = creation(name, MSG_CREATE_EXCL | MSG_CREATE_OPEN);
    const struct msg_inode_rep *rep = serve_inode(&srv, RPC_OP_CREATE, &req);

    *ret_open = rep->open_id;
    return rep->inode.attr.ino;
}

static int error_of(unsigned op, const void *req)
{
    int status;

    serve_call(&srv, op, req, &status);
    return status;
}

START_TEST(create_opens_and_lookup_finds)
{
    struct msg_create_req req = creation("f", MSG_CREATE_EXCL | MSG_CREATE_OPEN);
    struct msg_name_req name = {.parent = ROOT, .name = str("f")};
    const struct msg_inode_rep *rep = serve_inode(&srv, RPC_OP_CREATE, &req);
    uint64_t ino = rep->inode.attr.ino;

    ck_assert(rep->created);
    ck_assert_uint_eq(rep->open_id, 1);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rep->inode.lease_seq, 1001);
    ck_assert_uint_eq(rep->inode.layout.table_len, 4);
    ck_assert_uint_eq(srv.open_ino[1], ino);
    rep = serve_inode(&srv, RPC_OP_LOOKUP, &name);
    ck_assert_uint_eq(rep->inode.attr.ino, ino);
    name.name = str("g");
    ck_assert_int_eq(error_of(RPC_OP_LOOKUP, &name), -ENOENT);
    name.name = str("..");
    ck_assert_uint_eq(serve_inode(&srv, RPC_OP_LOOKUP, &name)->inode.attr.ino, ROOT);
}
END_TEST

START_TEST(files_start_on_one_chain_after_the_other)
{
    unsigned starts[4] = {0};
    char name[8];

    for (unsigned i = 0; i < 8; i++) {
        struct msg_create_req req = creation(name, MSG_CREATE_EXCL);

        snprintf(name, sizeof(name), "f%u", i);
        req.name = str(name);
        starts[serve_inode(&srv, RPC_OP_CREATE, &req)->inode.layout.start]++;
    }
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(starts[i], 2);
}
END_TEST

START_TEST(a_closed_directory_keeps_its_names)
{
    struct msg_create_req dir = {.parent = ROOT, .name = str("d"), .mode = 0700};
    uint64_t d = serve_inode(&srv, RPC_OP_MKDIR, &dir)->inode.attr.ino;
    struct msg_name_req name = {.cred = {.uid = 5, .gid = 5}, .parent = d, .name = str("anything")};
    struct msg_readdir_req list = {.cred = {.uid = 5, .gid = 5}, .ino = d, .max_bytes = 4096};

    ck_assert_int_eq(error_of(RPC_OP_LOOKUP, &name), -EACCES);
    ck_assert_int_eq(error_of(RPC_OP_READDIR, &list), -EACCES);
}
END_TEST

START_TEST(small_files_come_back_with_open)
{
    static char data[] = "the whole content";
    struct iovec bulk = {data, sizeof(data)};
    uint64_t open_id, ino = create_open("f", &open_id);
    struct msg_write_inline_req w = {
        .ino = ino, .open_id = open_id, .replace = true, .layout_generation = 0};
    struct msg_open_req open = {.ino = ino, .flags = O_RDONLY};
    const struct msg_inode_rep *rep;
    unsigned commits;
    struct shard_stats st;

    serve_start_call(&srv, RPC_OP_WRITE_INLINE, &w, &bulk);
    ck_assert(serve_wait(&srv, &srv.done));
    ck_ok(srv.status);
    shard_get_stats(srv.bed.shard, &st);
    commits = (unsigned)st.commits;
    rep = serve_inode(&srv, RPC_OP_OPEN, &open);
    ck_assert(rep->inode.has_data);
    ck_assert_uint_eq(rep->inode.data.len, sizeof(data));
    ck_assert_mem_eq(rep->inode.data.data, data, sizeof(data));
    ck_assert_uint_eq(rep->open_id, 2);
    shard_get_stats(srv.bed.shard, &st);
    ck_assert_uint_eq(st.commits, commits); /* opening to read costs no sync */
    open.cred = (struct msg_cred){.uid = 9, .gid = 9};
    open.flags = O_RDWR;
    ck_assert_int_eq(error_of(RPC_OP_OPEN, &open), -EACCES);
    w.open_id = 40; /* no such open */
    ck_assert_int_eq(error_of(RPC_OP_WRITE_INLINE, &w), -EBADF);
    srv.prepares--; /* refused: no finish() */
}
END_TEST

START_TEST(a_repeated_create_keeps_its_open)
{
    struct msg_create_req req = creation("f", MSG_CREATE_EXCL | MSG_CREATE_OPEN);
    const struct msg_inode_rep *rep = serve_inode(&srv, RPC_OP_CREATE, &req);
    uint64_t ino = rep->inode.attr.ino;
    int status;

    memset(srv.open_ino, 0, sizeof(srv.open_ino)); /* a restart forgets opens */
    rep = serve_again(&srv, RPC_OP_CREATE, &req, &status);
    ck_ok(status);
    ck_assert(srv.outcome.result & SHARD_R_DUPLICATE);
    ck_assert_uint_eq(rep->open_id, 1);
    ck_assert_uint_eq(rep->inode.attr.ino, ino);
    ck_assert_uint_eq(srv.open_ino[1], ino);
    srv.lower_lease = true; /* and somebody else may have got the lease meanwhile */
    rep = serve_again(&srv, RPC_OP_CREATE, &req, &status);
    ck_ok(status);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_NONE);
    ck_assert_uint_eq(rep->open_id, 1);
}
END_TEST

START_TEST(unlink_of_an_open_file_leaves_an_orphan)
{
    struct msg_name_req name = {.parent = ROOT, .name = str("f")};
    uint64_t open_id, ino = create_open("f", &open_id);
    struct msg_ino_req attr = {.ino = ino};

    serve_inode(&srv, RPC_OP_UNLINK, &name);
    ck_assert(srv.outcome.result & SHARD_R_ORPHANED);
    ck_assert_uint_eq(srv.outcome.ino, ino);
    ck_assert_uint_eq(serve_inode(&srv, RPC_OP_GETATTR, &attr)->inode.attr.nlink, 0);
}
END_TEST

static void somebody_replaces_f(struct serve *s, struct mds_prepare *p)
{
    (void)p;
    ck_ok(bed_name(&s->bed, RPC_OP_UNLINK, ROOT, "f"));
    bed_file(&s->bed, ROOT, "f");
}

static void somebody_creates_f(struct serve *s, struct mds_prepare *p)
{
    (void)p;
    bed_file(&s->bed, ROOT, "f");
}

START_TEST(what_changes_between_resolve_and_execution_is_resolved_again)
{
    struct msg_create_req create = creation("f", MSG_CREATE_OPEN);
    struct msg_name_req name = {.parent = ROOT, .name = str("f")};
    const struct msg_inode_rep *rep;
    struct shard_stats st;

    srv.on_prepare = somebody_creates_f;
    rep = serve_inode(&srv, RPC_OP_CREATE, &create);
    ck_assert(!rep->created);
    ck_assert_uint_eq(srv.open_ino[rep->open_id], rep->inode.attr.ino);
    memset(srv.open_ino, 0, sizeof(srv.open_ino));
    srv.on_prepare = somebody_replaces_f;
    serve_inode(&srv, RPC_OP_UNLINK, &name);
    ck_assert_int_eq(error_of(RPC_OP_LOOKUP, &name), -ENOENT);
    shard_get_stats(srv.bed.shard, &st);
    ck_assert_uint_eq(st.retries, 2);
}
END_TEST

static void restart_shard(void)
{
    bed_stop(&srv.bed);
    bed_start(&srv.bed);
    srv.mds->shards[0] = srv.bed.shard;
}

START_TEST(new_names_that_only_the_store_knows_of_are_found_by_execution)
{
    struct msg_create_req opens = creation("a", MSG_CREATE_OPEN), excl = creation("b", 0);
    struct msg_rename_req over = {
        .parent = ROOT, .name = str("a"), .new_parent = ROOT, .new_name = str("c")};
    struct msg_name_req name = {.parent = ROOT, .name = str("c")};
    uint64_t a = bed_file(&srv.bed, ROOT, "a");
    const struct msg_inode_rep *rep;
    struct shard_stats st;

    bed_file(&srv.bed, ROOT, "b");
    bed_file(&srv.bed, ROOT, "c");
    restart_shard();
    rep = serve_inode(&srv, RPC_OP_CREATE, &opens);
    ck_assert(!rep->created);
    ck_assert_uint_eq(rep->inode.attr.ino, a);
    ck_assert_uint_eq(srv.open_ino[rep->open_id], a);
    excl.flags |= MSG_CREATE_EXCL;
    ck_assert_int_eq(error_of(RPC_OP_CREATE, &excl), -EEXIST);
    ck_ok(error_of(RPC_OP_RENAME, &over));
    ck_assert_uint_eq(serve_inode(&srv, RPC_OP_LOOKUP, &name)->inode.attr.ino, a);
    shard_get_stats(srv.bed.shard, &st);
    ck_assert_uint_eq(st.retries, 3);
}
END_TEST

/* A file that has grown into chunks. */
static uint64_t grown(const char *name, uint64_t size, uint64_t *ret_open)
{
    uint64_t ino = create_open(name, ret_open);
    struct msg_size_req grow = {.ino = ino, .open_id = *ret_open, .size = size};

    serve_inode(&srv, RPC_OP_GROW, &grow);
    return ino;
}

static void punch_done(uint64_t ino)
{
    struct shard_queue_done d = {.queue = KEY_PUNCH, .ino = ino};
    const void *value;
    struct mds_queue_item item;
    struct arena a;
    struct view v;
    uint32_t len;
    struct key k;

    arena_init(&a, 0);
    key_number(&k, KEY_PUNCH, ino);
    view_pin(srv.bed.shard, &v);
    ck_ok(view_record(&v, &k, &a, &value, &len));
    ck_ok(rec_queue_decode(value, len, &item));
    view_unpin(&v);
    arena_reset(&a);
    d.index = item.index;
    ck_ok(bed_call(&srv.bed, SHARD_OP_QUEUE_DONE, &d));
}

static bool is_waiting;

static void wait_for_punch_wait(void)
{
    is_waiting = false;
    for (unsigned i = 0; i < 1000 && !srv.waiting; i++)
        reactor_run_once(srv.reactor, 10 * NS_PER_MS);
    ck_assert_ptr_nonnull(srv.waiting);
}

START_TEST(a_truncate_is_answered_when_the_targets_have_it)
{
    uint64_t open_id, ino = grown("f", 1 << 20, &open_id);
    struct msg_setattr_req cut = {.ino = ino, .set = MSG_SET_SIZE, .size = 1000};
    const struct msg_inode_rep *rep;
    struct mds_punch_wait *w;

    serve_start_call(&srv, RPC_OP_SETATTR, &cut, NULL);
    wait_for_punch_wait();
    ck_assert_uint_eq(srv.kicks, 1);
    ck_assert(!srv.done);
    punch_done(ino);
    w = srv.waiting;
    srv.waiting = NULL;
    w->done(w, 0);
    ck_assert(serve_wait(&srv, &srv.done));
    rep = srv.call.rep;
    ck_ok(srv.status);
    ck_assert_uint_eq(rep->inode.attr.size, 1000);
    ck_assert_uint_eq(rep->inode.attr.truncate_gen, 1);
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING, 0);
}
END_TEST

START_TEST(a_slow_truncate_is_answered_with_its_flag_and_growing_waits)
{
    uint64_t open_id, ino = grown("f", 1 << 20, &open_id);
    struct msg_setattr_req cut = {.ino = ino, .set = MSG_SET_SIZE, .size = 1000};
    struct msg_size_req size = {
        .ino = ino, .open_id = open_id, .size = 5000, .truncate_gen = 1, .layout_generation = 1};
    const struct msg_inode_rep *rep;
    struct mds_punch_wait *w;

    serve_start_call(&srv, RPC_OP_SETATTR, &cut, NULL);
    wait_for_punch_wait();
    w = srv.waiting;
    srv.waiting = NULL;
    w->done(w, -AIFS_ETIMEOUT);
    ck_assert(serve_wait(&srv, &srv.done));
    rep = srv.call.rep;
    ck_assert_uint_ne(rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING, 0);
    serve_start_call(&srv, RPC_OP_SIZE, &size, NULL);
    wait_for_punch_wait();
    punch_done(ino);
    w = srv.waiting;
    srv.waiting = NULL;
    w->done(w, 0);
    ck_assert(serve_wait(&srv, &srv.done));
    ck_ok(srv.status);
    rep = srv.call.rep;
    ck_assert_uint_eq(rep->inode.attr.size, 5000);
}
END_TEST

START_TEST(a_writers_size_is_asked_for)
{
    struct msg_create_req create = creation("f", MSG_CREATE_EXCL);
    uint64_t ino = serve_inode(&srv, RPC_OP_CREATE, &create)->inode.attr.ino;
    struct msg_ino_req attr = {.ino = ino};
    struct msg_readdir_req list = {.ino = ROOT, .max_bytes = 4096, .plus = true};
    struct dirent_wire w;

    srv.writing = true;
    srv.glimpse_size = 12345;
    ck_assert_uint_eq(serve_inode(&srv, RPC_OP_GETATTR, &attr)->inode.attr.size, 12345);
    ck_ok(error_of(RPC_OP_READDIR, &list));
    memcpy(&w, srv.bulk, sizeof(w));
    ck_assert_uint_eq(w.ino, ino);
    ck_assert_uint_eq(w.has_attr, 0);
    srv.writing = false;
    ck_ok(error_of(RPC_OP_READDIR, &list));
    memcpy(&w, srv.bulk, sizeof(w));
    ck_assert_uint_eq(w.has_attr, 1);
}
END_TEST

START_TEST(symlinks_bring_their_target)
{
    struct msg_create_req req = {.parent = ROOT, .name = str("l"), .target = str("over/there")};
    struct msg_name_req name = {.parent = ROOT, .name = str("l")};
    uint64_t ino = serve_inode(&srv, RPC_OP_SYMLINK, &req)->inode.attr.ino;
    struct msg_ino_req link = {.ino = ino}, dir = {.ino = ROOT};
    const struct msg_inode_rep *rep = serve_inode(&srv, RPC_OP_LOOKUP, &name);
    const struct msg_bytes_rep *text;
    int status;

    ck_assert_uint_eq(rep->inode.data.len, 10);
    ck_assert_mem_eq(rep->inode.data.data, "over/there", 10);
    text = serve_call(&srv, RPC_OP_READLINK, &link, &status);
    ck_ok(status);
    ck_assert_mem_eq(text->value.data, "over/there", 10);
    ck_assert_int_eq(error_of(RPC_OP_READLINK, &dir), -EINVAL);
}
END_TEST

static const char *xattr_of(uint64_t ino, const char *name)
{
    static char text[256];
    struct msg_xattr_req req = {.ino = ino, .name = str(name)};
    const struct msg_bytes_rep *rep;
    int status;

    rep = serve_call(&srv, RPC_OP_XATTR_GET, &req, &status);
    if (status < 0)
        return err_name(status);
    snprintf(text, sizeof(text), "%.*s", (int)rep->value.len, (const char *)rep->value.data);
    return text;
}

static int set_layout(uint64_t ino, const char *value)
{
    struct msg_xattr_req req = {.ino = ino, .name = str("aifs.layout"), .value = str(value)};

    return error_of(RPC_OP_XATTR_SET, &req);
}

START_TEST(layouts_are_asked_for_in_words)
{
    struct msg_create_req dir = {.parent = ROOT, .name = str("d"), .mode = 0755};
    uint64_t d = serve_inode(&srv, RPC_OP_MKDIR, &dir)->inode.attr.ino, f;
    struct msg_create_req file = {.parent = d, .name = str("f"), .mode = 0644};
    struct msg_name_req look = {.parent = ROOT, .name = str("d")};

    ck_assert_str_eq(xattr_of(d, "aifs.layout"), "pool=default chunk=1048576 count=4 copies=1");
    ck_ok(set_layout(d, "chunk=64Ki count=2"));
    ck_assert_uint_eq(serve_inode(&srv, RPC_OP_LOOKUP, &look)->inode.attr.ino, d);
    ck_assert_str_eq(xattr_of(d, "aifs.layout"), "pool=default chunk=65536 count=2 copies=1");
    f = serve_inode(&srv, RPC_OP_CREATE, &file)->inode.attr.ino;
    ck_assert_str_eq(xattr_of(f, "aifs.layout"),
                     "pool=default chunk=65536 count=2 copies=1 start=0 table=4");
    ck_assert_str_eq(xattr_of(f, "aifs.data"), "inline");
    ck_ok(set_layout(f, "count=1 start=3 table=9"));
    ck_assert_str_eq(xattr_of(f, "aifs.layout"),
                     "pool=default chunk=1048576 count=1 copies=1 start=3 table=4");
    ck_assert_int_eq(set_layout(d, "chunk=65537"), -EINVAL);
    ck_assert_int_eq(set_layout(d, "pool=nowhere"), -ENODEV);
    ck_assert_int_eq(set_layout(d, "what=ever"), -EINVAL);
    ck_assert_int_eq(set_layout(d, ""), -EINVAL);
    ck_ok(set_layout(d, "inherit"));
    ck_assert_str_eq(xattr_of(d, "aifs.layout"), "pool=default chunk=1048576 count=4 copies=1");
    ck_assert_str_eq(xattr_of(ROOT, "aifs.fid"), "0x1:0");
    ck_assert_str_eq(xattr_of(ROOT, "user.none"), "ENODATA");
}
END_TEST

START_TEST(a_directory_without_a_wish_tells_of_the_default_pool_even_when_that_is_empty)
{
    static const struct cluster_map none;
    struct cluster_map *map = map_copy(&none), *was = srv.map;
    uint32_t pool;

    ck_assert_ptr_nonnull(map);
    ck_ok(map_add_pool(map, "archive", &pool));
    srv.map = map;
    ck_assert_str_eq(xattr_of(ROOT, "aifs.layout"),
                     "pool=archive chunk=1048576 count=0 copies=1 table=0");
    ck_ok(map_add_pool(map, "default", &pool));
    ck_assert_str_eq(xattr_of(ROOT, "aifs.layout"),
                     "pool=default chunk=1048576 count=0 copies=1 table=0");
    srv.map = was;
    map_put(map);
}
END_TEST

START_TEST(lists_of_attributes_hide_what_is_not_for_all)
{
    struct msg_xattr_req x = {.ino = ROOT, .name = str("user.a"), .value = str("1")};
    struct msg_ino_req list = {.ino = ROOT};
    const struct msg_bytes_rep *rep;
    int status;

    ck_ok(error_of(RPC_OP_XATTR_SET, &x));
    x.name = str("trusted.b");
    ck_ok(error_of(RPC_OP_XATTR_SET, &x));
    rep = serve_call(&srv, RPC_OP_XATTR_LIST, &list, &status);
    ck_ok(status);
    ck_assert_uint_eq(rep->value.len, 17);
    list.cred = (struct msg_cred){.uid = 4, .gid = 4};
    rep = serve_call(&srv, RPC_OP_XATTR_LIST, &list, &status);
    ck_assert_uint_eq(rep->value.len, 7);
    ck_assert_mem_eq(rep->value.data, "user.a", 7);
}
END_TEST

START_TEST(requests_without_session_or_slot_are_refused)
{
    struct msg_create_req create = creation("f", 0);
    struct msg_ino_req attr = {.ino = ROOT};

    serve_start_call(&srv, RPC_OP_GETATTR, &attr, NULL);
    ck_assert(serve_wait(&srv, &srv.done));
    ck_ok(srv.status);
    srv.sequence = 0x80000000u; /* far behind everything: only 0 and slots beyond are malformed */
    create.parent = 77;
    ck_assert_int_eq(error_of(RPC_OP_CREATE, &create), -ENOENT);
    attr.ino = 5ull << KEY_INODE_BITS;
    ck_assert_int_eq(error_of(RPC_OP_GETATTR, &attr), -ENOENT);
}
END_TEST

START_TEST(statfs_counts_inodes)
{
    struct msg_ino_req req = {.ino = ROOT};
    const struct msg_statfs_rep *rep;
    int status;

    bed_file(&srv.bed, ROOT, "f");
    rep = serve_call(&srv, RPC_OP_STATFS, &req, &status);
    ck_ok(status);
    ck_assert_uint_eq(rep->files - rep->files_free, 2);
    ck_assert_uint_eq(rep->total_bytes, 1 << 30);
    ck_ok(error_of(RPC_OP_FSYNC, &req));
}
END_TEST

SUITE_MAIN("serve", setup, teardown, create_opens_and_lookup_finds,
           files_start_on_one_chain_after_the_other, a_closed_directory_keeps_its_names,
           small_files_come_back_with_open, a_repeated_create_keeps_its_open,
           unlink_of_an_open_file_leaves_an_orphan,
           what_changes_between_resolve_and_execution_is_resolved_again,
           new_names_that_only_the_store_knows_of_are_found_by_execution,
           a_truncate_is_answered_when_the_targets_have_it,
           a_slow_truncate_is_answered_with_its_flag_and_growing_waits, a_writers_size_is_asked_for,
           symlinks_bring_their_target, layouts_are_asked_for_in_words,
           a_directory_without_a_wish_tells_of_the_default_pool_even_when_that_is_empty,
           lists_of_attributes_hide_what_is_not_for_all,
           requests_without_session_or_slot_are_refused, statfs_counts_inodes)
