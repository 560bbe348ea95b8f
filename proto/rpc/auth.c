// SPDX-License-Identifier: Apache-2.0
/*
 * Proofs of hello: HMAC-SHA-256, under the key of the connecting end's role, over everything both
 * ends said, byte by byte as in docs/wire.md. Both nonces are in it, so that no proof is good for
 * another connection; the label tells the two directions apart, so that none can be reflected.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bytes.h"
#include "proto/rpc/rpc_int.h"

#define AUTH_LABEL_BYTES 16
#define AUTH_HELLO_BYTES (3 * 16 + 3 * 4 + 8 + RPC_NONCE_BYTES + 64 + 32)

static uint8_t *put(uint8_t *at, const void *data, size_t len)
{
    memcpy(at, data, len);
    return at + len;
}

static uint8_t *put_text(uint8_t *at, const char *text, size_t width)
{
    size_t len = strnlen(text, width);

    memset(at, 0, width);
    memcpy(at, text, len);
    return at + width;
}

static uint8_t *put_hello(uint8_t *at, const struct auth_hello *h)
{
    at = put(at, h->cluster.b, 16);
    at = put(at, h->id.node.b, 16);
    at = put(at, h->id.boot.b, 16);
    le32_store(at, (uint32_t)h->id.role);
    le32_store(at + 4, h->wire_oldest);
    le32_store(at + 8, h->wire_newest);
    le64_store(at + 12, h->features);
    at = put(at + 20, h->nonce, RPC_NONCE_BYTES);
    at = put_text(at, h->id.name, 64);
    return put_text(at, h->id.version, 32);
}

void auth_proof(const struct crypto_key *key, enum auth_side side, const struct auth_hello *asked,
                const struct auth_hello *answered, uint8_t proof[CRYPTO_MAC_BYTES])
{
    static const char labels[2][AUTH_LABEL_BYTES + 1] = {"aifs-1-server---", "aifs-1-client---"};
    uint8_t said[AUTH_LABEL_BYTES + 2 * AUTH_HELLO_BYTES], *at = said;

    at = put(at, labels[side], AUTH_LABEL_BYTES);
    at = put_hello(at, asked);
    at = put_hello(at, answered);
    ASSERT(at == said + sizeof said);
    crypto_hmac(key->secret, said, sizeof said, proof);
}
