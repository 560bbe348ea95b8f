/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and proofs, on the SHA-256 of OpenSSL's libcrypto.
 *
 * A key file holds one line "aifs-key-1 <cluster uuid> <role> <64 hex digits>" and must be a
 * regular file with no access for group and others. The server key is the master: the keys of the
 * other roles are derived from it (HMAC-SHA-256 of the role's name), so a server can verify any
 * role, and a client that holds a client key can do no more than a client. Any thread.
 */
#ifndef AIFS_COMMON_CRYPTO_CRYPTO_H
#define AIFS_COMMON_CRYPTO_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "common/base/ids.h"

#define CRYPTO_KEY_BYTES 32
#define CRYPTO_MAC_BYTES 32

enum crypto_role { CRYPTO_ROLE_SERVER, CRYPTO_ROLE_ADMIN, CRYPTO_ROLE_CLIENT };

struct crypto_key {
    struct uuid cluster;
    enum crypto_role role;
    uint8_t secret[CRYPTO_KEY_BYTES];
};

/* err gets a sentence that names the file and what is wrong (missing, permissions, syntax). */
int crypto_key_load(const char *path, struct crypto_key *ret_key, char *err,
                    size_t err_len) MUST_USE;
int crypto_key_save(const char *path,
                    const struct crypto_key *key) MUST_USE; /* 0600, O_EXCL, synced */
int crypto_key_create(struct crypto_key *ret_key) MUST_USE; /* new cluster, role server */
/* The key of role, from a server key; or the key itself when its role is the one asked for; else
 * -AIFS_EROLE. */
int crypto_key_derive(const struct crypto_key *key, enum crypto_role role,
                      struct crypto_key *ret_key) MUST_USE;
/* Tells keys apart without giving anything of them away: 16 hex digits and a 0. */
#define CRYPTO_FINGERPRINT_BYTES 17
void crypto_key_fingerprint(const struct crypto_key *key, char ret_text[CRYPTO_FINGERPRINT_BYTES]);
const char *crypto_role_name(enum crypto_role role);
int crypto_role_parse(const char *name, enum crypto_role *ret_role) MUST_USE; /* -EINVAL */

int crypto_random(void *out, size_t len) MUST_USE;
void crypto_hmac(const uint8_t key[CRYPTO_KEY_BYTES], const void *data, size_t len,
                 uint8_t mac[CRYPTO_MAC_BYTES]);
int crypto_equal(const void *a, const void *b, size_t len); /* constant time; 1 if equal */

#endif
