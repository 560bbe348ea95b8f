// SPDX-License-Identifier: Apache-2.0
/* The cluster map, reports of servers, administration. A map is checked as a whole (map_check)
 * before anybody sees it. */
#include <string.h>

#include "proto/codec/codec_int.h"
#include "proto/map.h"
#include "proto/schema/cluster.pb-c.h"

#define TARGETS_MAX 256u /* of one node */

/* ---- reports ---- */

#define TARGET_STAT(F)                                                                             \
    F(num, id)                                                                                     \
    F(uuid, uuid)                                                                                  \
    F(bytes, path, MSG_PATH_MAX)                                                                   \
    F(text, pool, MAP_NAME_BYTES - 1)                                                              \
    F(num, total_bytes)                                                                            \
    F(num, free_bytes)                                                                             \
    F(num, used_bytes)                                                                             \
    F(num, chunks)                                                                                 \
    F(num, verifier)                                                                               \
    F(num, errors)
CODEC_MSG(target_stat, TargetStat, TARGET_STAT)

#define REGISTER_REQ(F)                                                                            \
    F(uuid, node)                                                                                  \
    F(uuid, boot)                                                                                  \
    F(text, alias, MAP_NAME_BYTES - 1)                                                             \
    F(text, version, CODEC_TEXT_MAX)                                                               \
    F(byteses, addresses, MAP_ADDRS, MAP_ADDR_BYTES - 1)                                           \
    F(subs, target_stat, targets, TARGETS_MAX)
CODEC_MSG(register_req, RegisterReq, REGISTER_REQ)

#define FENCE(F) F(num, session) F(num, generation)
CODEC_MSG(fence, Fence, FENCE)

#define ENC_ids(f, n)                                                                              \
    p->n_##f = m->n;                                                                               \
    p->f = (uint32_t *)m->f;
#define DEC_ids(f, n) m->f = dec_array(d, p->n_##f, p->f, sizeof *p->f, TARGETS_MAX, &m->n, &ok);
#define REGISTER_REP(F)                                                                            \
    F(num, node_id)                                                                                \
    F(ids, target_ids, n_targets)                                                                  \
    F(num, map_epoch)                                                                              \
    F(num, fence_seq)                                                                              \
    F(subs, fence, fences, MSG_ITEMS_MAX)                                                          \
    F(ids, instead_of, n_instead_of)
CODEC_MSG(register_rep, RegisterRep, REGISTER_REP)

#define HEARTBEAT_REQ(F)                                                                           \
    F(num, node_id) F(uuid, boot) F(num, fence_seq) F(subs, target_stat, targets, TARGETS_MAX)
CODEC_MSG(heartbeat_req, HeartbeatReq, HEARTBEAT_REQ)

#define HEARTBEAT_REP(F)                                                                           \
    F(num, map_epoch)                                                                              \
    F(num, fence_seq) F(flag, register_again) F(subs, fence, fences, MSG_ITEMS_MAX)
CODEC_MSG(heartbeat_rep, HeartbeatRep, HEARTBEAT_REP)

#define FENCE_REQ(F) F(num, fence_seq) F(subs, fence, fences, MSG_ITEMS_MAX)
CODEC_MSG(fence_req, FenceReq, FENCE_REQ)

/* ---- the map ---- */

static bool map_node_enc(struct enc *e, const void *msg, void *pb)
{
    const struct map_node *m = msg;
    Aifs__MapNode *p = pb;
    struct msg_bytes addresses[MAP_ADDRS];
    uint32_t n = MIN(m->n_addresses, MAP_ADDRS);
    bool ok = true;

    p->id = m->id;
    p->type = (uint32_t)m->type;
    ENC_uuid(uuid) ENC_chars(alias) for (uint32_t i = 0; i < n; i++) addresses[i] =
        (struct msg_bytes){m->addresses[i], (uint32_t)strnlen(m->addresses[i], MAP_ADDR_BYTES)};
    enc_bytes_array(e, n, addresses, &p->addresses, &ok);
    p->n_addresses = n;
    return ok;
}

