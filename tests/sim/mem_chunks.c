/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oss/chunk/store.h in memory, in the stead of the real store: per target, what is on the disk
 * outlives the handle, what was not committed does not. Operations run one after the other, each
 * after a random time, so that restarts fall between, and in an order that is drawn as far as the
 * interface promises none: those of one chunk, and those of a whole inode and of its chunks, run as
 * they were submitted. */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/list.h"
#include "oss/chunk/store.h"
#include "tests/sim/mem_space.h"
#include "tests/sim/sim.h"

#define CHUNK_BYTES     SIM_CHUNK
#define FENCES_MAX      256
#define COMMIT_EVERY_NS (500 * NS_PER_MS)

struct content {
    uint32_t len;
    uint64_t truncate_gen, op_ids[2];
    uint8_t data[CHUNK_BYTES];
};

struct mem_chunk {
    struct list link; /* by index */
    uint64_t index;
    bool dirty;
    struct content *now, *disk; /* NULL: there is none */
};

struct mem_inode {
    struct list link; /* by number */
    uint64_t ino, gen, gen_done;
    bool tombstone;
    struct list chunks;
};

struct disk { /* outlives the store */
    struct list link;
    char path[160];
    struct list inodes;
    struct chunk_fence fences[FENCES_MAX];
    uint32_t n_fences;
    struct chunk_store *open;
    struct super super; /* target is zero: not formatted */
    struct mem_space space;
};

struct chunk_store {
    struct chunk_store_options o;
    struct disk *disk;
    uint64_t verifier;
    struct list queue; /* chunk_op.wait_link */
    struct reactor_timer work, commit;
    struct reactor_work close_work;
    void (*closed)(void *arg, int status);
    void *closed_arg;
};

static struct list disks = {&disks, &disks};

/* ---- contents ---- */

static struct mem_inode *inode_of(struct disk *d, uint64_t ino)
{
    struct mem_inode *i;
    struct list *l;

    list_for_each (l, &d->inodes)
        if (list_entry(l, struct mem_inode, link)->ino == ino)
            return list_entry(l, struct mem_inode, link);
    i = calloc(1, sizeof *i);
    SIM_CHECK(i);
    i->ino = ino;
    list_init(&i->chunks);
    list_push_back(&d->inodes, &i->link);
    return i;
}

static struct mem_chunk *chunk_of(struct mem_inode *i, uint64_t index, bool make)
{
    struct mem_chunk *c;
    struct list *l;

    list_for_each (l, &i->chunks) {
        if (list_entry(l, struct mem_chunk, link)->index == index)
            return list_entry(l, struct mem_chunk, link);
        if (list_entry(l, struct mem_chunk, link)->index > index)
            break;
    }
    if (!make)
        return NULL;
    c = calloc(1, sizeof *c);
    SIM_CHECK(c);
    c->index = index;
    list_push_back(l, &c->link); /* before l */
    return c;
}

static void content_copy(struct content **to, const struct content *from)
{
    if (!from) {
        free(*to);
        *to = NULL;
        return;
    }
    if (!*to)
        *to = malloc(sizeof **to);
    SIM_CHECK(*to);
    memcpy(*to, from, sizeof *from);
}

static void chunk_commit(struct mem_chunk *c)
{
    if (c->dirty)
        content_copy(&c->disk, c->now);
    c->dirty = false;
}

static void inode_commit(struct mem_inode *i)
{
    struct list *l;

    list_for_each (l, &i->chunks)
        chunk_commit(list_entry(l, struct mem_chunk, link));
}

static void disk_commit(struct disk *d)
{
    struct list *l;

    list_for_each (l, &d->inodes)
        inode_commit(list_entry(l, struct mem_inode, link));
}

static void chunk_free(struct mem_chunk *c)
{
    list_remove(&c->link);
    free(c->now);
    free(c->disk);
    free(c);
}

/* From a place of the chunk on there is nothing any more. */
static void chunk_cut(struct mem_chunk *c, uint32_t keep, uint64_t gen)
{
    if (!c->now || c->now->len <= keep)
        return;
    memset(c->now->data + keep, 0, CHUNK_BYTES - keep);
    c->now->len = keep;
    c->now->truncate_gen = gen;
    c->dirty = true;
}

/* ---- operations ---- */

static int gate_check(const struct chunk_op *op, struct mem_inode *i, bool writes)
{
    if (i->tombstone) /* no client that has it open comes here */
        return -ENOENT;
    if (op->truncate_gen < i->gen) {
        sim_hit(SIM_STALE_TRUNC);
        return -AIFS_ESTALE_TRUNC;
    }
    if (writes)
        i->gen = op->truncate_gen;
    return 0;
}

