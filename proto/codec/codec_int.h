/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one message is converted. Each message is one list of fields, from which CODEC_DEFINE() makes
 * both directions, so that they can not disagree:
 *
 *   #define OPEN_REQ(F) F(sub, cred, cred) F(num, ino) F(num, flags)
 *   CODEC_DEFINE(open_req, struct msg_open_req, Aifs__OpenReq, aifs__open_req, OPEN_REQ)
 *
 * Kinds of fields: num (integers of the same type), flag, uuid, bytes (max), name (a directory
 * entry), text (max; no control characters), chars (a char array with NUL), time, lease, u32s and
 * u64s (arrays, max), sub (a message that must be there), opt (one that need not be: has_x), subs
 * (array of messages, max).
 *
 * Memory: generated structs exist only within one call. They come from a scratch area on the stack,
 * and from the arena when that is full; what a decoded message points to is always in the arena.
 */
#ifndef AIFS_PROTO_CODEC_INT_H
#define AIFS_PROTO_CODEC_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "common/base/compiler.h"
#include "common/base/crc.h"
#include "common/base/mem.h"
#include "proto/msg.h"

#define CODEC_ENC_SCRATCH 2048u
#define CODEC_DEC_SCRATCH 4096u
#define CODEC_TEXT_MAX    256u /* host names, versions, aliases */
#define CODEC_CRCS_MAX    (MSG_BULK_MAX / CRC_BLOCK_BYTES + 2 * MSG_RANGES_MAX)

struct enc {
    struct arena *arena;
    size_t used;
    unsigned char scratch[CODEC_ENC_SCRATCH] __attribute__((aligned(16)));
};

struct dec {
    struct arena *arena;
    size_t used;
    unsigned char scratch[CODEC_DEC_SCRATCH] __attribute__((aligned(16)));
};

struct codec {
    const ProtobufCMessageDescriptor *pb;
    size_t msg_size;
    bool (*enc)(struct enc *e, const void *msg, void *pb);
    bool (*dec)(struct dec *d, const void *pb, void *msg);
};

/* The codec of an operation's request or reply; NULL for an unknown one. */
const struct codec *codec_find(unsigned op, bool reply);

void *enc_sub(struct enc *e, const struct codec *c, const void *msg, bool *ok);
void *enc_subs(struct enc *e, const struct codec *c, uint32_t n, const void *msgs, bool *ok);
void enc_bytes_array(struct enc *e, uint32_t n, const struct msg_bytes *from,
                     ProtobufCBinaryData **ret, bool *ok);
ProtobufCBinaryData enc_chars(const char *s, size_t cap);

bool dec_sub(struct dec *d, const struct codec *c, const void *pb, void *msg);
/* NULL with n = 0; *ok becomes false when there are more than max. */
void *dec_subs(struct dec *d, const struct codec *c, size_t n, const void *pbs, uint32_t max,
               uint32_t *ret_n, bool *ok);
void *dec_array(struct dec *d, size_t n, const void *from, size_t size, uint32_t max,
                uint32_t *ret_n, bool *ok);
struct msg_bytes *dec_bytes_array(struct dec *d, size_t n, const ProtobufCBinaryData *from,
                                  uint32_t max, uint32_t max_len, uint32_t *ret_n, bool *ok);
bool dec_bytes(struct dec *d, const ProtobufCBinaryData *b, uint32_t max, struct msg_bytes *ret);
bool dec_name(struct dec *d, const ProtobufCBinaryData *b, struct msg_bytes *ret);
bool dec_text(struct dec *d, const ProtobufCBinaryData *b, uint32_t max, struct msg_bytes *ret);
bool dec_chars(const ProtobufCBinaryData *b, char *out, size_t cap);
bool dec_uuid(const ProtobufCBinaryData *b, struct uuid *ret);

