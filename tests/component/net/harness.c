/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of connections, for tests: see harness.h. */
#include "tests/component/net/harness.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/net/ucx_int.h"

#define HEAD_MIN 24u
#define HELLO    0xffffffffffffffffull

/* head: seq (8), crc (4), bulk_len (4), head_len (4), bulk asked for (4), filler */

static uint64_t rnd(struct end *e)
{
    e->seed ^= e->seed << 13;
    e->seed ^= e->seed >> 7;
    e->seed ^= e->seed << 17;
    return e->seed;
}

static struct msg *msg_get(struct end *e)
{
    struct list *l = list_pop_front(&e->free_msgs);

    return l ? list_entry(l, struct msg, link) : NULL;
}

static void msg_put(struct msg *m)
{
    buf_put(m->buf);
    m->buf = NULL;
    list_push_front(&m->end->free_msgs, &m->link);
}

static void on_done(struct net_tx *tx, int status)
{
    struct msg *m = container_of(tx, struct msg, tx);
    struct end *e = m->end;

    if (m->hello)
        ;
    else if (status == 0)
        e->done_ok++;
    else
        e->done_failed++;
    msg_put(m);
    if (e->mode == END_LOAD)
        end_pump(e);
}

static void msg_send(struct msg *m)
{
    struct end *e = m->end;

    m->iov[0] = (struct iovec){m->buf ? m->buf->data : NULL, m->bulk_len};
    m->tx = (struct net_tx){.head = m->head,
                            .head_len = m->head_len,
                            .iov = m->iov,
                            .n_iov = m->bulk_len ? 1 : 0,
                            .done = on_done};
    if (e->scatter && m->bulk_len > 5000) {
        m->iov[1] = (struct iovec){m->buf->data + 4097, m->bulk_len - 4097 - 11};
        m->iov[2] = (struct iovec){m->buf->data + m->bulk_len - 11, 11};
        m->iov[0].iov_len = 4097;
        m->tx.n_iov = 3;
    }
    net_send(e->conn, &m->tx);
}

static void on_buf(struct buf_waiter *w, struct buf *b)
{
    struct end *e = container_of(w, struct end, waiter);

    e->waiting = false;
    e->spare = b;
    net_conn_resume(e->conn);
}

static void on_part(void *arg, const void *data, uint32_t len)
{
    struct msg *m = arg;

    MUST(data == m->end->part && len > 0 && len <= sizeof m->end->part);
    MUST(len <= m->bulk_len - m->landed);
    memcpy(m->buf->data + m->landed, data, len);
    m->landed += len;
    m->end->landings++;
}

static int on_head(struct net_conn *c, const void *head, uint32_t head_len, uint32_t bulk_len,
                   struct net_rx *rx)
{
    struct end *e = net_conn_arg(c);
    struct msg *m;

    if (head_len < HEAD_MIN || head_len > HEAD_ROOM)
        return -AIFS_EPROTO;
    if (e->waiting)
        return -EAGAIN;
    m = msg_get(e);
    if (!m)
        return -EAGAIN;
    if (bulk_len) {
        m->buf = e->spare ? e->spare : buf_get(e->pool);
        e->spare = NULL;
        if (!m->buf) {
            msg_put(m);
            e->waiting = true;
            buf_wait(e->pool, &e->waiter);
            return -EAGAIN;
        }
        if (bulk_len > m->buf->size_bytes) {
            msg_put(m);
            return -AIFS_EPROTO;
        }
    }
    e->head_calls++;
    memcpy(m->head, head, head_len);
    m->head_len = head_len;
    m->bulk_len = bulk_len;
    m->landed = 0;
    m->hello = false;
    rx->token = m;
    if (bulk_len == 0)
        return 0;
    if (e->head_calls % 2 == 0) {
        rx->part = on_part;
        rx->part_arg = m;
        rx->part_memory = (struct iovec){e->part, sizeof e->part};
    }
    rx->iov[0] = (struct iovec){m->buf->data, bulk_len};
    rx->n_iov = 1;
    if (e->scatter && bulk_len > 4096) {
        rx->iov[0].iov_len = 1000;
        rx->iov[1] = (struct iovec){m->buf->data + 1000, 1};
        rx->iov[2] = (struct iovec){m->buf->data + 1001, bulk_len - 1001};
        rx->n_iov = 3;
    }
    return 0;
}

static void check_msg(const struct msg *m)
{
    MUST(!m->landed || m->landed == m->bulk_len);
    MUST(le32_load(m->head + 12) == m->bulk_len);
    MUST(le32_load(m->head + 16) == m->head_len);
    if (m->bulk_len)
        MUST(le32_load(m->head + 8) == crc32c(m->buf->data, m->bulk_len));
    for (uint32_t i = HEAD_MIN; i < m->head_len; i++)
        MUST(m->head[i] == (uint8_t)(i + le64_load(m->head)));
}

