// SPDX-License-Identifier: Apache-2.0
/*
 * aifs-oss as a process, between a metadata server played by the test and clients: registration,
 * fences, data, commits and verifiers over restarts, space promises, wrong input, adding a target.
 */
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "proto/rpc.h"
#include "tests/support/suite.h"

#define CHUNK 1048576u

struct bed {
    char dir[128];
    struct crypto_key key;
    struct reactor *reactor;
    struct rpc_node *mds, *client;
    uint16_t mds_port;
    struct rpc_peer *oss;
    pid_t pid;
    uint32_t registrations, beats;
    uint32_t target_ids[8];
    uint32_t n_targets;
    struct msg_fence fences[4];
    uint32_t n_fences;
    bool mute; /* the metadata server does not answer */
    uint64_t errors_seen;
    uint8_t *buf;
};

static struct bed *bed;

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
    struct msg_heartbeat_rep rep = {.map_epoch = 4, .fence_seq = m->fence_seq};

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

static void start_oss(const char *extra)
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

static void connect_oss(void)
{
    char address[32];
    const char *list[] = {address};

    snprintf(address, sizeof address, "127.0.0.1:%u", oss_port());
    ck_assert_int_eq(rpc_peer_create(bed->client, list, 1, NULL, NULL, &bed->oss), 0);
}

static void end_oss(int sig, int want_status)
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

struct caller {
    struct rpc_call call;
    bool done;
    int status;
};

static void called(struct rpc_call *c, int status)
{
    struct caller *k = c->arg;

    k->done = true;
    k->status = status;
}

static uint64_t the_session = 55;
static uint32_t the_generation = 1, the_incarnation = 1;

static void call_start(struct caller *k, unsigned op, const void *req, struct iovec *out,
                       struct iovec *in)
{
    memset(k, 0, sizeof *k);
    rpc_call_init(&k->call, op, req, called, k);
    k->call.timeout_ns = 30 * NS_PER_S;
    k->call.session = the_session;
    k->call.generation = the_generation;
    k->call.incarnation = the_incarnation;
    k->call.flags = RPC_CALL_WAIT;
    k->call.bulk_out = out;
    k->call.n_bulk_out = out != NULL;
    k->call.bulk_in = in;
    k->call.n_bulk_in = in != NULL;
    rpc_peer_call(bed->oss, &k->call);
}

static int call_bulk(struct caller *k, unsigned op, const void *req, struct iovec *out,
                     struct iovec *in)
{
    call_start(k, op, req, out, in);
    while (!k->done)
        reactor_run_once(bed->reactor, NS_PER_S);
    return k->status;
}

static int call(struct caller *k, unsigned op, const void *req)
{
    return call_bulk(k, op, req, NULL, NULL);
}

/* Client calls wait until the server is registered. */
static int call_ready(struct caller *k, unsigned op, const void *req, struct iovec *out,
                      struct iovec *in)
{
    int rc;

    while ((rc = call_bulk(k, op, req, out, in)) == -AIFS_ERETRY) {
        rpc_call_fini(&k->call);
        reactor_run_once(bed->reactor, 5 * NS_PER_MS);
    }
    return rc;
}

static int do_write(uint32_t target, uint64_t ino, uint64_t chunk, uint32_t offset, void *data,
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
                              .want_grant = 1 << 20};
    struct iovec iov = {data, len};
    struct caller k;
    int rc;

    m.n_crcs = (uint32_t)crc32c_blocks(offset, data, len, crcs);
    rc = call_ready(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL);
    if (!rc && ret_rep)
        *ret_rep = *(const struct msg_write_rep *)k.call.rep;
    rpc_call_fini(&k.call);
    return rc;
}

static int do_read(uint32_t target, uint64_t ino, uint64_t chunk, uint32_t offset, void *data,
                   uint32_t len, uint32_t *ret_len)
{
    struct msg_range range = {.chunk = chunk, .offset = offset, .len = len};
    struct msg_read_req m = {.target = target, .ino = ino, .n_ranges = 1, .ranges = &range};
    struct iovec iov = {data, len};
    struct caller k;
    int rc = call_ready(&k, RPC_OP_OSS_READ, &m, NULL, &iov);

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

static void make_bed(void)
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
    the_session = 55;
    the_generation = the_incarnation = 1;
    start_oss(NULL);
    connect_oss();
}