static bool map_node_dec(struct dec *d UNUSED, const void *pb, void *msg)
{
    const Aifs__MapNode *p = pb;
    struct map_node *m = msg;
    bool ok = p->n_addresses <= MAP_ADDRS && (p->type == MAP_NODE_MDS || p->type == MAP_NODE_OSS);

    m->id = p->id;
    m->type = (enum map_node_type)p->type;
    DEC_uuid(uuid) DEC_chars(alias) for (size_t i = 0; ok && i < p->n_addresses; i++) ok =
        dec_chars(&p->addresses[i], m->addresses[i], sizeof m->addresses[i]);
    m->n_addresses = (uint32_t)p->n_addresses;
    return ok;
}
static const struct codec codec_map_node = {&aifs__map_node__descriptor, sizeof(struct map_node),
                                            map_node_enc, map_node_dec};

#define ENC_state(f) p->f = (uint32_t)m->f;
#define DEC_state(f)                                                                               \
    m->f = (enum map_target_state)p->f;                                                            \
    ok = ok && (p->f == MAP_TARGET_ONLINE || p->f == MAP_TARGET_OFFLINE);
#define MAP_TARGET(F)                                                                              \
    F(num, id)                                                                                     \
    F(num, node)                                                                                   \
    F(num, pool)                                                                                   \
    F(uuid, uuid) F(chars, alias) F(state, state) F(chars, path) F(flag, given_up)
CODEC_DEFINE(map_target, struct map_target, Aifs__MapTarget, aifs__map_target, MAP_TARGET)

#define MAP_POOL(F) F(num, id) F(chars, name)
CODEC_DEFINE(map_pool, struct map_pool, Aifs__MapPool, aifs__map_pool, MAP_POOL)

static bool map_chain_enc(struct enc *e UNUSED, const void *msg, void *pb)
{
    const struct map_chain *m = msg;
    Aifs__MapChain *p = pb;

    p->id = m->id;
    p->version = m->version;
    p->n_targets = MIN(m->n_targets, MSG_COPIES_MAX);
    p->targets = (uint32_t *)m->targets;
    return true;
}

static bool map_chain_dec(struct dec *d UNUSED, const void *pb, void *msg)
{
    const Aifs__MapChain *p = pb;
    struct map_chain *m = msg;

    if (p->n_targets > MSG_COPIES_MAX)
        return false;
    m->id = p->id;
    m->version = p->version;
    m->n_targets = (uint32_t)p->n_targets;
    for (size_t i = 0; i < p->n_targets; i++)
        m->targets[i] = p->targets[i];
    return true;
}
static const struct codec codec_map_chain = {&aifs__map_chain__descriptor, sizeof(struct map_chain),
                                             map_chain_enc, map_chain_dec};

#define MAP_TABLE(F)                                                                               \
    F(num, pool) F(num, copies) F(u32s, chains, MAP_ITEMS_MAX) F(num, first) F(num, live)
CODEC_DEFINE(map_table, struct map_table, Aifs__MapTable, aifs__map_table, MAP_TABLE)

#define MAP_SHARD(F) F(num, id) F(num, node)
CODEC_DEFINE(map_shard, struct map_shard, Aifs__MapShard, aifs__map_shard, MAP_SHARD)

#define MAP(F)                                                                                     \
    F(num, epoch)                                                                                  \
    F(uuid, fs)                                                                                    \
    F(chars, fs_name)                                                                              \
    F(subs, map_node, nodes, MAP_ITEMS_MAX)                                                        \
    F(subs, map_target, targets, MAP_ITEMS_MAX)                                                    \
    F(subs, map_pool, pools, MAP_ITEMS_MAX)                                                        \
    F(subs, map_chain, chains, MAP_ITEMS_MAX)                                                      \
    F(subs, map_table, tables, MAP_ITEMS_MAX)                                                      \
    F(subs, map_shard, shards, MAP_ITEMS_MAX)                                                      \
    F(checked, map)
