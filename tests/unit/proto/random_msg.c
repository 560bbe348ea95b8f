// SPDX-License-Identifier: Apache-2.0
/* See random_msg.h. */
#include "tests/unit/proto/random_msg.h"

#include <stdlib.h>
#include <string.h>

/* splitmix64 */
uint64_t rng_next(struct rng *g)
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t rng_below(struct rng *g, uint32_t n)
{
    return (uint32_t)(rng_next(g) % n);
}

/* Small and large values alike, so that every length of a varint occurs. */
static uint64_t value(struct rng *g)
{
    if (g->n_likes && rng_below(g, 4))
        return g->likes[rng_below(g, g->n_likes)];
    return rng_next(g) >> rng_below(g, 64);
}

static void *need(struct arena *a, size_t size)
{
    void *p = arena_zalloc(a, size);

    if (!p)
        abort();
    return p;
}

static bool ends(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n >= m && strcmp(s + n - m, tail) == 0;
}

static bool one_of(const char *s, const char *const *list)
{
    while (*list && strcmp(*list, s) != 0)
        list++;
    return *list != NULL;
}

static ProtobufCBinaryData random_bytes(const ProtobufCMessageDescriptor *d, const char *field,
                                        struct rng *g, struct arena *a)
{
    static const char *const uuids[] = {"uuid", "cluster", "node", "boot", "client", "fs", NULL};
    static const char *const names[] = {
        "aifs.NameReq", "aifs.BatchItem", "aifs.CreateReq", "aifs.RenameReq",
        "aifs.LinkReq", "aifs.XattrReq",  "aifs.RmtreeReq", NULL};
    static const char *const binary[] = {"data", "value", "offer", "after", "target", NULL};
    ProtobufCBinaryData b = {rng_below(g, 32), NULL};
    bool any = true;

    if (one_of(field, uuids))
        b.len = 16;
    else if (strcmp(field, "nonce") == 0 || strcmp(field, "proof") == 0)
        b.len = 32;
    else if (one_of(field, binary))
        b.len = g->n_fits && rng_below(g, 4) ? 0 : rng_below(g, 1500);
    else
        any = false;
    if (ends(field, "name") && one_of(d->name, names))
        b.len = 1 + rng_below(g, 255);
    b.data = need(a, b.len + 1);
    for (size_t i = 0; i < b.len; i++)
        b.data[i] = (uint8_t)(any ? rng_next(g) : '0' + rng_below(g, 70));
    if (g->n_names && ends(field, "name") && rng_below(g, 4)) {
        const char *name = g->names[rng_below(g, g->n_names)];

        b.len = strlen(name);
        b.data = need(a, b.len + 1);
        memcpy(b.data, name, b.len);
    }
    return b;
}

static uint32_t random_u32(const ProtobufCMessageDescriptor *d, const char *field, struct rng *g)
{
    if (ends(field, "_nsec"))
        return rng_below(g, 1000000000);
    if (strcmp(field, "lease") == 0 || strcmp(field, "keep") == 0)
        return rng_below(g, 3);
    if (strcmp(d->name, "aifs.Range") == 0)
        return rng_below(g, 1u << 20);
    return (uint32_t)value(g);
}

static void *random_pb(const ProtobufCMessageDescriptor *d, struct rng *g, uint32_t n_items,
                       struct arena *a);

static size_t width(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return 4;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 8;
    }
}

/* One of those that make sense, most of the time. */
static bool fitting(const ProtobufCMessageDescriptor *d, const char *field, struct rng *g,
                    uint64_t *ret_number)
{
    uint32_t n = 0;

    if (!g->n_fits || rng_below(g, 8) == 0)
        return false;
    for (unsigned i = 0; i < g->n_fits; i++) {
        const struct rng_fit *f = &g->fits[i];

        if (strcmp(f->field, field) == 0 && (!f->msg || strcmp(f->msg, d->name) == 0) &&
            rng_below(g, ++n) == 0)
            *ret_number = f->number;
    }
    return n > 0;
}

static void scalar(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f, void *at,
                   struct rng *g, uint32_t n_items, struct arena *a)
{
    uint64_t number = 0;