static int run_read(struct chunk_op *op, struct mem_inode *i)
{
    struct mem_chunk *c;
    uint32_t n;
    int rc = gate_check(op, i, false);

    op->ret_len = op->ret_crcs = 0;
    c = rc ? NULL : chunk_of(i, op->chunk, false);
    if (!c || !c->now || op->offset >= c->now->len)
        return rc;
    n = MIN(op->len, c->now->len - op->offset);
    memset(op->data, 0, op->len);
    memcpy(op->data, c->now->data + op->offset, n);
    op->ret_len = n;
    op->ret_crcs = (uint32_t)crc_pieces(op->offset, n);
    if (op->crcs)
        crc32c_blocks(op->offset, op->data, n, op->crcs);
    return 0;
}

static uint64_t slots_of(const struct disk *d)
{
    const struct list *l, *k;
    uint64_t n = 0;

    list_for_each (l, &d->inodes) {
        const struct mem_inode *i = list_entry((struct list *)l, struct mem_inode, link);

        list_for_each (k, &i->chunks) {
            const struct mem_chunk *c = list_entry((struct list *)k, struct mem_chunk, link);

            n += c->now || c->disk;
        }
    }
    return n;
}

static int run_write(struct chunk_op *op, struct disk *d, struct mem_inode *i)
{
    uint64_t op_ids[2] = {0};
    uint32_t sums[CHUNK_BYTES / CRC_BLOCK_BYTES + 2];
    size_t n = crc32c_blocks(op->offset, op->data, op->len, sums);
    struct mem_chunk *c;
    int rc;

    if (memcmp(sums, op->crcs, n * sizeof sums[0]) != 0)
        return -AIFS_ECHECKSUM;
    rc = gate_check(op, i, true);
    if (rc)
        return rc;
    SIM_CHECK(op->offset + op->len <= CHUNK_BYTES);
    c = chunk_of(i, op->chunk, true);
    if (c->now)
        memcpy(op_ids, c->now->op_ids, sizeof op_ids);
    if (!sim_chunks_first_time(op, op_ids))
        return 0;
    rc = mem_space_take(&d->space, slots_of(d), op, c->now ? c->now->data : NULL);
    if (rc)
        return rc;
    if (!c->now)
        c->now = calloc(1, sizeof *c->now);
    SIM_CHECK(c->now);
    memcpy(c->now->op_ids, op_ids, sizeof op_ids);
    memcpy(c->now->data + op->offset, op->data, op->len);
    c->now->len = MAX(c->now->len, op->offset + op->len);
    c->now->truncate_gen = op->truncate_gen;
    c->dirty = true;
    sim_hit(op->stable ? SIM_WRITE_STABLE : SIM_WRITE_UNSTABLE);
    if (op->stable)
        chunk_commit(c);
    return 0;
}

static int run_truncate(struct chunk_op *op, struct mem_inode *i)
{
    uint64_t first = op->start / op->chunk_bytes;
    struct list *l;

    if (i->tombstone || op->truncate_gen <= i->gen_done) {
        sim_hit(SIM_TRUNCATE_AGAIN);
        return 0;
    }
    sim_hit(SIM_TRUNCATE);
    list_for_each (l, &i->chunks) {
        struct mem_chunk *c = list_entry(l, struct mem_chunk, link);

        if (c->index == first)
            chunk_cut(c, (uint32_t)(op->start % op->chunk_bytes), op->truncate_gen);
        else if (c->index > first)
            chunk_cut(c, 0, op->truncate_gen);
    }
    inode_commit(i);
    i->gen = i->gen_done = op->truncate_gen;
    return 0;
}

static int run_punch(struct chunk_op *op, struct mem_inode *i)
{
    int rc = gate_check(op, i, true);
    struct list *l;

    if (rc)
        return rc;
    list_for_each (l, &i->chunks) {
        struct mem_chunk *c = list_entry(l, struct mem_chunk, link);
        uint64_t base = c->index * op->chunk_bytes;
        uint64_t from = MAX(op->start, base), to = MIN(op->end, base + CHUNK_BYTES);

        if (!c->now || from >= to)
            continue;
        memset(c->now->data + (from - base), 0, to - from);
        c->dirty = true;
    }
    inode_commit(i);
    return 0;
}

static int run_destroy(struct mem_inode *i)
{
    sim_hits(SIM_DESTROY, !i->tombstone);
    i->tombstone = true;
    while (!list_empty(&i->chunks))
        chunk_free(list_entry(i->chunks.next, struct mem_chunk, link));
    return 0;
}