/* clang-format off */
#define ENC(kind, ...) ENC_##kind(__VA_ARGS__)
#define ENC_num(f)          p->f = m->f;
#define ENC_flag(f)         p->f = m->f;
#define ENC_uuid(f)         p->f = (ProtobufCBinaryData){sizeof m->f.b, (uint8_t *)m->f.b};
#define ENC_bytes(f, max)   p->f = (ProtobufCBinaryData){m->f.len, (uint8_t *)m->f.data};
#define ENC_name(f)         ENC_bytes(f, 0)
#define ENC_text(f, max)    ENC_bytes(f, 0)
#define ENC_chars(f)        p->f = enc_chars(m->f, sizeof m->f);
#define ENC_time(f)         p->f##_sec = m->f.sec; p->f##_nsec = m->f.nsec;
#define ENC_lease(f)        p->f = (uint32_t)m->f;
#define ENC_u32s(f, max)    p->n_##f = m->n_##f; p->f = (uint32_t *)m->f;
#define ENC_u64s(f, max)    p->n_##f = m->n_##f; p->f = (uint64_t *)m->f;
#define ENC_sub(type, f)    p->f = enc_sub(e, &codec_##type, &m->f, &ok);
#define ENC_opt(type, f)    if (m->has_##f) { ENC_sub(type, f) }
#define ENC_subs(type, f, max) p->n_##f = m->n_##f; p->f = enc_subs(e, &codec_##type, m->n_##f, m->f, &ok);
#define ENC_byteses(f, max, max_len) p->n_##f = m->n_##f; enc_bytes_array(e, m->n_##f, m->f, &p->f, &ok);

#define DEC(kind, ...) DEC_##kind(__VA_ARGS__)
#define DEC_num(f)          m->f = p->f;
#define DEC_flag(f)         m->f = p->f != 0;
#define DEC_uuid(f)         ok = ok && dec_uuid(&p->f, &m->f);
#define DEC_bytes(f, max)   ok = ok && dec_bytes(d, &p->f, max, &m->f);
#define DEC_name(f)         ok = ok && dec_name(d, &p->f, &m->f);
#define DEC_text(f, max)    ok = ok && dec_text(d, &p->f, max, &m->f);
#define DEC_chars(f)        ok = ok && dec_chars(&p->f, m->f, sizeof m->f);
#define DEC_time(f)         m->f.sec = p->f##_sec; m->f.nsec = p->f##_nsec; ok = ok && p->f##_nsec < 1000000000u;
#define DEC_lease(f)        m->f = (enum msg_lease)p->f; ok = ok && p->f <= MSG_LEASE_WRITE;
#define DEC_u32s(f, max)    m->f = dec_array(d, p->n_##f, p->f, sizeof *p->f, max, &m->n_##f, &ok);
#define DEC_u64s(f, max)    DEC_u32s(f, max)
#define DEC_sub(type, f)    ok = ok && dec_sub(d, &codec_##type, p->f, &m->f);
#define DEC_opt(type, f)    m->has_##f = p->f != NULL; if (p->f) { DEC_sub(type, f) }
#define DEC_subs(type, f, max) m->f = dec_subs(d, &codec_##type, p->n_##f, p->f, max, &m->n_##f, &ok);
#define DEC_byteses(f, max, max_len) m->f = dec_bytes_array(d, p->n_##f, p->f, max, max_len, &m->n_##f, &ok);
/* clang-format on */

#define CODEC_DEFINE(name, Struct, Pb, pb_name, FIELDS)                                            \
    static bool name##_enc(struct enc *e UNUSED, const void *msg, void *pb)                        \
    {                                                                                              \
        const Struct *m UNUSED = msg;                                                              \
        Pb *p UNUSED = pb;                                                                         \
        bool ok = true;                                                                            \
                                                                                                   \
        FIELDS(ENC)                                                                                \
        return ok;                                                                                 \
    }                                                                                              \
    static bool name##_dec(struct dec *d UNUSED, const void *pb, void *msg)                        \
    {                                                                                              \
        const Pb *p UNUSED = pb;                                                                   \
        Struct *m UNUSED = msg;                                                                    \
        bool ok = true;                                                                            \
                                                                                                   \
        FIELDS(DEC)                                                                                \
        return ok;                                                                                 \
    }                                                                                              \
    const struct codec codec_##name = {&pb_name##__descriptor, sizeof(Struct), name##_enc,         \
                                       name##_dec};

#define CODEC_MSG(name, Pb, FIELDS)                                                                \
    CODEC_DEFINE(name, struct msg_##name, Aifs__##Pb, aifs__##name, FIELDS)

/* Those that are part of others. */
extern const struct codec codec_cred, codec_attr, codec_layout, codec_target_stat, codec_fence,
    codec_map;

#endif