    if (f->type != PROTOBUF_C_TYPE_BYTES && f->type != PROTOBUF_C_TYPE_MESSAGE &&
        fitting(d, f->name, g, &number)) {
        if (width(f) == sizeof(uint32_t))
            *(uint32_t *)at = (uint32_t)number;
        else
            *(uint64_t *)at = number;
        return;
    }
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        *(uint32_t *)at = random_u32(d, f->name, g);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = (protobuf_c_boolean)rng_below(g, 2);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)at = random_bytes(d, f->name, g, a);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(void **)at = random_pb(f->descriptor, g, n_items, a);
        break;
    default: /* all others are 64 bits wide */
        *(uint64_t *)at = value(g);
    }
}

/* What the fields of one message have to do with each other. */
static void mend(const ProtobufCMessageDescriptor *d, void *pb, struct rng *g)
{
    uint32_t *u = (uint32_t *)((char *)pb + d->fields[0].offset);

    if (strcmp(d->name, "aifs.Layout") ==
        0) { /* pool, copies, table_len, chunk_bytes, stripe_count, start, generation */
        u[1] = 1 + rng_below(g, MSG_COPIES_MAX);
        u[2] = 1 + rng_below(g, 60000);
        u[3] = 1u << (16 + rng_below(g, 11));
        u[4] = 1 + rng_below(g, u[2]);
        u[5] = rng_below(g, u[2]);
    }
    if (strcmp(d->name, "aifs.Lock") == 0) { /* kind, type; start, end */
        uint64_t *range = (uint64_t *)(void *)((char *)pb + d->fields[2].offset);

        u[0] = rng_below(g, 2);
        u[1] = rng_below(g, 3);
        range[0] >>= 1 + rng_below(g, 63);
        range[1] = range[0] + ((uint64_t)INT64_MAX - range[0]) / (1 + rng_below(g, 1000));
    }
    if (strcmp(d->name, "aifs.InodeRep") == 0) {
        const ProtobufCFieldDescriptor *has =
            protobuf_c_message_descriptor_get_field_by_name(d, "has_data");
        const ProtobufCFieldDescriptor *data =
            protobuf_c_message_descriptor_get_field_by_name(d, "data");

        if (!*(protobuf_c_boolean *)((char *)pb + has->offset))
            ((ProtobufCBinaryData *)(void *)((char *)pb + data->offset))->len = 0;
    }
    if (strcmp(d->name, "aifs.MapRep") == 0)
        *(protobuf_c_boolean *)((char *)pb + d->fields[0].offset) = 1;
}

static bool absent(const ProtobufCMessageDescriptor *d, const char *field, struct rng *g)
{
    if (strcmp(d->name, "aifs.MapRep") == 0 && strcmp(field, "map") == 0)
        return true; /* maps have a test of their own */
    return (strcmp(field, "layout") == 0 || strcmp(field, "stripe") == 0 ||
            strcmp(field, "since") == 0) &&
           rng_below(g, 2);
}

static void *random_pb(const ProtobufCMessageDescriptor *d, struct rng *g, uint32_t n_items,
                       struct arena *a)
{
    char *pb = need(a, d->sizeof_message);

    protobuf_c_message_init(d, (ProtobufCMessage *)(void *)pb);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        size_t *n = (size_t *)(void *)(pb + f->quantifier_offset);
        char *items;

        if (absent(d, f->name, g))
            continue;
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            scalar(d, f, pb + f->offset, g, n_items, a);
            continue;
        }
        *n = rng_below(g, (strcmp(f->name, "addresses") == 0 ? 4 : n_items) + 1);
        items = *n ? need(a, *n * width(f)) : NULL;
        *(void **)(void *)(pb + f->offset) = items;
        for (size_t k = 0; k < *n; k++)
            scalar(d, f, items + k * width(f), g, n_items / 4, a);
    }
    if (d->n_fields)
        mend(d, pb, g);
    return pb;
}

const void *random_msg(const struct codec *c, struct rng *g, uint32_t n_items, struct arena *a,
                       uint32_t *ret_len)
{
    ProtobufCMessage *pb = random_pb(c->pb, g, n_items, a);
    uint8_t *out;

    *ret_len = (uint32_t)protobuf_c_message_get_packed_size(pb);
    out = need(a, *ret_len + 1);
    protobuf_c_message_pack(pb, out);
    return out;
}
