// SPDX-License-Identifier: Apache-2.0
/* See server.h. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "tests/component/oss/server.h"

struct bed *bed;

/* ---- the metadata server ---- */

static void on_register(struct rpc_req *req)
{
    const struct msg_register_req *m = req->msg;
    struct msg_register_rep rep = {.node_id = 7, .map_epoch = 3, .fence_seq = bed->n_fences};

    if (bed->mute) {
        rpc_reply(req, -AIFS_ERETRY, NULL);
        return;
    }
    bed->n_targets = m->n_targets;
    for (uint32_t i = 0; i < m->n_targets; i++)
        bed->target_ids[i] = m->targets[i].id ? m->targets[i].id : 100 + i;
    rep.n_targets = m->n_targets;
    rep.target_ids = bed->target_ids;
    rep.n_fences = bed->n_fences;
    rep.fences = bed->fences;
    bed->registrations++;
    rpc_reply(req, 0, &rep);
}

static void on_beat(struct rpc_req *req)
{
    const struct msg_heartbeat_req *m = req->msg;
    struct msg_heartbeat_rep rep = {
        .map_epoch = 4, .fence_seq = m->fence_seq, .register_again = bed->register_again};

    bed->register_again = false;
    if (bed->fences_in_beats && m->fence_seq < bed->n_fences) {
        rep.fence_seq = rep.n_fences = bed->n_fences;
        rep.fences = bed->fences;
    }
    bed->acked = m->fence_seq;
    bed->beats++;
    bed->errors_seen = m->n_targets ? m->targets[0].errors : 0;
    rpc_reply(req, 0, &rep);
}

static struct rpc_node *make_node(enum crypto_role role, const char *name)
{
    struct rpc_node_options o = {0};
    struct rpc_node *n;

    net_options_default(&o.net);
    o.net.want = NET_WANT_TCP;
    ck_assert_int_eq(crypto_key_derive(&bed->key, role, &o.key), 0);
    ck_assert_int_eq(uuid_random(&o.self.node), 0);
    ck_assert_int_eq(uuid_random(&o.self.boot), 0);
    o.self.role = role;
    snprintf(o.self.name, sizeof o.self.name, "%s", name);
    ck_assert_int_eq(rpc_node_create(bed->reactor, &o, &n), 0);
    return n;
}

/* ---- the server ---- */

void server_start(const char *extra)
{
    char program[512], port[64];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 64);

    ck_assert_int_gt(n, 0);
    program[n] = 0;
    *strrchr(program, '/') = 0;
    strcat(program, "/../../oss/aifs-oss");
    snprintf(port, sizeof port, "127.0.0.1:%u", bed->mds_port);
    bed->pid = fork();
    if (!bed->pid) {
        char targets[300], run[200], key[200];

        snprintf(targets, sizeof targets, "--oss.targets=%s/t1,%s/t2:fast", bed->dir, bed->dir);
        snprintf(run, sizeof run, "--oss.run_dir=%s/run", bed->dir);
        snprintf(key, sizeof key, "--key_file=%s/key", bed->dir);
        execl(program, program, "--oss.listen=127.0.0.1:0", "--oss.mds", port, targets, run, key,
              "--oss.name=oss1", "--target.capacity=64Mi", "--net.buffers=8Mi",
              "--net.transport=tcp", "--log.level=warn", extra, NULL);
        _exit(127);
    }
}

static uint16_t oss_port(void)
{
    char path[200], text[16] = "";
    FILE *f;

    snprintf(path, sizeof path, "%s/run/port", bed->dir);
    while (!(f = fopen(path, "re")) ||
           !fgets(text, sizeof text, f)) { /* it is renamed into place */
        if (f)
            fclose(f);
        ck_assert_int_eq(waitpid(bed->pid, NULL, WNOHANG), 0);
        reactor_run_once(bed->reactor, 5 * NS_PER_MS);
    }
    fclose(f);
    return (uint16_t)atoi(text);
}

void server_connect(void)
{
    char address[32];
    const char *list[] = {address};

    snprintf(address, sizeof address, "127.0.0.1:%u", oss_port());
    ck_assert_int_eq(rpc_peer_create(bed->client, list, 1, NULL, NULL, &bed->oss), 0);
}

void server_end(int sig, int want_status)
{
    int status;

    if (bed->oss)
        rpc_peer_destroy(bed->oss);
    bed->oss = NULL;
    kill(bed->pid, sig);
    while (!waitpid(bed->pid, &status, WNOHANG))
        reactor_run_once(bed->reactor, 2 * NS_PER_MS);
    if (sig == SIGTERM)
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == want_status);
}

/* ---- calls ---- */

static void called(struct rpc_call *c, int status)
{
    struct caller *k = c->arg;

    k->done = true;
    k->status = status;
}