static void end_bed(void)
{
    if (bed->oss)
        end_oss(SIGTERM, 0);
    nftw(bed->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void fill(uint8_t *p, uint32_t len, uint32_t seed)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

START_TEST(what_was_written_is_read_with_its_sums)
{
    uint8_t *want = malloc(CHUNK);
    uint32_t len = 0;

    fill(want, CHUNK, 1);
    ck_assert_int_eq(do_write(100, 9, 0, 0, want, CHUNK, false, NULL), 0);
    ck_assert_int_eq(do_write(100, 9, 1, 0, want, 5000, false, NULL), 0);
    ck_assert_int_eq(do_read(100, 9, 0, 0, bed->buf, CHUNK, &len), 0);
    ck_assert_uint_eq(len, CHUNK);
    ck_assert_int_eq(memcmp(want, bed->buf, len), 0);
    ck_assert_int_eq(do_read(100, 9, 1, 4096, bed->buf, 8192, &len), 0);
    ck_assert_uint_eq(len, 5000 - 4096);
    ck_assert_int_eq(memcmp(want + 4096, bed->buf, len), 0);
    ck_assert_int_eq(do_read(100, 9, 2, 0, bed->buf, 4096, &len), 0);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(do_read(77, 9, 2, 0, bed->buf, 4096, &len), -AIFS_ENOTARGET);
    free(want);
}
END_TEST

START_TEST(many_ranges_are_answered_together_in_their_order)
{
    struct msg_range ranges[MSG_RANGES_MAX];
    uint32_t n = ARRAY_LEN(ranges), at = 0, crcs_at = 0, crcs[2];
    struct msg_read_req m = {.target = 100, .ino = 9, .n_ranges = n, .ranges = ranges};
    struct iovec iov = {bed->buf, CHUNK};
    uint8_t *want = malloc(CHUNK);
    const struct msg_read_rep *rep;
    struct caller k;

    fill(want, CHUNK, 1);
    ck_assert_int_eq(do_write(100, 9, 0, 0, want, CHUNK, false, NULL), 0);
    ck_assert_int_eq(do_write(100, 9, 1, 0, want, 5000, false, NULL), 0);
    for (uint32_t i = 0; i < n; i++) /* of a whole chunk, of one that ends early, of none */
        ranges[i] = (struct msg_range){.chunk = i % 3, .offset = i % 5 * 4096, .len = 4096};
    ck_assert_int_eq(call_ready(&k, RPC_OP_OSS_READ, &m, NULL, &iov), 0);
    rep = k.call.rep;
    ck_assert_uint_eq(rep->n_lens, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = ranges[i].offset, end = i % 3 == 0 ? CHUNK : i % 3 == 1 ? 5000 : 0;
        uint32_t len = end > from ? MIN(end - from, 4096) : 0;

        ck_assert_uint_eq(rep->lens[i], len);
        ck_assert_int_eq(memcmp(bed->buf + at, want + from, len), 0);
        ck_assert(!len || crc32c_blocks(0, want + from, len, crcs) == 1);
        ck_assert(!len || rep->crcs[crcs_at++] == crcs[0]);
        at += len;
    }
    ck_assert_uint_eq(k.call.bulk_in_len, at);
    ck_assert_uint_eq(rep->n_crcs, crcs_at);
    rpc_call_fini(&k.call);
    free(want);
}
END_TEST

START_TEST(a_stable_write_survives_a_kill_and_the_verifier_changes)
{
    struct msg_write_rep before, after;
    uint32_t len = 0;

    fill(bed->buf, 10000, 2);
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10000, true, &before), 0);
    ck_assert_uint_gt(before.grant, 0);
    end_oss(SIGKILL, 0);
    unlink(strcat(strcpy((char *)bed->buf + CHUNK, bed->dir), "/run/port"));
    start_oss(NULL);
    connect_oss();
    ck_assert_int_eq(do_read(100, 9, 0, 0, bed->buf + CHUNK, 12288, &len), 0);
    ck_assert_uint_eq(len, 10000);
    fill(bed->buf, 10000, 2);
    ck_assert_int_eq(memcmp(bed->buf, bed->buf + CHUNK, 10000), 0);
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, true, &after), 0);
    ck_assert_uint_ne(before.verifier, after.verifier);
}
END_TEST

START_TEST(a_clean_stop_commits_everything)
{
    uint32_t len = 0;

    fill(bed->buf, 10000, 3);
    ck_assert_int_eq(do_write(101, 9, 0, 0, bed->buf, 10000, false, NULL), 0);
    end_oss(SIGTERM, 0);
    start_oss(NULL);
    connect_oss();
    ck_assert_int_eq(do_read(101, 9, 0, 0, bed->buf, 12288, &len), 0);
    ck_assert_uint_eq(len, 10000);
}
END_TEST

