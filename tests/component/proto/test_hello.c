// SPDX-License-Identifier: Apache-2.0
/*
 * Hello over real TCP: right keys connect; a wrong key, cluster, version or role is refused with
 * its own error and its own sentence in the log on both ends; garbage, silence and requests before
 * authentication lead nowhere, and the server goes on serving others.
 */
#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "common/net/frame_fmt.h"
#include "proto/codec.h"
#include "proto/rpc/rpc_int.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"
#include "tests/unit/proto/rpc_pair.h"

static struct pair p;
static struct tmp tmp;
static char log_path[PATH_MAX];

static void start(void)
{
    tmp_make(&tmp);
    snprintf(log_path, sizeof log_path, "%s", tmp_path(&tmp, "log"));
    ck_assert_int_eq(log_open_file(log_path), 0);
    pair_init(&p, true);
}

static void stop(void)
{
    pair_stop(&p);
    tmp_remove(&tmp);
}

static bool logged(const char *what)
{
    static char text[65536];
    FILE *f = fopen(log_path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

    if (f)
        fclose(f);
    text[n] = '\0';
    return strstr(text, what) != NULL;
}

/* One call of the client as it is configured now. */
static int try(void)
{
    struct pair_call c;

    pair_call_init(&c, RPC_OP_PING, NULL);
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait(&p, &c.done, 30000));
    rpc_call_fini(&c.call);
    return c.status;
}

static void refused_with(int error)
{
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    ck_assert_int_eq(try(), -AIFS_EDOWN);
    ck_assert_int_eq(rpc_peer_last_error(p.peer), error);
    ck_assert(!rpc_peer_is_up(p.peer));
    ck_assert_uint_eq(p.ups, 0);
}

/* A client with the right key, beside what else is going on. */
static void others_are_served(void)
{
    struct crypto_key key;

    ck_assert_int_eq(crypto_key_derive(&p.key, CRYPTO_ROLE_CLIENT, &key), 0);
    p.client_options.key = key;
    ck_assert_int_eq(rpc_node_create(p.reactor, &p.client_options, &p.client), 0);
    pair_connect(&p, NULL, NULL);
    ck_assert_int_eq(try(), 0);
}

START_TEST(the_right_key_connects_and_calls)
{
    struct msg_range range = {0, 0, PAIR_BULK};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    uint8_t *back = malloc(PAIR_BULK);
    struct iovec in = {back, PAIR_BULK};
    struct pair_call c;

    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    ck_assert_int_eq(try(), 0);
    ck_assert(logged("client gpu1 127.0.0.1:"));
    ck_assert(logged("server oss1 127.0.0.1:"));
    pair_call_init(&c, RPC_OP_OSS_READ, &read);
    c.call.bulk_in = &in;
    c.call.n_bulk_in = 1;
    rpc_peer_call(p.peer, &c.call);
    ck_assert(pair_wait(&p, &c.done, 30000));
    ck_assert_int_eq(c.status, 0);
    ck_assert_mem_eq(back, p.data, PAIR_BULK);
    rpc_call_fini(&c.call);
    free(back);
}
END_TEST

START_TEST(every_role_is_known_by_its_key)
{
    for (enum crypto_role role = CRYPTO_ROLE_SERVER; role <= CRYPTO_ROLE_CLIENT; role++) {
        if (role != CRYPTO_ROLE_SERVER) {
            pair_stop(&p);
            pair_init(&p, true);
        }
        ck_assert_int_eq(crypto_key_derive(&p.key, role, &p.client_options.key), 0);
        pair_start(&p);
        pair_connect(&p, NULL, NULL);
        ck_assert_int_eq(try(), 0);
        ck_assert_int_eq(rpc_link_peer(p.server_link)->role, role);
        ck_assert_int_eq(rpc_link_peer(rpc_peer_link(p.peer))->role, CRYPTO_ROLE_SERVER);
    }
}
END_TEST

START_TEST(a_wrong_key_is_refused)
{
    p.client_options.key.secret[5] ^= 1;
    refused_with(-AIFS_EAUTH);
    ck_assert(logged("authentication failed: its client key is not the one of this cluster"));
    ck_assert(logged("authentication failed: our client key is not the one the server has"));
}
END_TEST

