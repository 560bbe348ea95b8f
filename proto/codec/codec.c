// SPDX-License-Identifier: Apache-2.0
/*
 * Encoding and decoding of any message: the table by operation, and the helpers for the kinds of
 * fields.
 *
 * Happy path: the generated structs are built in a scratch area on the stack and packed straight
 * into the caller's arena (or unpacked there and copied into a plain struct in the arena). Failure:
 * encoding fails with -ENOMEM or -EMSGSIZE; decoding with -AIFS_EPROTO, whatever was wrong, a
 * message that costs more than the arena's limit included, or with -ENOMEM.
 */
#include "proto/codec.h"

#include <errno.h>
#include <string.h>

#include "common/base/err.h"
#include "common/net/net.h"
#include "proto/codec/codec_int.h"
#include "proto/map.h"
#include "proto/ops.h"

#define CODEC_EXTERN(name, number, req, rep, flags)                                                \
    extern const struct codec codec_##req, codec_##rep;
RPC_OP_TABLE(CODEC_EXTERN)
#undef CODEC_EXTERN

static const struct {
    const struct codec *req, *rep;
} codec_table[RPC_OP_LIMIT] = {
#define CODEC_ROW(name, number, req, rep, flags) [number] = {&codec_##req, &codec_##rep},
    RPC_OP_TABLE(CODEC_ROW)
#undef CODEC_ROW
};

const struct codec *codec_find(unsigned op, bool reply)
{
    if (op >= RPC_OP_LIMIT)
        return NULL;
    return reply ? codec_table[op].rep : codec_table[op].req;
}

/* ---- encoding ---- */

static void *enc_alloc(struct enc *e, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (size <= sizeof e->scratch - e->used) {
        void *p = e->scratch + e->used;

        e->used += size;
        return p;
    }
    return arena_alloc(e->arena, size);
}

void *enc_sub(struct enc *e, const struct codec *c, const void *msg, bool *ok)
{
    void *pb = enc_alloc(e, c->pb->sizeof_message);

    if (!pb) {
        *ok = false;
        return NULL;
    }
    protobuf_c_message_init(c->pb, pb);
    if (!c->enc(e, msg, pb))
        *ok = false;
    return pb;
}

void *enc_subs(struct enc *e, const struct codec *c, uint32_t n, const void *msgs, bool *ok)
{
    void **pbs = n ? enc_alloc(e, n * sizeof *pbs) : NULL;

    if (n && !pbs)
        *ok = false;
    for (uint32_t i = 0; *ok && i < n; i++)
        pbs[i] = enc_sub(e, c, (const char *)msgs + i * c->msg_size, ok);
    return pbs;
}

void enc_bytes_array(struct enc *e, uint32_t n, const struct msg_bytes *from,
                     ProtobufCBinaryData **ret, bool *ok)
{
    ProtobufCBinaryData *to = n ? enc_alloc(e, n * sizeof *to) : NULL;

    if (n && !to)
        *ok = false;
    for (uint32_t i = 0; *ok && i < n; i++)
        to[i] = (ProtobufCBinaryData){from[i].len, (uint8_t *)from[i].data};
    *ret = to;
}

ProtobufCBinaryData enc_chars(const char *s, size_t cap)
{
    return (ProtobufCBinaryData){strnlen(s, cap), (uint8_t *)s};
}

static int encode(const struct codec *c, const void *msg, uint32_t room, struct arena *a,
                  void **ret_mem, uint32_t *ret_len)
{
    struct enc e;
    bool ok = true;
    size_t len = 0;
    void *pb = NULL, *mem;

    e.arena = a;
    e.used = 0;
    if (msg && c->pb->n_fields) {
        pb = enc_sub(&e, c, msg, &ok);
        if (!ok)
            return -ENOMEM;
        len = protobuf_c_message_get_packed_size(pb);
        if (len > NET_HEAD_MAX - 256)
            return -EMSGSIZE;
    }
    mem = arena_alloc(a, room + len);
    if (!mem)
        return -ENOMEM;
    if (len)
        protobuf_c_message_pack(pb, (uint8_t *)mem + room);
    *ret_mem = mem;
    *ret_len = (uint32_t)len;
    return 0;
}

int codec_encode_room(unsigned op, bool reply, const void *msg, uint32_t room, struct arena *a,
                      void **ret_mem, uint32_t *ret_len)
{
    const struct codec *c = codec_find(op, reply);

    return c ? encode(c, msg, room, a, ret_mem, ret_len) : -EINVAL;
}

int codec_encode(unsigned op, bool reply, const void *msg, struct arena *a, const void **ret_data,
                 uint32_t *ret_len)
{
    void *mem;
    int rc = codec_encode_room(op, reply, msg, 0, a, &mem, ret_len);

    if (rc == 0)
        *ret_data = mem;
    return rc;
}

/* ---- decoding ---- */

static bool dec_in_scratch(const struct dec *d, const void *p)
{
    return (const unsigned char *)p >= d->scratch &&
           (const unsigned char *)p < d->scratch + sizeof d->scratch;
}

static void *dec_alloc(void *data, size_t size)
{
    struct dec *d = data;

    if (size <= sizeof d->scratch - d->used) {
        void *p = d->scratch + d->used;

        d->used += (size + 15) & ~(size_t)15;
        d->used = MIN(d->used, sizeof d->scratch);
        return p;
    }
    return arena_alloc(d->arena, size);
}

static void dec_free(void *data UNUSED, void *p UNUSED)
{
}