START_TEST(a_fenced_session_is_refused_also_after_a_restart)
{
    struct msg_fence fence = {.session = 55, .generation = 1};
    struct msg_fence_req m = {.fence_seq = 1, .n_fences = 1, .fences = &fence};
    struct caller k;

    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    ck_assert_int_eq(call(&k, RPC_OP_OSS_FENCE, &m), 0);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_EFENCED);
    the_generation = 2;
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    the_generation = 1;
    end_oss(SIGKILL, 0);
    unlink(strcat(strcpy((char *)bed->buf + CHUNK, bed->dir), "/run/port"));
    start_oss(NULL);
    connect_oss();
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_EFENCED);
}
END_TEST

START_TEST(clients_are_not_served_before_the_fences_are_known)
{
    struct msg_range range = {.len = 4096};
    struct msg_read_req m = {.target = 100, .ino = 9, .n_ranges = 1, .ranges = &range};
    struct iovec iov = {bed->buf, 4096};
    struct caller k;

    end_oss(SIGTERM, 0);
    bed->mute = true;
    bed->fences[0] = (struct msg_fence){.session = 55, .generation = 1};
    bed->n_fences = 1;
    start_oss(NULL);
    connect_oss();
    ck_assert_int_eq(call_bulk(&k, RPC_OP_OSS_READ, &m, NULL, &iov), -AIFS_ERETRY);
    rpc_call_fini(&k.call);
    bed->mute = false;
    ck_assert_int_eq(call_ready(&k, RPC_OP_OSS_READ, &m, NULL, &iov), -AIFS_EFENCED);
    rpc_call_fini(&k.call);
}
END_TEST

START_TEST(an_older_connection_of_a_session_is_refused)
{
    the_incarnation = 5;
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    the_incarnation = 4;
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_ECONN);
    the_incarnation = 6;
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
}
END_TEST

START_TEST(a_new_connection_waits_for_what_the_old_one_left_in_flight)
{
    struct msg_range range = {.len = 4096};
    uint32_t crc = crc32c(bed->buf, 4096), len;
    struct msg_write_req m = {.target = 100,
                              .ino = 9,
                              .stable = true,
                              .n_ranges = 1,
                              .ranges = &range,
                              .n_crcs = 1,
                              .crcs = &crc};
    struct iovec iov = {bed->buf, 4096};
    struct caller k = {0};

    end_oss(SIGTERM, 0);
    setenv("AIFS_FAULT", "chunk.commit.before_sync=delay:300", 1);
    start_oss(NULL);
    unsetenv("AIFS_FAULT");
    connect_oss();
    ck_assert_int_eq(do_read(100, 9, 0, 0, bed->buf + CHUNK, 4096, &len), 0);
    call_start(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL);
    the_incarnation = 2;
    ck_assert_int_eq(do_read(100, 9, 0, 0, bed->buf + CHUNK, 4096, &len), 0);
    ck_assert(k.done && !k.status);
    rpc_call_fini(&k.call);
}
END_TEST

START_TEST(malformed_requests_are_refused_and_harm_nothing)
{
    struct msg_range range = {.chunk = 0, .offset = 0, .len = 4096};
    uint32_t crc = 1;
    struct msg_write_req m = {
        .target = 100, .ino = 9, .n_ranges = 1, .ranges = &range, .n_crcs = 1, .crcs = &crc};
    struct msg_cut_req cut = {.target = 100, .ino = 9, .truncate_gen = 1, .chunk_bytes = 3};
    struct iovec iov = {bed->buf, 4096}, small = {bed->buf, 100};
    struct caller k;

    ck_assert_int_eq(call_ready(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL), -AIFS_ECHECKSUM);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(call_ready(&k, RPC_OP_OSS_WRITE, &m, &small, NULL), -AIFS_EPROTO);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(call_ready(&k, RPC_OP_OSS_WRITE, &m, NULL, NULL), -AIFS_EPROTO);
    rpc_call_fini(&k.call);
    range.offset = 0xfffff000u;
    crc = crc32c(bed->buf, 4096);
    ck_assert_int_eq(call_ready(&k, RPC_OP_OSS_WRITE, &m, &iov, NULL), -AIFS_EPROTO);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(call(&k, RPC_OP_OSS_TRUNCATE, &cut), -EINVAL);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(do_write(100, 0, 0, 0, bed->buf, 10, false, NULL), -EINVAL);
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
}
END_TEST

