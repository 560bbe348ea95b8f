// SPDX-License-Identifier: Apache-2.0
/*
 * Reading a queue.
 *
 * Happy path: a kick starts a scan: a worker reads a page of items, those that can be worked on are
 * started, and the next page follows while there is room; an empty queue costs one look. A kick
 * during a scan makes it start over, from the smallest inode that was kicked for. Kicks for
 * destruction wait for company and for a pause (gc_destroy_kick()). Failure modes:
 * items whose targets are down are skipped and found again by the next scan (a registration, or the
 * timer with growing distance). An item that cannot be read is said once, stays for who examines
 * the store, and does not keep the scan from those behind it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mds/gc/gc_int.h"

static void say_damaged(const struct gc_queue *q, const uint8_t *key, size_t len, int rc)
{
    char hex[2 * KEY_MAX_BYTES + 1] = "";

    for (size_t i = 0; i < len && i < KEY_MAX_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", key[i]);
    if (q->n_damaged < GC_DAMAGED_MAX)
        LOG_ERROR("gc", "queue %#x: the item with key %s cannot be read and is left out: %s",
                  q->type, hex, err_name(rc));
    else
        LOG_ERROR("gc", "queue %#x: more than %u items cannot be read, the next has key %s",
                  q->type, GC_DAMAGED_MAX, hex);
}

/* On the worker that scans. */
static void scan_damaged(struct gc_queue *q, const uint8_t *key, size_t len, int rc)
{
    uint8_t begin[8] = {0};
    uint64_t known_by;

    memcpy(begin, key + 1, MIN(len - 1, sizeof begin));
    known_by = be64_load(begin);
    for (uint32_t i = 0; i < q->n_damaged && i < GC_DAMAGED_MAX; i++) {
        if (q->damaged[i] == known_by)
            return;
    }
    if (q->n_damaged > GC_DAMAGED_MAX)
        return;
    say_damaged(q, key, len, rc);
    if (q->n_damaged < GC_DAMAGED_MAX) {
        q->damaged[q->n_damaged] = known_by;
        stat_inc(&q->unreadable);
    }
    q->n_damaged++;
}

static int scan_seen(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct gc_queue *q = arg;
    struct gc_seen *seen = &q->seen[q->n_seen];
    int rc = key_len == 9 ? rec_queue_decode(value, len, &seen->item) : -AIFS_ECORRUPT;

    if (rc < 0) {
        scan_damaged(q, key, key_len, rc);
        return 0;
    }
    seen->ino = key_number_of(key);
    return ++q->n_seen == GC_PAGE;
}

static void scan_run(struct worker_job *j)
{
    struct gc_queue *q = container_of(j, struct gc_queue, job);
    struct key prefix, from;
    struct view v;

    q->n_seen = 0;
    key_single(&prefix, q->type);
    key_number(&from, q->type, q->from);
    view_pin(q->gc->mds->shards[0], &v);
    q->error = view_scan(&v, &prefix, &from, scan_seen, q);
    view_unpin(&v);
}

static void scan_done(struct worker_job *j);

static void scan_page(struct gc_queue *q)
{
    q->scanning = true;
    q->n_over = 0;
    q->job.run = scan_run;
    q->job.done = scan_done;
    gc_begin(q->gc);
    worker_pool_submit(q->gc->mds->workers, q->gc->mds->reactor, &q->job);
}

/* The end of the queue was reached. */
static void scan_over(struct gc_queue *q)
{
    uint64_t now_ns = reactor_now_ns(q->gc->mds->reactor);

    if (!q->skipped) {
        q->next_ns = 0;
    } else if (!q->next_ns) {
        q->idle_ns = q->progress || !q->idle_ns ? GC_IDLE_NS : MIN(q->idle_ns * 2, GC_IDLE_MAX_NS);
        q->next_ns = now_ns + q->idle_ns;
    }
    q->progress = false;
}