/* Unpacked bytes that may stay where they are, or a copy in the arena. */
static void *dec_keep(struct dec *d, const void *from, size_t size)
{
    return dec_in_scratch(d, from) ? arena_dup(d->arena, from, size) : (void *)from;
}

bool dec_bytes(struct dec *d, const ProtobufCBinaryData *b, uint32_t max, struct msg_bytes *ret)
{
    ret->data = "";
    ret->len = (uint32_t)b->len;
    if (b->len > max)
        return false;
    if (b->len)
        ret->data = dec_keep(d, b->data, b->len);
    return ret->data != NULL;
}

bool dec_name(struct dec *d, const ProtobufCBinaryData *b, struct msg_bytes *ret)
{
    if (b->len == 0 || b->len > MSG_NAME_MAX || memchr(b->data, 0, b->len) ||
        memchr(b->data, '/', b->len))
        return false;
    return dec_bytes(d, b, MSG_NAME_MAX, ret);
}

static bool dec_is_text(const ProtobufCBinaryData *b)
{
    for (size_t i = 0; i < b->len; i++) {
        if (b->data[i] < 0x20 || b->data[i] == 0x7f)
            return false;
    }
    return true;
}

bool dec_text(struct dec *d, const ProtobufCBinaryData *b, uint32_t max, struct msg_bytes *ret)
{
    return dec_bytes(d, b, max, ret) && dec_is_text(b);
}

bool dec_chars(const ProtobufCBinaryData *b, char *out, size_t cap)
{
    if (b->len >= cap || !dec_is_text(b))
        return false;
    if (b->len)
        memcpy(out, b->data, b->len);
    out[b->len] = '\0';
    return true;
}

bool dec_uuid(const ProtobufCBinaryData *b, struct uuid *ret)
{
    if (b->len != sizeof ret->b)
        return false;
    memcpy(ret->b, b->data, sizeof ret->b);
    return true;
}

bool dec_sub(struct dec *d, const struct codec *c, const void *pb, void *msg)
{
    return pb && c->dec(d, pb, msg);
}

void *dec_subs(struct dec *d, const struct codec *c, size_t n, const void *pbs, uint32_t max,
               uint32_t *ret_n, bool *ok)
{
    const void *const *pb = pbs;
    char *msgs;

    *ret_n = 0;
    if (n == 0 || !*ok)
        return NULL;
    msgs = n <= max ? arena_zalloc(d->arena, n * c->msg_size) : NULL;
    *ok = msgs != NULL;
    for (size_t i = 0; *ok && i < n; i++)
        *ok = dec_sub(d, c, pb[i], msgs + i * c->msg_size);
    *ret_n = (uint32_t)n;
    return msgs;
}

void *dec_array(struct dec *d, size_t n, const void *from, size_t size, uint32_t max,
                uint32_t *ret_n, bool *ok)
{
    void *to;

    *ret_n = 0;
    if (n == 0 || !*ok)
        return NULL;
    to = n <= max ? dec_keep(d, from, n * size) : NULL;
    *ok = to != NULL;
    *ret_n = (uint32_t)n;
    return to;
}

struct msg_bytes *dec_bytes_array(struct dec *d, size_t n, const ProtobufCBinaryData *from,
                                  uint32_t max, uint32_t max_len, uint32_t *ret_n, bool *ok)
{
    struct msg_bytes *to;

    *ret_n = 0;
    if (n == 0 || !*ok)
        return NULL;
    to = n <= max ? arena_zalloc(d->arena, n * sizeof *to) : NULL;
    *ok = to != NULL;
    for (size_t i = 0; *ok && i < n; i++)
        *ok = dec_text(d, &from[i], max_len, &to[i]);
    *ret_n = (uint32_t)n;
    return to;
}

/* The sender's fault, unless there was no memory. */
static int dec_failed(const struct arena *a)
{
    return a->starved ? -ENOMEM : -AIFS_EPROTO;
}

static int decode(const struct codec *c, const void *data, uint32_t len, struct arena *a,
                  void **ret_msg)
{
    struct dec d;
    ProtobufCAllocator alloc = {dec_alloc, dec_free, &d};
    ProtobufCMessage *pb;
    void *msg = arena_zalloc(a, c->msg_size);

    if (!msg)
        return dec_failed(a);
    if (c->pb->n_fields) {
        d.arena = a;
        d.used = 0;
        pb = protobuf_c_message_unpack(c->pb, &alloc, len, data);
        if (!pb || !c->dec(&d, pb, msg))
            return dec_failed(a);
    }
    *ret_msg = msg;
    return 0;
}

int codec_decode(unsigned op, bool reply, const void *data, uint32_t len, struct arena *a,
                 void **ret_msg)
{
    const struct codec *c = codec_find(op, reply);

    return c ? decode(c, data, len, a, ret_msg) : -AIFS_EPROTO;
}

/* ---- the map by itself ---- */

int codec_map_encode(const struct cluster_map *map, struct arena *a, const void **ret_data,
                     uint32_t *ret_len)
{
    void *mem;
    int rc = encode(&codec_map, map, 0, a, &mem, ret_len);

    if (rc == 0)
        *ret_data = mem;
    return rc;
}

int codec_map_decode(const void *data, uint32_t len, struct arena *a, struct cluster_map **ret_map)
{
    void *map;
    int rc = decode(&codec_map, data, len, a, &map);

    if (rc == 0)
        *ret_map = map;
    return rc;
}