static int run_seal(struct chunk_op *op, struct mem_inode *i)
{
    struct list *l;

    op->ret_high_water = 0;
    if (i->tombstone)
        return 0;
    sim_hits(SIM_SEAL_STALE, op->truncate_gen != i->gen_done);
    if (op->truncate_gen < i->gen_done)
        return -AIFS_ESTALE_TRUNC;
    inode_commit(i);
    list_for_each (l, &i->chunks) {
        struct mem_chunk *c = list_entry(l, struct mem_chunk, link);

        if (!c->disk || !c->disk->len ||
            (i->gen_done < op->truncate_gen && c->disk->truncate_gen < op->truncate_gen))
            continue;
        op->ret_high_water = c->index * op->chunk_bytes + c->disk->len;
    }
    sim_hit(SIM_SEAL);
    return 0;
}

static int run_fence(struct chunk_op *op, struct disk *d)
{
    for (uint32_t i = 0; i < op->n_fences; i++) {
        uint32_t k = 0;

        while (k < d->n_fences && d->fences[k].session != op->fences[i].session)
            k++;
        SIM_CHECK(k < FENCES_MAX);
        d->fences[k] = op->fences[i];
        d->n_fences = MAX(d->n_fences, k + 1);
        sim_hit(SIM_FENCE_STORED);
    }
    return 0;
}

static int run(struct chunk_store *s, struct chunk_op *op)
{
    struct mem_inode *i = op->ino ? inode_of(s->disk, op->ino) : NULL;

    switch (op->kind) {
    case CHUNK_READ:
        return run_read(op, i);
    case CHUNK_WRITE:
        return run_write(op, s->disk, i);
    case CHUNK_COMMIT:
        sim_hit(SIM_COMMIT);
        if (i)
            inode_commit(i);
        else
            disk_commit(s->disk);
        return 0;
    case CHUNK_TRUNCATE:
        return run_truncate(op, i);
    case CHUNK_PUNCH:
        return run_punch(op, i);
    case CHUNK_DESTROY:
        return run_destroy(i);
    case CHUNK_SEAL:
        return run_seal(op, i);
    case CHUNK_FENCE:
        return run_fence(op, s->disk);
    default:
        return -EINVAL;
    }
}

static void start_next(struct chunk_store *s)
{
    if (!list_empty(&s->queue) && !reactor_timer_running(&s->work))
        reactor_timer_start(s->o.reactor, &s->work, reactor_now_ns(s->o.reactor) + sim_disk_ns());
}

static void on_work(struct reactor_timer *t)
{
    struct chunk_store *s = container_of(t, struct chunk_store, work);
    struct chunk_op *op = sim_chunks_draw(&s->queue);
    int rc = run(s, op);

    start_next(s);
    op->done(op, rc);
}

static void on_commit(struct reactor_timer *t)
{
    disk_commit(container_of(t, struct chunk_store, commit)->disk);
}

bool chunk_store_place(struct chunk_store *s, uint64_t ino, uint64_t chunk, uint32_t offset,
                       uint32_t len, struct chunk_place *ret_place)
{
    (void)s, (void)ino, (void)chunk, (void)offset, (void)len, (void)ret_place;
    return false;
}

void chunk_store_land(struct chunk_place *p, const void *data, uint32_t len)
{
    (void)p, (void)data, (void)len;
}

void chunk_store_unplace(struct chunk_place *p)
{
    (void)p;
}

void chunk_store_submit(struct chunk_store *s, struct chunk_op *op)
{
    op->store = s;
    list_push_back(&s->queue, &op->wait_link);
    start_next(s);
    if (op->kind == CHUNK_WRITE && !op->stable && !reactor_timer_running(&s->commit))
        reactor_timer_start(s->o.reactor, &s->commit,
                            reactor_now_ns(s->o.reactor) + COMMIT_EVERY_NS);
}

/* ---- life ---- */

static struct disk *disk_of(const char *path)
{
    struct disk *d;
    struct list *l;

    list_for_each (l, &disks)
        if (strcmp(list_entry(l, struct disk, link)->path, path) == 0)
            return list_entry(l, struct disk, link);
    d = calloc(1, sizeof *d);
    SIM_CHECK(d && strlen(path) < sizeof d->path);
    strcpy(d->path, path);
    list_init(&d->inodes);
    list_push_back(&disks, &d->link);
    return d;
}

uint64_t sim_chunks_uncommitted(const struct chunk_store *s)
{
    const struct list *l, *k;

    list_for_each (l, &s->disk->inodes) {
        const struct mem_inode *i = list_entry((struct list *)l, struct mem_inode, link);

        list_for_each (k, &i->chunks)
            if (list_entry((struct list *)k, struct mem_chunk, link)->dirty)
                return i->ino;
    }
    return 0;
}