START_TEST(a_client_key_can_not_pose_as_admin)
{
    p.client_options.key.role = CRYPTO_ROLE_ADMIN;
    refused_with(-AIFS_EAUTH);
    ck_assert(logged("its admin key is not the one of this cluster"));
}
END_TEST

START_TEST(another_cluster_is_refused)
{
    ck_assert_int_eq(uuid_random(&p.client_options.key.cluster), 0);
    refused_with(-AIFS_ECLUSTER);
    ck_assert(logged("has a key of another cluster"));
    ck_assert(logged("the server belongs to another cluster than our key"));
}
END_TEST

START_TEST(another_version_is_refused)
{
    p.client_options.wire_oldest = 7;
    p.client_options.wire_newest = 9;
    refused_with(-AIFS_EVERSION);
    ck_assert(logged("speaks wire versions 7 to 9, we speak 1 to 1"));
    ck_assert(logged("the server speaks none of our wire versions (7 to 9)"));
}
END_TEST

START_TEST(ends_meet_at_the_lower_maximum)
{
    p.client_options.wire_oldest = 1;
    p.client_options.wire_newest = 9;
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    ck_assert_int_eq(try(), 0);
}
END_TEST

START_TEST(who_has_no_server_key_can_not_serve)
{
    p.server_options.key = p.client_options.key;
    refused_with(-AIFS_EROLE);
    ck_assert(logged("who answers is no server"));
}
END_TEST

START_TEST(a_false_server_learns_nothing_and_is_not_believed)
{
    p.server_options.key.secret[0] ^= 1; /* the client's key is not derived from it */
    refused_with(-AIFS_EAUTH);
}
END_TEST

START_TEST(a_transport_that_one_end_insists_on_and_the_other_excludes_is_refused_with_its_reason)
{
    p.server_options.net.want = NET_WANT_TCP;
    p.client_options.net.want = NET_WANT_SHM;
    refused_with(-ENOTSUP);
    ck_assert_str_eq(rpc_peer_last_why(p.peer), "the two ends ask for different transports");
    ck_assert(logged("asked for (shm here, tcp there) cannot be used"));
    ck_assert(logged("asked for (tcp here, shm there) cannot be used"));
}
END_TEST

static bool is_refused(void)
{
    return rpc_peer_last_error(p.peer) != 0;
}

/* Its own half of the connection works, so only the other end can tell. */
START_TEST(a_transport_that_does_not_work_where_it_is_insisted_on_is_told_to_the_other_end)
{
    p.server_options.net.want = NET_WANT_SHM;
    p.client_options.net.want = NET_WANT_AUTO;
    ck_assert_int_eq(fault_arm("net.cma_read=error@1"), 0); /* the server's: it is first */
    pair_start(&p);
    pair_connect(&p, NULL, NULL);
    for (unsigned i = 0; i < 30000 && !is_refused(); i++)
        pair_turn(&p);
    ck_assert_int_eq(rpc_peer_last_error(p.peer), -ENOTSUP);
    ck_assert_str_eq(rpc_peer_last_why(p.peer), "the other end cannot");
    ck_assert(logged("shm was asked for and does not work here: the other process's memory"));
    ck_assert(logged("shm was asked for and does not work here: the other end cannot"));
}
END_TEST

START_TEST(who_takes_a_connection_and_hangs_up_is_named_in_the_log)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char said[128];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), caller;

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    pair_start(&p);
    snprintf(p.address, sizeof p.address, "127.0.0.1:%u", ntohs(at.sin_port));
    pair_connect(&p, NULL, NULL);
    for (unsigned i = 0; i < 30000 && !is_refused(); i++) {
        caller = accept(fd, NULL, NULL);
        if (caller >= 0)
            close(caller);
        pair_turn(&p);
    }
    ck_assert_int_eq(rpc_peer_last_error(p.peer), -AIFS_ECONN);
    snprintf(said, sizeof said, "%s: it takes our connection and closes it", p.address);
    ck_assert(logged(said));
    close(fd);
}
END_TEST

/* ---- garbage ---- */