static void scan_items(struct gc_queue *q)
{
    for (uint32_t i = 0; i < q->n_seen; i++) {
        q->from = q->seen[i].ino;
        if (q->n_active >= GC_ACTIVE_MAX) {
            q->stalled = true;
            return;
        }
        gc_item_start(q, &q->seen[i]);
    }
    q->from++;
    if (q->n_seen == GC_PAGE)
        scan_page(q);
    else
        scan_over(q);
}

static void scan_done(struct worker_job *j)
{
    struct gc_queue *q = container_of(j, struct gc_queue, job);
    struct gc *gc = q->gc;

    q->scanning = false;
    q->more = q->error >= 0 && q->n_seen == GC_PAGE;
    if (q->error < 0) {
        LOG_ERROR("gc", "queue %#x: %s", q->type, err_name(q->error));
        q->skipped = true;
        scan_over(q);
    } else if (gc->stopping) {
        scan_over(q);
    } else if (q->type == KEY_DESTROY && q->n_seen) {
        q->from = q->seen[q->n_seen - 1].ino + 1;
        gc_destroy_page(q);
    } else if (q->n_seen) {
        scan_items(q);
    } else {
        scan_over(q);
    }
    if (q->again && !q->scanning && !q->batch)
        gc_scan(q, UINT64_MAX);
    gc_end(gc);
}

void gc_scan(struct gc_queue *q, uint64_t ino)
{
    q->asked = MIN(q->asked, ino);
    q->again = q->scanning || q->batch;
    if (q->again || q->gc->stopping)
        return;
    q->from = q->stalled || q->more ? MIN(q->from, q->asked) : q->asked;
    q->asked = UINT64_MAX;
    q->stalled = false;
    if (q->from == 0)
        q->skipped = false;
    scan_page(q);
}

void gc_scan_resume(struct gc_queue *q)
{
    if (q->scanning || q->batch || q->gc->stopping)
        return;
    if (q->again) {
        gc_scan(q, UINT64_MAX);
    } else if (q->type == KEY_DESTROY && !q->more) {
        scan_over(q); /* what has come since waits for its own start */
    } else if (q->type == KEY_DESTROY || (q->stalled && q->n_active <= GC_ACTIVE_MAX / 2)) {
        q->stalled = false;
        scan_page(q);
    }
}

/* ---- targets ---- */

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static void targets_unique(struct gc_targets *t)
{
    uint32_t n = 0;

    qsort(t->ids, t->n, sizeof *t->ids, compare_ids);
    for (uint32_t i = 0; i < t->n; i++) {
        if (n == 0 || t->ids[n - 1] != t->ids[i])
            t->ids[n++] = t->ids[i];
    }
    t->n = n;
}

int gc_targets(struct gc *gc, const struct msg_layout *l, struct gc_targets *ret_targets)
{
    const struct cluster_map *m = gc->mds->cluster_ops->map(gc->mds);
    struct gc_targets t = {0};

    if (l->table_len == 0) { /* a file that never could have chunks */
        *ret_targets = t;
        return 0;
    }
    if (layout_check(l) < 0)
        return -AIFS_ESTALE_MAP;
    t.ids = mem_array((size_t)l->stripe_count * MSG_COPIES_MAX, sizeof *t.ids);
    if (!t.ids)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->stripe_count; i++) {
        const struct map_chain *c = layout_chain(l, m, i);

        for (uint32_t k = 0; c && k < c->n_targets; k++) {
            if (!map_target(m, c->targets[k])->given_up)
                t.ids[t.n++] = c->targets[k];
        }
        if (!c) {
            mem_free(t.ids);
            return -AIFS_ESTALE_MAP;
        }
    }
    if (t.n)
        targets_unique(&t);
    *ret_targets = t;
    return 0;
}

bool gc_targets_up(struct gc *gc, const struct gc_targets *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (!cluster_target_up(gc->mds, t->ids[i]))
            return false;
    }
    return true;
}