void sim_chunks_each_write(const struct chunk_store *s,
                           bool (*fn)(void *arg, const struct chunk_op *op), void *arg)
{
    const struct list *l;

    list_for_each (l, &s->queue) {
        const struct chunk_op *op = container_of(l, const struct chunk_op, wait_link);

        if (op->kind == CHUNK_WRITE && !fn(arg, op))
            return;
    }
}

/* What was not committed is gone. */
static void disk_recover(struct disk *d)
{
    struct list *l, *k;

    list_for_each (l, &d->inodes) {
        struct mem_inode *i = list_entry(l, struct mem_inode, link);

        i->gen = i->gen_done;
        list_for_each (k, &i->chunks) {
            struct mem_chunk *c = list_entry(k, struct mem_chunk, link);

            if (c->dirty)
                sim_hit(SIM_UNSTABLE_LOST);
            if (c->dirty)
                content_copy(&c->now, c->disk);
            c->dirty = false;
            if (c->disk)
                i->gen = MAX(i->gen, c->disk->truncate_gen);
        }
    }
}

int chunk_store_open(const struct chunk_store_options *o, struct chunk_store **ret_store)
{
    struct chunk_store *s = calloc(1, sizeof *s);

    SIM_CHECK(s);
    s->o = *o;
    s->disk = disk_of(o->path);
    SIM_CHECK(!s->disk->open);
    s->disk->open = s;
    disk_recover(s->disk);
    s->disk->space.promised_bytes = 0;
    s->verifier = sim_random() | 1;
    list_init(&s->queue);
    reactor_timer_init(&s->work, on_work);
    reactor_timer_init(&s->commit, on_commit);
    *ret_store = s;
    return 0;
}

static void close_work(struct reactor_work *w)
{
    struct chunk_store *s = container_of(w, struct chunk_store, close_work);

    SIM_CHECK(list_empty(&s->queue));
    reactor_timer_cancel(s->o.reactor, &s->commit);
    s->disk->open = NULL;
    s->closed(s->closed_arg, 0);
    free(s);
}

/* The simulator's servers only ever crash: nothing is committed. */
void chunk_store_close(struct chunk_store *s, void (*done)(void *arg, int status), void *arg)
{
    s->closed = done;
    s->closed_arg = arg;
    s->close_work.fn = close_work;
    reactor_defer(s->o.reactor, &s->close_work);
}

void sim_chunks_crash(struct chunk_store *s)
{
    struct list *l;

    reactor_timer_cancel(s->o.reactor, &s->work);
    reactor_timer_cancel(s->o.reactor, &s->commit);
    while ((l = list_pop_front(&s->queue))) {
        struct chunk_op *op = list_entry(l, struct chunk_op, wait_link);

        op->done(op, -EIO);
    }
}

struct super *sim_chunks_super(const char *dir)
{
    return &disk_of(dir)->super;
}

void sim_chunks_enough(void)
{
    struct list *l;

    list_for_each (l, &disks)
        list_entry(l, struct disk, link)->space.bound = SPACE_ENOUGH;
}

void sim_chunks_forget(void)
{
    struct list *l;

    while ((l = list_pop_front(&disks))) {
        struct disk *d = list_entry(l, struct disk, link);

        SIM_CHECK(!d->open);
        while ((l = list_pop_front(&d->inodes))) {
            run_destroy(list_entry(l, struct mem_inode, link));
            free(list_entry(l, struct mem_inode, link));
        }
        free(d);
    }
}

struct mem_space *sim_chunks_space(struct chunk_store *s, uint64_t *ret_used_slots)
{
    *ret_used_slots = slots_of(s->disk);
    return &s->disk->space;
}

const struct super *chunk_store_super(const struct chunk_store *s)
{
    return &s->disk->super;
}

const char *chunk_store_path(const struct chunk_store *s)
{
    return s->disk->path;
}

int chunk_store_set_id(struct chunk_store *s, uint32_t id)
{
    s->disk->super.target_id = id;
    return 0;
}

uint64_t chunk_store_verifier(const struct chunk_store *s)
{
    return s->verifier;
}

void chunk_store_fences(struct chunk_store *s,
                        void (*fn)(void *arg, uint64_t session, uint32_t generation), void *arg)
{
    for (uint32_t i = 0; i < s->disk->n_fences; i++)
        fn(arg, s->disk->fences[i].session, s->disk->fences[i].generation);
}
