/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FUSE over io_uring (Linux 6.14): /dev/fuse as in channel_dev.c, and beside it a ring by which
 * requests come and are answered. An entry is memory for one request at a time, lent to the kernel
 * by a command; the command comes back with a request in it, and giving it again brings the answer
 * and asks for the next. The kernel wants a queue of entries for each processor that may ever be
 * there; one ring of the one reactor serves all of them.
 *
 * INIT, FORGET and INTERRUPT still come by /dev/fuse, and notifications leave by it. The kernel
 * uses the ring from the moment when every queue has an entry. An answer goes out at once, for the
 * sake of who waits for it, and so that no notification that follows it overtakes it.
 *
 * Entries. What waits for an answer holds its entry, be it for hours (a lock), so a queue grows
 * whenever few of its entries are left in the kernel, up to RING_ENTRIES in all. That is done in
 * time: the kernel does not give a request that waits already to an entry that is new. Those that
 * wait for locks may hold half of them.
 *
 * Memory. An entry has CHANNEL_IO_MAX of addresses, touched when used. RING_WARM of those that have
 * carried something large keep their memory, the others return it with the next answer that is
 * small (not when they are the kernel's: it may be writing there). Queues do not grow while
 * RING_LARGE large requests are unanswered, as long as they have an entry left.
 *
 * Fails: the kernel does not offer it, or no ring is to be had: /dev/fuse serves the mount, and the
 * log says why. A queue that the kernel does not take: the same, by the kernel itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "client/fuse/channel_int.h"
#include "client/fuse/wire_decode.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/uring/cmd_ring.h"

#define TAG             "fuse"
#define RING_ENTRIES    2048u              /* of all queues */
#define RING_QUEUES     1024u              /* processors */
#define RING_BEGIN      256u               /* entries of all queues at first, */
#define RING_BEGIN_MIN  2u                 /* but of each so many at least, */
#define RING_BEGIN_MAX  16u                /* and at most; it grows by as many */
#define RING_WARM       16u                /* entries that keep the memory of a large request */
#define RING_LARGE      64u                /* large requests unanswered: no growth */
#define RING_WAITS      (RING_ENTRIES / 2) /* requests that wait for a lock: who unlocks needs one */
#define RING_LARGE_FROM (64u * KIB)        /* what a large one is; its first part is always kept */

/* Its memory: the header at the beginning, the payload from the second page on. */
#define RING_ENTRY_BYTES (CHANNEL_PAGE_BYTES + CHANNEL_IO_MAX)

struct ring_entry {
    struct cmd cmd;
    struct channel *channel;
    struct iovec iov[2];
    uint16_t queue;
    bool large;   /* holds a large request */
    bool touched; /* beyond RING_LARGE_FROM */
    bool waits;   /* holds a request that waits for a lock */
};

struct ring_slab { /* entries made together, and their memory */
    struct ring_slab *next;
    uint8_t *memory;
    unsigned n;
    struct ring_entry entries[];
};

struct ring_queue {
    unsigned n_entries, n_held; /* held: with a request that we have not answered */
};

struct channel_ring {
    struct cmd_ring *commands;
    struct ring_slab *slabs;
    unsigned n_queues, n_entries, step, n_large, n_touched, n_waits;
    bool begun, failed;
    struct ring_queue queues[];
};

static struct wire_ring_header *header_of(const struct ring_entry *e)
{
    return e->iov[0].iov_base;
}

static uint8_t *payload_of(const struct ring_entry *e)
{
    return e->iov[1].iov_base;
}

/* ---- memory ---- */

/* The entry is in our hands, and nothing of its payload behind the first part is needed. */
static void entry_cool(struct channel_ring *r, struct ring_entry *e)
{
    if (!e->touched || r->n_touched <= RING_WARM)
        return;
    (void)madvise(payload_of(e) + RING_LARGE_FROM, CHANNEL_IO_MAX - RING_LARGE_FROM, MADV_DONTNEED);
    e->touched = false;
    r->n_touched--;
}

static void entry_touch(struct channel_ring *r, struct ring_entry *e, uint32_t bytes)
{
    if (bytes <= RING_LARGE_FROM || e->touched)
        return;
    e->touched = true;
    r->n_touched++;
}

/* ---- entries ---- */

static void on_command(struct cmd *cmd, int result);

static struct ring_slab *slab_create(struct channel *c, unsigned queue, unsigned n)
{
    struct ring_slab *s = mem_zalloc(sizeof(*s) + n * sizeof(s->entries[0]));
    void *memory = mmap(NULL, (size_t)n * RING_ENTRY_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (!s || memory == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, (size_t)n * RING_ENTRY_BYTES);
        mem_free(s);
        return NULL;
    }
    s->memory = memory;
    s->n = n;
    for (unsigned i = 0; i < n; i++) {
        struct ring_entry *e = &s->entries[i];
        uint8_t *at = s->memory + (size_t)i * RING_ENTRY_BYTES;

        e->cmd.done = on_command;
        e->channel = c;
        e->queue = (uint16_t)queue;
        e->iov[0] = (struct iovec){at, sizeof(struct wire_ring_header)};
        e->iov[1] = (struct iovec){at + CHANNEL_PAGE_BYTES, CHANNEL_IO_MAX};
    }
    return s;
}

/* Entries for a queue, not yet lent. False: out of memory. */
static bool queue_add(struct channel *c, unsigned queue)
{
    struct channel_ring *r = c->ring;
    struct ring_slab *s = slab_create(c, queue, r->step);

    if (!s)
        return false;
    s->next = r->slabs;
    r->slabs = s;
    r->n_entries += s->n;
    r->queues[queue].n_entries += s->n;
    return true;
}

static void slab_lend(struct channel_ring *r, struct ring_slab *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct ring_entry *e = &s->entries[i];
        struct wire_ring_cmd cmd = {.queue = e->queue};

        cmd_ring_submit(r->commands, &e->cmd, WIRE_RING_REGISTER, e->iov, 2, &cmd, sizeof(cmd));
    }
}