static void on_hello(struct end *e, struct msg *m)
{
    int rc;

    if (e->before_upgrade)
        e->before_upgrade(e);
    rc = net_conn_upgrade(e->conn, m->head + HEAD_MIN, m->head_len - HEAD_MIN);
    if (e->after_upgrade)
        e->after_upgrade(e);
    msg_put(m);
    if (rc < 0) {
        net_conn_close(e->conn, rc);
        return;
    }
    e->hello_done = true;
    if (e->pump_after_hello)
        end_pump(e);
}

static void on_received(struct net_conn *c, void *token, int status)
{
    struct end *e = net_conn_arg(c);
    struct msg *m = token;

    e->received_calls++;
    if (status < 0) {
        e->failed_rx++;
        msg_put(m);
        return;
    }
    if (le64_load(m->head) == HELLO) {
        on_hello(e, m);
        return;
    }
    if (e->mode == END_HOLD)
        return; /* and never gives the buffer back */
    if (e->mode == END_ECHO) {
        uint32_t want = le32_load(m->head + 20);

        if (want && want <= NET_BULK_MAX &&
            !m->buf) { /* a read: so much of whatever is in a buffer */
            m->buf = buf_get(e->pool);
            MUST(m->buf && m->buf->size_bytes >= want);
            m->bulk_len = want;
        }
        msg_send(m);
        return;
    }
    if (!e->fixed_bulk)
        check_msg(m);
    e->received++;
    if (e->in_flight > 0) /* a peer that sends of its own may be ahead */
        e->in_flight--;
    msg_put(m);
    if (e->mode == END_LOAD)
        end_pump(e);
}

static void on_closed(struct net_conn *c, int status)
{
    struct end *e = net_conn_arg(c);

    if (e->waiting)
        buf_wait_cancel(&e->waiter);
    e->waiting = false;
    buf_put(e->spare);
    e->spare = NULL;
    buf_put(e->shared);
    e->shared = NULL;
    e->closed = true;
    e->closed_status = status;
    e->conn = NULL;
    net_conn_free(c);
}

static const struct net_conn_ops ops = {
    .head = on_head, .received = on_received, .closed = on_closed};

void end_init(struct end *e, const struct net_options *o, enum end_mode mode, uint32_t buf_bytes,
              uint32_t n_bufs)
{
    struct reactor_options ro = {.name = "test"};

    memset(e, 0, sizeof *e);
    if (o->want == NET_WANT_RDMA)
        ucx_lib_fake_rdma("posix,self");
    e->options = *o;
    e->mode = mode;
    e->pool_buf_bytes = buf_bytes;
    e->seed = 88172645463325252ull;
    e->waiter.fn = on_buf;
    list_init(&e->free_msgs);
    MUST(reactor_create(&ro, &e->reactor) == 0);
    MUST(buf_pool_create("test", buf_bytes, n_bufs, &e->pool) == 0);
    e->msgs = calloc(END_MSGS, sizeof *e->msgs);
    e->heads =
        mmap(NULL, (size_t)END_MSGS * HEAD_ROOM, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); /* touched only where used */
    MUST(e->heads != MAP_FAILED);
    for (unsigned i = 0; i < END_MSGS; i++) {
        e->msgs[i].end = e;
        e->msgs[i].head = e->heads + (size_t)i * HEAD_ROOM;
        list_push_back(&e->free_msgs, &e->msgs[i].link);
    }
}

bool end_share(struct end *e, uint32_t buf_bytes, uint32_t n_bufs)
{
    size_t bytes = (size_t)buf_bytes * n_bufs + SHARE_STEP_BYTES - 1;
    uint8_t *m = share_create(bytes / SHARE_STEP_BYTES * SHARE_STEP_BYTES);

    if (!m)
        return false;
    buf_pool_destroy(e->pool);
    MUST(buf_pool_create_in("test", buf_bytes, n_bufs, m, &e->pool) == 0);
    return true;
}

void end_fini(struct end *e)
{
    struct buf_pool_stats s;

    buf_pool_get_stats(e->pool, &s);
    MUST(s.in_use == 0);
    buf_pool_destroy(e->pool);
    reactor_destroy(e->reactor);
    free(e->msgs);
    munmap(e->heads, (size_t)END_MSGS * HEAD_ROOM);
}

void end_adopt(struct end *e, struct net_conn *c)
{
    struct msg *m = msg_get(e);
    uint32_t len = NET_OFFER_BYTES;

    e->conn = c;
    e->closed = false;
    e->hello_done = false;
    e->in_flight = 0;
    net_conn_start(c, &ops, e);
    memset(m->head, 0, HEAD_MIN);
    le64_store(m->head, HELLO);
    MUST(net_conn_offer(c, m->head + HEAD_MIN, &len) == 0);
    if (e->forge)
        e->forge(m->head + HEAD_MIN);
    m->head_len = HEAD_MIN + len;
    m->bulk_len = 0;
    m->hello = true;
    msg_send(m);
}