void server_call_start(struct caller *k, unsigned op, const void *req, struct iovec *out,
                       struct iovec *in)
{
    memset(k, 0, sizeof *k);
    rpc_call_init(&k->call, op, req, called, k);
    k->call.timeout_ns = 30 * NS_PER_S;
    k->call.session = bed->session;
    k->call.generation = bed->generation;
    k->call.incarnation = bed->incarnation;
    k->call.flags = RPC_CALL_WAIT;
    k->call.bulk_out = out;
    k->call.n_bulk_out = out != NULL;
    k->call.bulk_in = in;
    k->call.n_bulk_in = in != NULL;
    rpc_peer_call(bed->oss, &k->call);
}

int server_call_bulk(struct caller *k, unsigned op, const void *req, struct iovec *out,
                     struct iovec *in)
{
    server_call_start(k, op, req, out, in);
    while (!k->done)
        reactor_run_once(bed->reactor, NS_PER_S);
    return k->status;
}

int server_call(struct caller *k, unsigned op, const void *req)
{
    return server_call_bulk(k, op, req, NULL, NULL);
}

int server_call_ready(struct caller *k, unsigned op, const void *req, struct iovec *out,
                      struct iovec *in)
{
    int rc;

    while ((rc = server_call_bulk(k, op, req, out, in)) == -AIFS_ERETRY) {
        rpc_call_fini(&k->call);
        reactor_run_once(bed->reactor, 5 * NS_PER_MS);
    }
    return rc;
}

int server_write(uint32_t target, uint64_t ino, uint64_t chunk, uint32_t offset, void *data,
                 uint32_t len, bool stable, struct msg_write_rep *ret_rep)
{
    struct msg_range range = {.chunk = chunk, .offset = offset, .len = len};
    uint32_t crcs[260];
    struct msg_write_req m = {.target = target,
                              .ino = ino,
                              .stable = stable,
                              .n_ranges = 1,
                              .ranges = &range,
                              .crcs = crcs,
                              .want_grant = 1 << 20,
                              .once = bed->once};
    struct iovec iov = {data, len};
    struct caller k;
    int rc;

    m.n_crcs = (uint32_t)crc32c_blocks(offset, data, len, crcs);
    rc = server_call_ready(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL);
    if (!rc && ret_rep)
        *ret_rep = *(const struct msg_write_rep *)k.call.rep;
    rpc_call_fini(&k.call);
    return rc;
}

int server_read(uint32_t target, uint64_t ino, uint64_t chunk, uint32_t offset, void *data,
                uint32_t len, uint32_t *ret_len)
{
    struct msg_range range = {.chunk = chunk, .offset = offset, .len = len};
    struct msg_read_req m = {.target = target, .ino = ino, .n_ranges = 1, .ranges = &range};
    struct iovec iov = {data, len};
    struct caller k;
    int rc = server_call_ready(&k, RPC_OP_OSS_READ, &m, NULL, &iov);

    if (!rc) {
        const struct msg_read_rep *rep = k.call.rep;
        uint32_t crcs[260];

        ck_assert_uint_eq(rep->n_lens, 1);
        ck_assert_uint_eq(rep->lens[0], k.call.bulk_in_len);
        ck_assert_uint_eq(rep->n_crcs, crc32c_blocks(0, data, rep->lens[0], crcs));
        ck_assert(!rep->n_crcs || !memcmp(crcs, rep->crcs, rep->n_crcs * 4));
        *ret_len = rep->lens[0];
    }
    rpc_call_fini(&k.call);
    return rc;
}

/* ---- set up ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void server_make_bed(void)
{
    struct reactor_options ro = {.name = "test"};
    struct net_addr addr;
    char path[200], err[200];

    log_set_level(LOG_LEVEL_ERROR);
    bed = calloc(1, sizeof *bed);
    snprintf(bed->dir, sizeof bed->dir, "%s/aifs-oss-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(bed->dir));
    ck_assert_int_eq(crypto_key_create(&bed->key), 0);
    snprintf(path, sizeof path, "%s/key", bed->dir);
    ck_assert_int_eq(crypto_key_save(path, &bed->key), 0);
    ck_assert_int_eq(reactor_create(&ro, &bed->reactor), 0);
    bed->mds = make_node(CRYPTO_ROLE_SERVER, "mds");
    rpc_node_handle(bed->mds, RPC_OP_NODE_REGISTER, on_register, NULL);
    rpc_node_handle(bed->mds, RPC_OP_HEARTBEAT, on_beat, NULL);
    ck_assert_int_eq(net_addr_resolve("127.0.0.1:0", 0, &addr, err, sizeof err), 0);
    ck_assert_int_eq(rpc_node_listen(bed->mds, &addr, &bed->mds_port), 0);
    bed->client = make_node(CRYPTO_ROLE_SERVER, "client");
    bed->buf = aligned_alloc(4096, 2 * CHUNK);
    for (unsigned i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/t%u", bed->dir, i);
        ck_assert_int_eq(mkdir(path, 0755), 0);
    }
    bed->session = 55;
    bed->generation = bed->incarnation = 1;
    server_start(NULL);
    server_connect();
}

void server_end_bed(void)
{
    if (bed->oss)
        server_end(SIGTERM, 0);
    nftw(bed->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void server_fill(uint8_t *p, uint32_t len, uint32_t seed)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}