static void queue_took(struct channel *c, unsigned queue)
{
    struct channel_ring *r = c->ring;
    struct ring_queue *u = &r->queues[queue];

    u->n_held++;
    if (u->n_held + r->step / 2 < u->n_entries || r->n_entries + r->step > RING_ENTRIES ||
        (r->n_large >= RING_LARGE && u->n_held + 1 < u->n_entries))
        return;
    if (queue_add(c, queue))
        slab_lend(r, r->slabs);
    else
        LOG_WARN(TAG, "queue %u of the ring stays at %u entries: out of memory", queue,
                 u->n_entries);
}

/* ---- requests ---- */

bool channel_ring_may_wait(struct ring_entry *e)
{
    struct channel_ring *r = e->channel->ring;

    if (r->n_waits >= RING_WAITS)
        return false;
    r->n_waits++;
    e->waits = true;
    return true;
}

void channel_ring_commit(struct ring_entry *e, int error, uint32_t len)
{
    struct channel_ring *r = e->channel->ring;
    struct wire_ring_header *h = header_of(e);
    struct wire_ring_cmd cmd = {.commit_id = h->commit_id, .queue = e->queue};

    h->out = (struct wire_out_header){
        .len = (uint32_t)sizeof(h->out) + len, .error = -error, .unique = h->in.unique};
    h->payload_len = len;
    if (len <= RING_LARGE_FROM)
        entry_cool(r, e);
    entry_touch(r, e, len);
    r->n_large -= e->large;
    r->n_waits -= e->waits;
    e->large = e->waits = false;
    r->queues[e->queue].n_held--;
    cmd_ring_submit(r->commands, &e->cmd, WIRE_RING_COMMIT_AND_FETCH, NULL, 0, &cmd, sizeof(cmd));
    cmd_ring_flush(r->commands);
}

static void on_request(struct ring_entry *e)
{
    struct channel *c = e->channel;
    const struct wire_ring_header *h = header_of(e);
    const struct wire_in_header *before = c->message; /* an INTERRUPT, while it is handled */
    const void *body;
    size_t len;

    c->message = &h->in;
    c->message_entry = e;
    if (c->o.debug)
        LOG_DEBUG(TAG, "request %llu by queue %u: operation %u of inode %llu, %u bytes, process %u",
                  (unsigned long long)h->in.unique, e->queue, h->in.opcode,
                  (unsigned long long)h->in.nodeid, h->in.len, h->in.pid);
    if (wire_ring_join(h, payload_of(e), CHANNEL_IO_MAX, &body, &len) != 0) {
        LOG_ERROR(TAG, "operation %u of inode %llu: the kernel's message is malformed",
                  h->in.opcode, (unsigned long long)h->in.nodeid);
        channel_dev_refuse(c, EIO);
    } else if (h->in.opcode == WIRE_DESTROY) {
        channel_dev_refuse(c, 0);
    } else {
        channel_dev_request(c, body, len);
    }
    c->message_entry = NULL;
    c->message = before;
}

/* The kernel takes no more of it: it was unmounted, or does not want the entry. */
static void on_refused(struct ring_entry *e, int error)
{
    struct channel_ring *r = e->channel->ring;

    if (error != -ENOTCONN && error != -ECONNABORTED && error != -ECANCELED && !r->failed) {
        LOG_WARN(TAG, "the kernel refuses an entry of queue %u of the ring: %s", e->queue,
                 err_text(error));
        r->failed = true;
    }
    r->n_entries--;
    r->queues[e->queue].n_entries--;
}

static void on_command(struct cmd *cmd, int result)
{
    struct ring_entry *e = container_of(cmd, struct ring_entry, cmd);
    struct channel_ring *r = e->channel->ring;

    if (result != 0) {
        on_refused(e, result);
        return;
    }
    entry_touch(r, e, header_of(e)->payload_len);
    e->large = header_of(e)->payload_len > RING_LARGE_FROM;
    r->n_large += e->large;
    queue_took(e->channel, e->queue);
    on_request(e);
}