static void fill_msg(struct end *e, struct msg *m)
{
    static const uint32_t sizes[] = {0, 1, 100, 4096, 5000, 65536, 300000, 1u << 20, 4u << 20};
    uint32_t want = e->fixed_bulk ? e->fixed_bulk : sizes[rnd(e) % ARRAY_LEN(sizes)];
    uint64_t seq = e->sent;

    m->bulk_len = MIN(want, e->max_bulk);
    m->head_len = HEAD_MIN + (rnd(e) % 16 == 0 ? 100000 : (uint32_t)(rnd(e) % 300));
    if (e->fixed_head || e->fixed_bulk)
        m->head_len = e->fixed_head ? e->fixed_head : 64;
    le64_store(m->head, seq);
    le32_store(m->head + 12, m->bulk_len);
    le32_store(m->head + 16, m->head_len);
    le32_store(m->head + 20, e->ask);
    if (e->ask)
        m->bulk_len = 0;
    if (e->fixed_bulk)
        return;
    for (uint32_t i = HEAD_MIN; i < m->head_len; i++)
        m->head[i] = (uint8_t)(i + seq);
    for (uint32_t i = 0; i + 8 <= m->bulk_len; i += 8)
        le64_store(m->buf->data + i, seq * 1000003 + i);
    if (m->bulk_len % 8)
        memset(m->buf->data + m->bulk_len / 8 * 8, (int)seq & 0xff, m->bulk_len % 8);
    le32_store(m->head + 8, m->bulk_len ? crc32c(m->buf->data, m->bulk_len) : 0);
}

static struct buf *load_buf(struct end *e)
{
    if (!e->share_buf)
        return buf_get(e->pool);
    if (!e->shared)
        e->shared = buf_get(e->pool);
    if (e->shared)
        buf_ref(e->shared);
    return e->shared;
}

void end_pump(struct end *e)
{
    while (e->conn && !e->closed && e->sent < e->to_send && e->in_flight < e->depth) {
        struct msg *m = msg_get(e);

        if (!m)
            return;
        m->buf = load_buf(e);
        if (!m->buf) {
            msg_put(m);
            return;
        }
        m->hello = false;
        fill_msg(e, m);
        if (m->bulk_len == 0) {
            buf_put(m->buf);
            m->buf = NULL;
        }
        e->sent++;
        e->in_flight++;
        msg_send(m);
    }
}

/* How long this thread has waited for a core so far; 0 where the kernel does not say. */
static uint64_t core_wait_ns(void)
{
    unsigned long long ran, waited = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "re");

    if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2)
        waited = 0;
    if (f)
        fclose(f);
    return waited;
}

bool end_turn_until(struct end *e, bool (*done)(struct end *e), unsigned timeout_ms)
{
    const struct clock *clk = clock_real();
    uint64_t start = clock_mono_ns(clk), waited = core_wait_ns();

    while (!done(e)) {
        if (clock_mono_ns(clk) - start > timeout_ms * NS_PER_MS &&
            clock_mono_ns(clk) - start - (core_wait_ns() - waited) > timeout_ms * NS_PER_MS)
            return false;
        reactor_run_once(e->reactor, 50 * NS_PER_MS);
    }
    return true;
}

bool end_is_closed(struct end *e)
{
    return e->closed;
}

bool end_is_finished(struct end *e)
{
    return e->sent == e->to_send && e->received == e->sent &&
           e->done_ok + e->done_failed == e->sent;
}

static bool is_upgraded(struct end *e)
{
    return e->hello_done || e->closed;
}

static void on_connected(void *arg, struct net_conn *c, int status)
{
    struct end *e = arg;

    if (status < 0) {
        e->closed = true;
        e->closed_status = status;
        return;
    }
    end_adopt(e, c);
}

static bool is_settled(struct end *e)
{
    return e->closed || (e->hello_done &&
                         (net_conn_kind(e->conn) == NET_UCX || e->options.want == NET_WANT_TCP));
}

void end_connect_over(struct end *e, uint16_t port)
{
    end_connect(e, port);
    MUST(end_turn_until(e, is_settled, END_SOON_MS));
    MUST(!e->closed);
}

void end_hang_up(struct end *e)
{
    net_conn_close(e->conn, 0);
    MUST(end_turn_until(e, end_is_closed, END_SOON_MS));
}

void end_echo(struct end *e, uint64_t n)
{
    e->to_send = e->sent + n;
    if (e->depth == 0)
        e->depth = 64;
    if (e->max_bulk == 0)
        e->max_bulk = e->pool_buf_bytes;
    end_pump(e);
    MUST(end_turn_until(e, end_is_finished, 2 * END_SOON_MS));
    MUST(e->done_failed == 0);
}

struct net_addr addr_of(const char *text)
{
    struct net_addr a;
    char err[200];

    MUST(net_addr_resolve(text, 0, &a, err, sizeof err) == 0);
    return a;
}

void end_connect(struct end *e, uint16_t port)
{
    struct net_connecting *n;
    struct net_addr a;
    char text[32];

    snprintf(text, sizeof text, e->ipv6 ? "[::1]:%u" : "127.0.0.1:%u", port);
    a = addr_of(text);
    e->closed = e->hello_done = false;
    MUST(net_connect(e->reactor, &a, &e->options, on_connected, e, &n) == 0);
    MUST(end_turn_until(e, is_upgraded, END_SOON_MS));
}
