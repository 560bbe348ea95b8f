// SPDX-License-Identifier: Apache-2.0
/*
 * Random numbers, HMAC-SHA-256 (RFC 2104, RFC 4231) and derived keys, all by libcrypto. Randomness
 * can fail (-EIO) and is checked; an HMAC fails only when the library is broken or memory is gone,
 * and then the process must not go on with an unset proof.
 */
#include "common/crypto/crypto.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
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

/* libcrypto would take itself down with exit(3), while a thread of ours connects again or a handler
 * that comes later asks for a file. */
static void stay(void)
{
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static void begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, stay);
}

int crypto_random(void *out, size_t len)
{
    begin();
    if (len > INT_MAX)
        return -EINVAL;
    return RAND_bytes(out, (int)len) == 1 ? 0 : -EIO;
}

void crypto_hmac(const uint8_t key[CRYPTO_KEY_BYTES], const void *data, size_t len,
                 uint8_t mac[CRYPTO_MAC_BYTES])
{
    unsigned int mac_len = 0;
    const unsigned char *made;

    begin();
    made = HMAC(EVP_sha256(), key, CRYPTO_KEY_BYTES, data, len, mac, &mac_len);
    ASSERT(made && mac_len == CRYPTO_MAC_BYTES);
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
