/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between plain messages (msg.h) and protobuf. Encoding fails only for lack of memory or a message
 * over NET_HEAD_MAX; decoding checks every length, count, enum and depth against its bound,
 * allocates from the caller's arena only, and fails with -AIFS_EPROTO, or -ENOMEM when there is
 * none. Unknown fields are skipped. Any thread.
 */
#ifndef AIFS_PROTO_CODEC_H
#define AIFS_PROTO_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/mem.h"

/* Encodes the request (or reply) struct of op; the bytes are in the arena. msg NULL: nothing, which
 * an empty message is. */
int codec_encode(unsigned op, bool reply, const void *msg, struct arena *a, const void **ret_data,
                 uint32_t *ret_len) MUST_USE;
/* The same with room bytes left free before them, for a header: *ret_mem is the start of the room,
 * *ret_len does not count it. */
int codec_encode_room(unsigned op, bool reply, const void *msg, uint32_t room, struct arena *a,
                      void **ret_mem, uint32_t *ret_len) MUST_USE;
int codec_decode(unsigned op, bool reply, const void *data, uint32_t len, struct arena *a,
                 void **ret_msg) MUST_USE;

struct cluster_map;
/* The cluster map as the metadata server stores it. */
int codec_map_encode(const struct cluster_map *map, struct arena *a, const void **ret_data,
                     uint32_t *ret_len) MUST_USE;
int codec_map_decode(const void *data, uint32_t len, struct arena *a,
                     struct cluster_map **ret_map) MUST_USE;

#endif