static void *ring_room(struct channel_req *q)
{
    struct ring_entry *e = q->raw;
    struct channel_ring *r = q->channel->ring;

    if (!e || q->op != CHANNEL_READ)
        return NULL;
    if (q->io.len > RING_LARGE_FROM && !e->large) {
        e->large = true;
        r->n_large++;
    }
    entry_touch(r, e, q->io.len);
    return payload_of(e);
}

/* Answers are gathered into the entry, but for what is there already. */
static int ring_send(struct channel_req *q, int error, const struct iovec *iov, int n)
{
    struct ring_entry *e = q->raw;
    uint32_t len = 0;

    if (!e)
        return channel_dev_send(q, error, iov, n);
    for (int i = 0; i < n; i++) {
        uint8_t *to = payload_of(e) + len;

        if (iov[i].iov_len > CHANNEL_IO_MAX - len) {
            channel_ring_commit(e, EIO, 0);
            return -EMSGSIZE;
        }
        if (iov[i].iov_base != to)
            memcpy(to, iov[i].iov_base, iov[i].iov_len);
        len += (uint32_t)iov[i].iov_len;
    }
    channel_ring_commit(e, error, len);
    return 0;
}

void channel_ring_digest(struct channel *c)
{
    if (c->ring && c->ring->begun)
        cmd_ring_digest(c->ring->commands);
}

/* ---- life ---- */

/* Of the kernel, from the list of those that may ever be there: "0-3,8". 0: cannot be read. */
static unsigned processors(void)
{
    FILE *f = fopen("/sys/devices/system/cpu/possible", "re");
    unsigned first, last, n = 0;
    int got;

    if (!f)
        return 0;
    while ((got = fscanf(f, "%u-%u,", &first, &last)) > 0) {
        if (got == 1)
            (void)fscanf(f, ",");
        n += got == 2 && last >= first ? MIN(last - first, RING_QUEUES) + 1 : 1;
    }
    fclose(f);
    return n;
}

static void ring_drop(struct channel *c)
{
    struct channel_ring *r = c->ring;
    struct ring_slab *s;

    if (!r)
        return;
    cmd_ring_destroy(r->commands);
    while ((s = r->slabs)) {
        r->slabs = s->next;
        munmap(s->memory, (size_t)s->n * RING_ENTRY_BYTES);
        mem_free(s);
    }
    mem_free(r);
    c->ring = NULL;
}

/* With all entries of the beginning: nothing can fail once the kernel has been told of it. */
static int ring_create(struct channel *c)
{
    unsigned n = processors();
    struct channel_ring *r;
    int rc;

    if (n == 0 || n > RING_QUEUES)
        return n ? -E2BIG : -ENOENT;
    r = mem_zalloc(sizeof(*r) + n * sizeof(r->queues[0]));
    if (!r)
        return -ENOMEM;
    rc = cmd_ring_create(c->o.reactor, c->watch.fd, RING_ENTRIES, &r->commands);
    if (rc != 0) {
        mem_free(r);
        return rc;
    }
    r->n_queues = n;
    r->step = MAX(MIN(RING_BEGIN / n, RING_BEGIN_MAX), RING_BEGIN_MIN);
    c->ring = r;
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = queue_add(c, i) ? 0 : -ENOMEM;
    if (rc != 0)
        ring_drop(c);
    return rc;
}

bool channel_ring_wanted(struct channel *c, uint64_t offered)
{
    const char *why = "the kernel does not offer it (Linux 6.14; switched on in "
                      "/sys/module/fuse/parameters/enable_uring)";
    int rc = 0;

    if (c->o.kind != CHANNEL_KIND_IO_URING || c->ring)
        return c->ring != NULL;
    if (offered & WIRE_OVER_IO_URING) {
        rc = ring_create(c);
        why = err_text(rc);
        if (rc == 0)
            return true;
    }
    LOG_WARN(TAG, "channel=fuse for %s, not io_uring: %s", c->mountpoint, why);
    return false;
}

/* From the answer to INIT on requests wait until every queue has an entry. */
void channel_ring_begin(struct channel *c)
{
    struct channel_ring *r = c->ring;

    r->begun = true;
    for (struct ring_slab *s = r->slabs; s; s = s->next)
        slab_lend(r, s);
    cmd_ring_flush(r->commands);
    LOG_INFO(TAG, "channel=io_uring for %s: %u queues of %u entries", c->mountpoint, r->n_queues,
             r->step);
}

static void ring_close(struct channel *c)
{
    ring_drop(c);
    channel_dev_close(c);
}

const struct channel_transport channel_ring_transport = {.name = "io_uring",
                                                         .open = channel_dev_open,
                                                         .receive = channel_dev_receive,
                                                         .send = ring_send,
                                                         .room = ring_room,
                                                         .close = ring_close};