static int dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(p.port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* The server must hang up. */
static void hung_up(int fd)
{
    char buf[4096];
    ssize_t n = 1;

    for (unsigned i = 0; i < 3000; i++) {
        pair_turn(&p);
        n = recv(fd, buf, sizeof buf, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
    }
    ck_assert(n == 0 || errno == ECONNRESET);
    close(fd);
}

static void send_head(int fd, const struct rpc_header *h, const void *body, uint32_t len)
{
    uint8_t frame[FRAME_BYTES + 256 + 65536], *head = frame + FRAME_BYTES;

    header_encode(h, head);
    if (len)
        memcpy(head + sizeof(struct rpc_header_wire), body, len);
    frame_encode(frame, FRAME_MESSAGE, head, (uint32_t)sizeof(struct rpc_header_wire) + len,
                 h->bulk_len);
    len += FRAME_BYTES + (uint32_t)sizeof(struct rpc_header_wire);
    ck_assert_int_eq(send(fd, frame, len, MSG_NOSIGNAL), (ssize_t)len);
}

static struct rpc_header header(unsigned op, unsigned kind, uint32_t body_len)
{
    return (struct rpc_header){.op = (uint16_t)op,
                               .kind = (uint8_t)kind,
                               .version = 1,
                               .body_len = body_len,
                               .request_id = op};
}

START_TEST(garbage_is_hung_up_on)
{
    static const char *const junk[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                       "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                                       "AIFS, please AIFS, please"};
    uint8_t noise[512];

    pair_serve(&p);
    for (unsigned i = 0; i < ARRAY_LEN(junk); i++) {
        int fd = dial();

        ck_assert_int_ge(send(fd, junk[i], strlen(junk[i]) + 1, MSG_NOSIGNAL), 0);
        shutdown(fd, SHUT_WR);
        hung_up(fd);
    }
    for (unsigned i = 0; i < 20; i++) {
        int fd = dial();

        ck_assert_int_eq(crypto_random(noise, sizeof noise), 0);
        ck_assert_int_ge(send(fd, noise, sizeof noise, MSG_NOSIGNAL), 0);
        hung_up(fd);
    }
    others_are_served();
}
END_TEST

START_TEST(nothing_but_hello_is_heard_before_it)
{
    static uint8_t big[60000];
    struct rpc_header h;
    int fd;

    pair_serve(&p);
    h = header(RPC_OP_PING, RPC_REQUEST, 0);
    send_head(fd = dial(), &h, NULL, 0);
    hung_up(fd);
    h = header(RPC_OP_AUTH, RPC_REQUEST, 0); /* out of order */
    send_head(fd = dial(), &h, NULL, 0);
    hung_up(fd);
    h = header(RPC_OP_HELLO, RPC_REPLY, 0);
    send_head(fd = dial(), &h, NULL, 0);
    hung_up(fd);
    h = header(RPC_OP_HELLO, RPC_REQUEST, 0); /* says nothing */
    send_head(fd = dial(), &h, NULL, 0);
    hung_up(fd);
    h = header(RPC_OP_HELLO, RPC_REQUEST, sizeof big);
    send_head(fd = dial(), &h, big, sizeof big);
    hung_up(fd);
    h = header(RPC_OP_HELLO, RPC_REQUEST, 0);
    h.bulk_len = 4096;
    send_head(fd = dial(), &h, NULL, 0);
    hung_up(fd);
    ck_assert_uint_eq(p.n_notes, 0);
    ck_assert(logged("PING before authentication"));
    others_are_served();
}
END_TEST

START_TEST(a_proof_is_needed_after_hello)
{
    struct msg_hello_req m = {.cluster = p.key.cluster,
                              .role = CRYPTO_ROLE_CLIENT,
                              .name = {"x", 1},
                              .version = {"1", 1},
                              .wire_oldest = 1,
                              .wire_newest = 1,
                              .nonce = {p.data, RPC_NONCE_BYTES}};
    struct msg_auth_req no_proof = {.proof = {"", 0}},
                        zero_proof = {.proof = {log_path, CRYPTO_MAC_BYTES}};
    const struct msg_auth_req *proofs[2] = {&no_proof, &zero_proof};
    struct arena a;

    pair_serve(&p);
    arena_init(&a, 0);
    for (unsigned i = 0; i < 2; i++) {
        const void *body;
        uint32_t len;
        struct rpc_header h;
        int fd = dial();

        ck_assert_int_eq(codec_encode(RPC_OP_HELLO, false, &m, &a, &body, &len), 0);
        h = header(RPC_OP_HELLO, RPC_REQUEST, len);
        send_head(fd, &h, body, len);
        ck_assert_int_eq(codec_encode(RPC_OP_AUTH, false, proofs[i], &a, &body, &len), 0);
        h = header(RPC_OP_AUTH, RPC_REQUEST, len);
        send_head(fd, &h, body, len);
        h = header(RPC_OP_PING, RPC_REQUEST, 0);
        send_head(fd, &h, NULL, 0);
        hung_up(fd);
    }
    ck_assert_uint_eq(p.n_notes, 0);
    ck_assert_uint_eq(p.ups, 0);
    arena_reset(&a);
    others_are_served();
}
END_TEST

START_TEST(a_silent_connection_is_closed_after_five_seconds)
{
    uint64_t before;
    int fd;

    pair_serve(&p);
    before = clock_mono_ns(clock_real());
    fd = dial();
    while (!logged("no complete hello within 5 s") &&
           clock_mono_ns(clock_real()) - before < 30 * NS_PER_S)
        reactor_run_once(p.reactor, 100 * NS_PER_MS);
    ck_assert(logged("no complete hello within 5 s"));
    hung_up(fd);
    others_are_served();
}
END_TEST

START_TEST(a_tool_gets_the_reason_at_once)
{
    struct rpc_sync *s;
    struct rpc_peer *peer;
    struct crypto_key wrong = p.key;
    char address[64];

    wrong.role = CRYPTO_ROLE_ADMIN;
    snprintf(address, sizeof address, "127.0.0.1:1");
    ck_assert_int_eq(rpc_sync_create(&wrong, "tool", &s), 0);
    ck_assert_int_eq(rpc_sync_connect(s, address, 30 * NS_PER_S, &peer), -ECONNREFUSED);
    rpc_sync_destroy(s);
    pair_start(&p);
}
END_TEST

static void *serve(void *arg)
{
    reactor_run(arg);
    return NULL;
}

START_TEST(a_tool_can_call_and_wait)
{
    struct msg_range range = {0, 0, 8192};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};
    struct rpc_sync *s;
    struct rpc_peer *peer;
    const void *rep = NULL;
    pthread_t thread;

    pair_start(&p);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, p.reactor), 0);
    ck_assert_int_eq(rpc_sync_create(&p.key, "tool", &s), 0);
    ck_assert_int_eq(rpc_sync_connect(s, p.address, 30 * NS_PER_S, &peer), 0);
    ck_assert_int_eq(rpc_sync_call(s, peer, RPC_OP_PING, NULL, 30 * NS_PER_S, &rep), 0);
    ck_assert_int_eq(rpc_sync_call(s, peer, RPC_OP_OSS_READ, &read, 30 * NS_PER_S, &rep),
                     -AIFS_ESESSION);
    rpc_sync_destroy(s);
    reactor_stop(p.reactor);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

SUITE_MAIN("hello", start, stop, the_right_key_connects_and_calls, every_role_is_known_by_its_key,
           a_wrong_key_is_refused, a_client_key_can_not_pose_as_admin, another_cluster_is_refused,
           another_version_is_refused, ends_meet_at_the_lower_maximum,
           who_has_no_server_key_can_not_serve, a_false_server_learns_nothing_and_is_not_believed,
           a_transport_that_one_end_insists_on_and_the_other_excludes_is_refused_with_its_reason,
           a_transport_that_does_not_work_where_it_is_insisted_on_is_told_to_the_other_end,
           who_takes_a_connection_and_hangs_up_is_named_in_the_log, garbage_is_hung_up_on,
           nothing_but_hello_is_heard_before_it, a_proof_is_needed_after_hello,
           a_silent_connection_is_closed_after_five_seconds, a_tool_gets_the_reason_at_once,
           a_tool_can_call_and_wait)
