/* SPDX-License-Identifier: Apache-2.0 */
/* The test bed: see bed.h. */
#include "tests/component/mds/bed.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "mds/ops/exec.h"

static void remove_flat(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[512];

    while (d && (e = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

void bed_start(struct bed *b)
{
    b->options.dir = b->dir;
    b->options.exec = mds_exec_table;
    b->options.clock = &b->clock.clock;
    b->options.sync = true;
    ck_ok(shard_open(&b->options, &b->shard));
}

void bed_open(struct bed *b)
{
    const char *tmp = getenv("TMPDIR");
    struct shard_format f = {.fs_name = "test", .root_mode = 0777};

    memset(b, 0, sizeof(*b));
    snprintf(b->root, sizeof(b->root), "%s/aifs-mds-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(b->root));
    snprintf(b->dir, sizeof(b->dir), "%s/shard0", b->root);
    clock_virtual_init(&b->clock, 1000, 1700000000ll * (int64_t)NS_PER_S);
    arena_init(&b->arena, 0);
    b->options.store.create = true;
    bed_start(b);
    b->options.store.create = false;
    ck_ok(bed_call(b, SHARD_OP_FORMAT, &f));
}

static void bed_forget(struct bed *b)
{
    if (b->e_used)
        shard_entry_fini(&b->e);
    b->e_used = false;
    arena_reset(&b->arena);
    b->rep = NULL;
}

void bed_stop(struct bed *b)
{
    bed_forget(b);
    shard_close(b->shard);
    b->shard = NULL;
}

void bed_close(struct bed *b)
{
    bed_stop(b);
    remove_flat(b->dir);
    rmdir(b->root);
}

/* Sessions are made by their own module: here one is put into the store before the shard opens. */
void bed_session(struct bed *b, uint64_t session)
{
    struct store_options o = {0};
    struct store_batch *batch;
    struct store *s;
    uint8_t state = SESSION_OPEN;
    struct key k;

    bed_stop(b);
    ck_ok(store_open(b->dir, &o, &s));
    ck_ok(store_batch_create(s, &batch));
    key_number(&k, KEY_SESSION, session);
    store_batch_put(batch, k.b, k.len, &state, 1);
    ck_ok(store_commit(s, batch, true));
    store_batch_destroy(batch);
    store_close(s);
    bed_start(b);
    b->session = session;
    b->slot = 1;
}

static int call(struct bed *b, unsigned op, const void *msg)
{
    void *rep = NULL;
    int rc;

    bed_forget(b);
    shard_entry_init(&b->e, op, msg, NULL, NULL);
    b->e_used = true;
    if (b->session && op < SHARD_OP_FIRST) {
        b->e.session = b->session;
        b->e.slot = b->slot;
        b->e.sequence = b->sequence;
    }
    memcpy(b->e.is_open, b->is_open, sizeof(b->is_open));
    memcpy(b->e.resolved, b->resolved, sizeof(b->resolved));
    b->e.check_resolved = b->check_resolved;
    b->e.holds_write = b->holds_write;
    b->e.bulk = b->bulk;
    b->e.bulk_len = b->bulk_len;
    b->e.has_layout = true;
    b->e.layout = (struct msg_layout){1, 1, 4, 1u << 20, 4, 2, 1};
    clock_virtual_advance(&b->clock, NS_PER_MS);
    rc = shard_run(b->shard, &b->e);
    if (rc == 0 && op < SHARD_OP_FIRST && b->e.reply_len) {
        ck_ok(codec_decode(op, true, b->e.reply, b->e.reply_len, &b->arena, &rep));
        b->rep = rep;
    }
    memset(b->is_open, 0, sizeof(b->is_open));
    b->check_resolved = b->holds_write = false;
    b->bulk = NULL;
    b->bulk_len = 0;
    return rc;
}

int bed_call(struct bed *b, unsigned op, const void *msg)
{
    b->sequence++;
    return call(b, op, msg);
}

int bed_again(struct bed *b, unsigned op, const void *msg)
{
    return call(b, op, msg);
}

int bed_make(struct bed *b, unsigned op, uint64_t parent, const char *name, uint32_t mode,
             uint64_t *ret_ino)
{
    struct msg_create_req req = {.cred = b->cred,
                                 .parent = parent,
                                 .name = str(name),
                                 .mode = mode,
                                 .flags = MSG_CREATE_EXCL,
                                 .target = str("some/target")};
    int rc = bed_call(b, op, &req);

    if (rc == 0 && ret_ino)
        *ret_ino = b->rep->inode.attr.ino;
    return rc;
}

uint64_t bed_file(struct bed *b, uint64_t parent, const char *name)
{
    uint64_t ino = 0;

    ck_ok(bed_make(b, RPC_OP_CREATE, parent, name, 0644, &ino));
    return ino;
}

uint64_t bed_dir(struct bed *b, uint64_t parent, const char *name)
{
    uint64_t ino = 0;

    ck_ok(bed_make(b, RPC_OP_MKDIR, parent, name, 0755, &ino));
    return ino;
}

int bed_name(struct bed *b, unsigned op, uint64_t parent, const char *name)
{
    struct msg_name_req req = {.cred = b->cred, .parent = parent, .name = str(name)};

    return bed_call(b, op, &req);
}

int bed_rename(struct bed *b, uint64_t p, const char *n, uint64_t np, const char *nn,
               uint32_t flags)
{
    struct msg_rename_req req = {.cred = b->cred,
                                 .parent = p,
                                 .name = str(n),
                                 .new_parent = np,
                                 .new_name = str(nn),
                                 .flags = flags};

    return bed_call(b, RPC_OP_RENAME, &req);
}

int bed_link(struct bed *b, uint64_t ino, uint64_t parent, const char *name)
{
    struct msg_link_req req = {
        .cred = b->cred, .ino = ino, .new_parent = parent, .new_name = str(name)};

    return bed_call(b, RPC_OP_LINK, &req);
}

int bed_write(struct bed *b, uint64_t ino, uint64_t offset, const void *data, uint32_t len,
              unsigned how)
{
    struct msg_write_inline_req req = {.cred = b->cred,
                                       .ino = ino,
                                       .offset = offset,
                                       .append = how == BED_APPEND,
                                       .replace = how == BED_REPLACE};
    struct mds_inode in;

    ck_ok(bed_inode(b, ino, &in));
    req.truncate_gen = in.truncate_gen;
    req.layout_generation = in.layout.generation;
    b->bulk = data;
    b->bulk_len = len;
    return bed_call(b, RPC_OP_WRITE_INLINE, &req);
}

uint64_t bed_lookup(struct bed *b, uint64_t parent, const char *name)
{
    struct mds_dirent d = {0};
    struct view v;
    int rc;

    view_begin(b->shard, &v);
    rc = view_dirent(&v, parent, name, (uint32_t)strlen(name), &d);
    view_end(&v);
    ck_assert(rc == 0 || rc == -ENOENT);
    return d.ino;
}

int bed_inode(struct bed *b, uint64_t ino, struct mds_inode *ret)
{
    struct view v;
    int rc;

    view_begin(b->shard, &v);
    rc = view_inode(&v, ino, ret);
    view_end(&v);
    return rc;
}

static int count_one(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    (void)key;
    (void)key_len;
    (void)value;
    (void)len;
    ++*(unsigned *)arg;
    return 0;
}

unsigned bed_count(struct bed *b, enum key_type type)
{
    unsigned n = 0;
    struct view v;
    struct key k;

    key_single(&k, type);
    view_pin(b->shard, &v);
    ck_ok(view_scan(&v, &k, NULL, count_one, &n));
    view_unpin(&v);
    return n;
}

bool bed_has(struct bed *b, enum key_type type, uint64_t n)
{
    const void *value;
    struct arena a;
    struct view v;
    uint32_t len;
    struct key k;
    int rc;

    arena_init(&a, 0);
    key_number(&k, type, n);
    view_pin(b->shard, &v);
    rc = view_record(&v, &k, &a, &value, &len);
    view_unpin(&v);
    arena_reset(&a);
    ck_assert(rc == 0 || rc == -ENOENT);
    return rc == 0;
}
