// SPDX-License-Identifier: Apache-2.0
/*
 * Random numbers of the kernel's, HMAC-SHA-256 (RFC 2104, RFC 4231) and derived keys. Drawing a
 * number can fail (-EIO) and is checked; an HMAC cannot.
 *
 * Of libcrypto only what keeps nothing in the library is used: its SHA-256 proper. All else ends
 * with exit(3) if the program began the library before we could object, while a thread of ours
 * connects again or a handler that comes later asks for a file; and it takes 2 ms to begin
 * (docs/adr/0021-hmac-from-a-hash-without-state.md).
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* what replaces it there keeps tables */
#include "common/crypto/crypto.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/err.h"

static const char *const role_names[] = {[CRYPTO_ROLE_SERVER] = "server",
                                         [CRYPTO_ROLE_ADMIN] = "admin",
                                         [CRYPTO_ROLE_CLIENT] = "client"};

void crypto_key_fingerprint(const struct crypto_key *key, char ret_text[CRYPTO_FINGERPRINT_BYTES])
{
    static const char label[] = "aifs-key-fingerprint";
    uint8_t mac[CRYPTO_MAC_BYTES];

    crypto_hmac(key->secret, label, sizeof label - 1, mac);
    for (unsigned i = 0; i < (CRYPTO_FINGERPRINT_BYTES - 1) / 2; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", mac[i]);
}

const char *crypto_role_name(enum crypto_role role)
{
    return (size_t)role < ARRAY_LEN(role_names) ? role_names[role] : "?";
}

int crypto_role_parse(const char *name, enum crypto_role *ret_role)
{
    size_t i;

    for (i = 0; i < ARRAY_LEN(role_names); i++) {
        if (strcmp(name, role_names[i]) == 0) {
            *ret_role = (enum crypto_role)i;
            return 0;
        }
    }
    return -EINVAL;
}

int crypto_random(void *out, size_t len)
{
    if (len > INT_MAX)
        return -EINVAL;
    for (size_t got = 0; got < len;) {
        ssize_t n = getrandom((uint8_t *)out + got, len - got, 0);

        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return -EIO;
    }
    return 0;
}

/* The hash of the key, in each byte of which pad is mixed, and of what follows it. */
static void padded_hash(const uint8_t key[CRYPTO_KEY_BYTES], uint8_t pad, const void *data,
                        size_t len, uint8_t out[CRYPTO_MAC_BYTES])
{
    uint8_t block[SHA256_CBLOCK];
    SHA256_CTX sha;

    static_assert(CRYPTO_KEY_BYTES <= SHA256_CBLOCK, "the key as it is");
    static_assert(CRYPTO_MAC_BYTES == SHA256_DIGEST_LENGTH, "the whole hash");
    memset(block, pad, sizeof block);
    for (unsigned i = 0; i < CRYPTO_KEY_BYTES; i++)
        block[i] ^= key[i];
    SHA256_Init(&sha);
    SHA256_Update(&sha, block, sizeof block);
    SHA256_Update(&sha, data, len);
    SHA256_Final(out, &sha);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(&sha, sizeof sha);
}

void crypto_hmac(const uint8_t key[CRYPTO_KEY_BYTES], const void *data, size_t len,
                 uint8_t mac[CRYPTO_MAC_BYTES])
{
    uint8_t inner[CRYPTO_MAC_BYTES];

    padded_hash(key, 0x36, data, len, inner);
    padded_hash(key, 0x5c, inner, sizeof inner, mac);
    OPENSSL_cleanse(inner, sizeof inner);
}

int crypto_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

int crypto_key_create(struct crypto_key *ret_key)
{
    struct crypto_key key = {.role = CRYPTO_ROLE_SERVER};
    int rc = uuid_random(&key.cluster);

    if (!rc)
        rc = crypto_random(key.secret, sizeof key.secret);
    if (!rc)
        *ret_key = key;
    OPENSSL_cleanse(&key, sizeof key);
    return rc;
}

int crypto_key_derive(const struct crypto_key *key, enum crypto_role role,
                      struct crypto_key *ret_key)
{
    struct crypto_key derived = *key;

    if (role != key->role) {
        if (key->role != CRYPTO_ROLE_SERVER || (size_t)role >= ARRAY_LEN(role_names))
            return -AIFS_EROLE;
        derived.role = role;
        crypto_hmac(key->secret, role_names[role], strlen(role_names[role]), derived.secret);
    }
    *ret_key = derived;
    OPENSSL_cleanse(&derived, sizeof derived);
    return 0;
}
