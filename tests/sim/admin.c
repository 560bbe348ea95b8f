/* SPDX-License-Identifier: Apache-2.0 */
/* See admin.h. A server's key may do what an administrator's may. */
#include "tests/sim/admin.h"

#include <string.h>

#include "common/base/err.h"
#include "proto/rpc.h"

static struct {
    struct sim_node *at;
    struct rpc_node *rpc;
    struct rpc_peer *mds;
    struct rpc_call call;
    struct msg_pool_req req;
    uint32_t target;
    bool answered;
    int status;
} admin;

static void answered(struct rpc_call *c, int status)
{
    (void)c;
    admin.answered = true;
    admin.status = status;
}

void admin_replace(struct sim_node *at, uint32_t target)
{
    static const char *const mds[] = {"loop:mds"};
    struct uuid id, boot;

    memset(&admin, 0, sizeof admin);
    admin.at = at;
    admin.target = target;
    admin.req = (struct msg_pool_req){.n_targets = 1, .targets = &admin.target};
    SIM_CHECK(uuid_random(&id) == 0 && uuid_random(&boot) == 0);
    sim_rpc_create(at, &id, &boot, &admin.rpc);
    SIM_CHECK(rpc_peer_create(admin.rpc, mds, 1, NULL, NULL, &admin.mds) == 0);
    rpc_call_init(&admin.call, RPC_OP_TARGET_REPLACE, &admin.req, answered, NULL);
    admin.call.flags = RPC_CALL_WAIT;
    rpc_peer_call(admin.mds, &admin.call);
}

bool admin_is_answered(int *ret_status)
{
    *ret_status = admin.answered ? admin.status : -AIFS_ETIMEOUT;
    return admin.answered;
}

static bool is_answered(void *arg)
{
    (void)arg;
    return admin.answered;
}

static void is_closed(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

void admin_end(void)
{
    bool closed = false;

    if (!admin.answered)
        rpc_call_cancel(&admin.call);
    rpc_peer_destroy(admin.mds);
    SIM_CHECK(sim_run_alone(admin.at, is_answered, NULL));
    rpc_call_fini(&admin.call);
    rpc_node_shutdown(admin.rpc, is_closed, &closed);
    SIM_CHECK(sim_run_alone(admin.at, is_true, &closed));
    rpc_node_destroy(admin.rpc);
    memset(&admin, 0, sizeof admin);
}