#define ENC_checked(f)
#define DEC_checked(f) ok = ok && map_check(m) == 0;
CODEC_DEFINE(map, struct cluster_map, Aifs__Map, aifs__map, MAP)

#define MAP_REQ(F) F(num, epoch)
CODEC_MSG(map_req, MapReq, MAP_REQ)

static bool map_rep_enc(struct enc *e, const void *msg, void *pb)
{
    const struct msg_map_rep *m = msg;
    Aifs__MapRep *p = pb;
    bool ok = true;

    p->unchanged = m->unchanged;
    if (m->map)
        p->map = enc_sub(e, &codec_map, m->map, &ok);
    return ok;
}

static bool map_rep_dec(struct dec *d, const void *pb, void *msg)
{
    const Aifs__MapRep *p = pb;
    struct msg_map_rep *m = msg;
    struct cluster_map *map;

    m->unchanged = p->unchanged != 0;
    if (!p->map)
        return m->unchanged;
    map = arena_zalloc(d->arena, sizeof *map);
    m->map = map;
    return map && dec_sub(d, &codec_map, p->map, map);
}
const struct codec codec_map_rep = {&aifs__map_rep__descriptor, sizeof(struct msg_map_rep),
                                    map_rep_enc, map_rep_dec};

/* ---- administration ---- */

#define POOL_REQ(F)                                                                                \
    F(text, name, MAP_NAME_BYTES - 1) F(u32s, targets, MSG_ITEMS_MAX) F(flag, dry_run)
CODEC_MSG(pool_req, PoolReq, POOL_REQ)

#define NODE_REQ(F) F(num, node) F(flag, dry_run)
CODEC_MSG(node_req, NodeReq, NODE_REQ)

#define TEXT_REP(F) F(bytes, text, 256u << 10)
CODEC_MSG(text_rep, TextRep, TEXT_REP)

#define TARGET_ADD_REQ(F)                                                                          \
    F(bytes, path, MSG_PATH_MAX)                                                                   \
    F(text, pool, MAP_NAME_BYTES - 1) F(text, alias, MAP_NAME_BYTES - 1) F(flag, lived)
CODEC_MSG(target_add_req, TargetAddReq, TARGET_ADD_REQ)

#define TARGET_ADD_REP(F) F(bytes, text, 256u << 10) F(uuid, uuid)
CODEC_MSG(target_add_rep, TargetAddRep, TARGET_ADD_REP)

#define NODE_LIVE(F)                                                                               \
    F(num, id) F(num, seen_ns_ago) F(subs, target_stat, targets, TARGETS_MAX) F(flag, disconnected)
CODEC_MSG(node_live, NodeLive, NODE_LIVE)

#define SESSION_INFO(F)                                                                            \
    F(num, session)                                                                                \
    F(num, generation)                                                                             \
    F(text, host, CODEC_TEXT_MAX)                                                                  \
    F(bytes, mount, MSG_PATH_MAX)                                                                  \
    F(text, job, CODEC_TEXT_MAX)                                                                   \
    F(text, address, CODEC_TEXT_MAX)                                                               \
    F(num, pid)                                                                                    \
    F(num, seen_ns_ago)                                                                            \
    F(num, opens)                                                                                  \
    F(num, leases)                                                                                 \
    F(num, state)                                                                                  \
    F(flag, disconnected)                                                                          \
    F(num, waiting)                                                                                \
    F(num, waits_target)                                                                           \
    F(num, waits_ns)
CODEC_MSG(session_info, SessionInfo, SESSION_INFO)

#define RMTREE_REQ(F) F(num, parent) F(num, ino) F(name, name)
CODEC_MSG(rmtree_req, RmtreeReq, RMTREE_REQ)

#define TRASH_TREE(F)                                                                              \
    F(num, ino)                                                                                    \
    F(bytes, name, MSG_NAME_MAX)                                                                   \
    F(num, started_ns_ago) F(num, directories) F(num, objects) F(num, removed)