START_TEST(truncate_seal_list_and_destroy_over_the_wire)
{
    struct msg_cut_req cut = {
        .target = 100, .ino = 9, .truncate_gen = 0, .chunk_bytes = CHUNK, .start = CHUNK + 50};
    struct msg_seal_req seal = {.target = 100, .ino = 9, .chunk_bytes = CHUNK};
    struct msg_chunk_list_req list = {.target = 100, .first = true, .max = 100, .verify = true};
    uint64_t ino = 9;
    struct msg_destroy_req destroy = {.target = 100, .n_inos = 1, .inos = &ino};
    struct caller k;

    fill(bed->buf, CHUNK, 4);
    for (uint32_t c = 0; c < 3; c++)
        ck_assert_int_eq(do_write(100, 9, c, 0, bed->buf, CHUNK, false, NULL), 0);
    ck_assert_int_eq(call(&k, RPC_OP_OSS_SEAL, &seal), 0);
    ck_assert_uint_eq(((const struct msg_seal_rep *)k.call.rep)->high_water, 3ull * CHUNK);
    rpc_call_fini(&k.call);
    cut.truncate_gen = 1;
    ck_assert_int_eq(call(&k, RPC_OP_OSS_TRUNCATE, &cut), 0);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -AIFS_ESTALE_TRUNC);
    seal.truncate_gen = 1;
    ck_assert_int_eq(call(&k, RPC_OP_OSS_SEAL, &seal), 0);
    ck_assert_uint_eq(((const struct msg_seal_rep *)k.call.rep)->high_water, CHUNK + 50);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(call(&k, RPC_OP_OSS_CHUNK_LIST, &list), 0);
    ck_assert_uint_eq(((const struct msg_chunk_list_rep *)k.call.rep)->n_chunks, 2);
    ck_assert_uint_eq(((const struct msg_chunk_list_rep *)k.call.rep)->chunks[1].len, 50);
    ck_assert(!((const struct msg_chunk_list_rep *)k.call.rep)->chunks[0].bad);
    ck_assert(((const struct msg_chunk_list_rep *)k.call.rep)->eof);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(call(&k, RPC_OP_OSS_DESTROY, &destroy), 0);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), -ENOENT);
}
END_TEST

START_TEST(a_target_is_added_online_and_kept)
{
    char path[200];
    struct msg_target_add_req m = {.path = {path, 0}, .pool = {"slow", 4}};
    struct msg_target_req all = {0};
    uint32_t before;
    struct caller k;

    snprintf(path, sizeof path, "%s/t3", bed->dir);
    m.path.len = (uint32_t)strlen(path);
    ck_assert_int_eq(do_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    before = bed->registrations;
    ck_assert_int_eq(call(&k, RPC_OP_OSS_TARGET_ADD, &m), 0);
    rpc_call_fini(&k.call);
    while (bed->registrations == before)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_uint_eq(bed->n_targets, 3);
    ck_assert_int_eq(call(&k, RPC_OP_OSS_TARGET_ADD, &m), -EEXIST);
    rpc_call_fini(&k.call);
    end_oss(SIGTERM, 0);
    start_oss(NULL);
    connect_oss();
    ck_assert_int_eq(do_write(102, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    ck_assert_int_eq(call(&k, RPC_OP_OSS_STAT, &all), 0);
    ck_assert_uint_eq(((const struct msg_status_rep *)k.call.rep)->nodes[0].n_targets, 3);
    rpc_call_fini(&k.call);
}
END_TEST

START_TEST(it_registers_once_and_then_beats)
{
    while (bed->beats < 2)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_uint_eq(bed->registrations, 1);
}
END_TEST

SUITE_MAIN("oss server", make_bed, end_bed, what_was_written_is_read_with_its_sums,
           many_ranges_are_answered_together_in_their_order,
           a_stable_write_survives_a_kill_and_the_verifier_changes, a_clean_stop_commits_everything,
           a_fenced_session_is_refused_also_after_a_restart,
           clients_are_not_served_before_the_fences_are_known,
           an_older_connection_of_a_session_is_refused,
           a_new_connection_waits_for_what_the_old_one_left_in_flight,
           malformed_requests_are_refused_and_harm_nothing,
           truncate_seal_list_and_destroy_over_the_wire, a_target_is_added_online_and_kept,
           it_registers_once_and_then_beats)
