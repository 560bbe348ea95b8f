/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the cluster map as functions from values to values: each is applied to a copy that
 * nobody else sees. They return 0 (changed), CHANGE_NONE (the map says so already) or an error,
 * after which the copy is thrown away. The caller raises the epoch.
 */
#ifndef AIFS_MDS_CLUSTER_CHANGE_H
#define AIFS_MDS_CLUSTER_CHANGE_H

#include "proto/map.h"
#include "proto/msg.h"

#define CHANGE_NONE         1
#define CHANGE_DEFAULT_POOL "default"

/* This server and the default pool. */
struct change_self {
    struct uuid uuid;
    const char *alias, *address;
};
int change_self(struct cluster_map *m, const struct change_self *self) MUST_USE;

/*
 * An OSS with its targets: known ones (by uuid) are online again, here; new ones get an id, join
 * the pool they ask for ("" is the default one) and get their chains. One that asks for a pool that
 * does not exist is left out, until it does; -ENOENT: the server has nothing else;
 * -EEXIST: the uuid is another kind of server's; -EINVAL: names or addresses that no map can hold.
 */
/*
 * A new target is refused, and left out of the map, where a target of this server lived (same path;
 * the server is known by its uuid, or by an address, since one that misses its only disk has a new
 * uuid) that the server does not have any more: most likely a disk is not mounted, and files would
 * go below its mount point. A server that has nothing else is not taken into the map either.
 *
 * A target that is online in another server stays there: this one has a copy of it, or has it so
 * soon after the other that the other is not known to be gone. Two that serve it would show two
 * states of the same files, and write to both. It is not taken by itself when the other is down: a
 * copy would serve then. Whoever has moved a disk starts its server again.
 */
int change_register(struct cluster_map *m, const struct msg_register_req *req) MUST_USE;
bool change_pool_exists(const struct cluster_map *m, const struct msg_target_stat *s);
/* The target that keeps number i of this request from being taken; 0: none. It may be itself, if it
 * is one that was given up. Before or after change_register(). */
uint32_t change_instead_of(const struct cluster_map *m, const struct msg_register_req *req,
                           uint32_t i);
/*
 * It is given up for good: a new one may be where it was, new files are not striped over it, what
 * is to be removed there counts as removed. So it must never serve again: it would have what others
 * believe to be gone. -EBUSY: it is there; -ENOSPC: its pool's table cannot be longer.
 */
int change_replace(struct cluster_map *m, uint32_t target) MUST_USE;
/*
 * A server that is gone for good leaves the map. Its targets, all given up, stay there: files name
 * them. Its number is not used again while they do. -EBUSY: a target of it is not given up, or it
 * is this metadata server; -ENOENT.
 */
int change_remove_node(struct cluster_map *m, uint32_t node) MUST_USE;
int change_offline(struct cluster_map *m, uint32_t node) MUST_USE;

/*
 * Targets into a pool. A target that is in a chain may not move: files with a layout of its old
 * pool could name that chain, and tables only grow (placement is arithmetic on them). So this is
 * for targets in no pool yet; a pool gets its targets as they are added (target add --pool).
 * -EBUSY: such a target; -ENOENT: no such pool or target; -EEXIST: create: there is such a pool.
 */
int change_pool_create(struct cluster_map *m, const char *name, const uint32_t *targets,
                       uint32_t n) MUST_USE;
int change_pool_add(struct cluster_map *m, const char *name, const uint32_t *targets,
                    uint32_t n) MUST_USE;
/* Out of the pool, into the default one. */
int change_pool_remove(struct cluster_map *m, const char *name, const uint32_t *targets,
                       uint32_t n) MUST_USE;
/*
 * The server that asks: the one of its uuid, else the one of its name and one of its addresses,
 * which has other disks now (who it is stands on them). Whoever calls change_register() sees that
 * this one is not there at the same time. 0: none.
 */
uint32_t change_known_as(const struct cluster_map *m, const struct msg_register_req *req);
/* Id of the node or target with this uuid; 0: none. */
uint32_t change_node_id(const struct cluster_map *m, const struct uuid *uuid);
uint32_t change_target_id(const struct cluster_map *m, const struct uuid *uuid);
/* 0 also: it is given up, or another node's. */
uint32_t change_serving_id(const struct cluster_map *m, uint32_t node, const struct uuid *uuid);

#endif