CODEC_MSG(trash_tree, TrashTree, TRASH_TREE)

#define REFUSED_TARGET(F)                                                                          \
    F(num, instead_of)                                                                             \
    F(text, alias, MAP_NAME_BYTES - 1) F(bytes, path, MSG_PATH_MAX) F(num, seen_ns_ago)
CODEC_MSG(refused_target, RefusedTarget, REFUSED_TARGET)

#define STATUS_REP(F)                                                                              \
    F(uuid, fs)                                                                                    \
    F(text, fs_name, CODEC_TEXT_MAX)                                                               \
    F(text, version, CODEC_TEXT_MAX)                                                               \
    F(num, uptime_ns)                                                                              \
    F(num, inodes)                                                                                 \
    F(num, map_epoch)                                                                              \
    F(num, commits)                                                                                \
    F(num, operations)                                                                             \
    F(num, destroy_queue)                                                                          \
    F(num, punch_queue)                                                                            \
    F(num, recovery_queue)                                                                         \
    F(num, orphans)                                                                                \
    F(subs, node_live, nodes, MSG_ITEMS_MAX)                                                       \
    F(subs, session_info, sessions, MSG_ITEMS_MAX)                                                 \
    F(num, trash_queue)                                                                            \
    F(subs, trash_tree, trees, MSG_TREES_MAX)                                                      \
    F(subs, refused_target, refused, MSG_ITEMS_MAX)                                                \
    F(num, lease_ns)
CODEC_MSG(status_rep, StatusRep, STATUS_REP)

#define WAIT_END(F)                                                                                \
    F(num, session)                                                                                \
    F(text, host, CODEC_TEXT_MAX)                                                                  \
    F(bytes, mount, MSG_PATH_MAX)                                                                  \
    F(text, job, CODEC_TEXT_MAX)                                                                   \
    F(num, pid)                                                                                    \
    F(num, age_ns)
CODEC_MSG(wait_end, WaitEnd, WAIT_END)

#define WAIT(F)                                                                                    \
    F(num, kind)                                                                                   \
    F(flag, write)                                                                                 \
    F(num, ino)                                                                                    \
    F(num, start)                                                                                  \
    F(num, end)                                                                                    \
    F(sub, wait_end, who)                                                                          \
    F(opt, wait_end, other)                                                                        \
    F(flag, other_waits)                                                                           \
    F(num, target)                                                                                 \
    F(num, requests)                                                                               \
    F(num, server_state)
CODEC_MSG(wait, Wait, WAIT)

#define WAITS_REP(F) F(subs, wait, waits, MSG_WAITS_MAX) F(flag, more)
CODEC_MSG(waits_rep, WaitsRep, WAITS_REP)

#define LOAD(F)                                                                                    \
    F(num, link)                                                                                   \
    F(num, session)                                                                                \
    F(num, job)                                                                                    \
    F(num, role)                                                                                   \
    F(text, name, CODEC_TEXT_MAX)                                                                  \
    F(num, operations)                                                                             \
    F(num, read_bytes)                                                                             \
    F(num, written_bytes)                                                                          \
    F(num, busy_ns)                                                                                \
    F(num, waiting)                                                                                \
    F(num, oldest_op)                                                                              \
    F(num, oldest_ns)
CODEC_MSG(load, Load, LOAD)

#define LOAD_REP(F) F(uuid, boot) F(num, now_ns) F(subs, load, links, MSG_ITEMS_MAX) F(flag, more)
CODEC_MSG(load_rep, LoadRep, LOAD_REP)

#define DUMP_REQ(F) F(num, dump) F(flag, end) F(bytes, after, MSG_PATH_MAX)
CODEC_MSG(dump_req, DumpReq, DUMP_REQ)

#define DUMP_REP(F) F(num, dump) F(num, records) F(flag, eof)
CODEC_MSG(dump_rep, DumpRep, DUMP_REP)
