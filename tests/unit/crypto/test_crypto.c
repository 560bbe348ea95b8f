// SPDX-License-Identifier: Apache-2.0
/* HMAC-SHA-256 against RFC 4231, comparison, randomness, derived keys. */
#include "common/crypto/crypto.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "tests/support/suite.h"

static void unhex(const char *hex, uint8_t *out)
{
    for (unsigned byte; *hex; hex += 2) {
        ck_assert_int_eq(sscanf(hex, "%2x", &byte), 1);
        *out++ = (uint8_t)byte;
    }
}

/* A key shorter than ours is the same as one filled up with zeros (RFC 2104). */
static void check_hmac(const void *key, size_t key_len, const void *data, size_t len,
                       const char *expected_hex)
{
    uint8_t padded[CRYPTO_KEY_BYTES] = {0}, mac[CRYPTO_MAC_BYTES], expected[CRYPTO_MAC_BYTES] = {0};

    memcpy(padded, key, key_len);
    unhex(expected_hex, expected);
    crypto_hmac(padded, data, len, mac);
    ck_assert_mem_eq(mac, expected, strlen(expected_hex) / 2);
}

START_TEST(rfc_4231_vectors_of_keys_up_to_32_bytes)
{
    uint8_t key[32], data[50];

    memset(key, 0x0b, 20);
    check_hmac(key, 20, "Hi There", 8,
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_hmac("Jefe", 4, "what do ya want for nothing?", 28,
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 20);
    memset(data, 0xdd, 50);
    check_hmac(key, 20, data, 50,
               "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (uint8_t i = 0; i < 25; i++)
        key[i] = (uint8_t)(i + 1);
    memset(data, 0xcd, 50);
    check_hmac(key, 25, data, 50,
               "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(key, 0x0c, 20);
    check_hmac(key, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b");
}
END_TEST

/* Cases 6 and 7 use a key of 131 times 0xaa, which HMAC replaces by its SHA-256. */
START_TEST(rfc_4231_vectors_of_the_long_key)
{
    static const char longer[] = "This is a test using a larger than block-size key and a larger "
                                 "than block-size data. The key "
                                 "needs to be hashed before being used by the HMAC algorithm.";
    uint8_t key[32];

    unhex("45ad4b37c6e2fc0a2cfcc1b5da524132ec707615c2cae1dbbc43c97aa521db81", key);
    check_hmac(key, 32, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    check_hmac(key, 32, longer, strlen(longer),
               "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}
END_TEST

/* Up to five blocks, so that each way to fill the last one of either hash is met. */
START_TEST(it_is_what_another_implementation_makes)
{
    uint8_t key[CRYPTO_KEY_BYTES], data[5 * 64], mac[CRYPTO_MAC_BYTES], other[EVP_MAX_MD_SIZE];
    unsigned other_len;

    for (size_t len = 0; len <= sizeof data; len++) {
        ck_assert_int_eq(crypto_random(key, sizeof key), 0);
        ck_assert_int_eq(crypto_random(data, sizeof data), 0);
        crypto_hmac(key, data, len, mac);
        ck_assert_ptr_nonnull(HMAC(EVP_sha256(), key, sizeof key, data, len, other, &other_len));
        ck_assert_uint_eq(other_len, sizeof mac);
        ck_assert_mem_eq(mac, other, sizeof mac);
    }
}
END_TEST

START_TEST(comparison_sees_every_byte)
{
    uint8_t a[32] = {0}, b[32] = {0};

    ck_assert_int_eq(crypto_equal(a, b, 32), 1);
    ck_assert_int_eq(crypto_equal(a, b, 0), 1);
    for (int i = 0; i < 32; i++) {
        b[i] = 0x80;
        ck_assert_int_eq(crypto_equal(a, b, 32), 0);
        b[i] = 0;
    }
}
END_TEST

START_TEST(random_bytes_differ)
{
    uint8_t a[32] = {0}, b[32] = {0};

    ck_assert_int_eq(crypto_random(a, sizeof a), 0);
    ck_assert_int_eq(crypto_random(b, sizeof b), 0);
    ck_assert_mem_ne(a, b, 32);
    ck_assert_int_lt(crypto_random(a, (size_t)INT_MAX + 1), 0);
}
END_TEST

START_TEST(a_server_key_gives_the_key_of_every_role)
{
    struct crypto_key server, admin, client, again;

    ck_assert_int_eq(crypto_key_create(&server), 0);
    ck_assert_int_eq(server.role, CRYPTO_ROLE_SERVER);
    ck_assert(!uuid_is_zero(&server.cluster));
    ck_assert_int_eq(crypto_key_derive(&server, CRYPTO_ROLE_ADMIN, &admin), 0);
    ck_assert_int_eq(crypto_key_derive(&server, CRYPTO_ROLE_CLIENT, &client), 0);
    ck_assert_int_eq(crypto_key_derive(&server, CRYPTO_ROLE_CLIENT, &again), 0);
    ck_assert_int_eq(client.role, CRYPTO_ROLE_CLIENT);
    ck_assert(uuid_equal(&client.cluster, &server.cluster));
    ck_assert_mem_eq(client.secret, again.secret, CRYPTO_KEY_BYTES);
    ck_assert_mem_ne(client.secret, admin.secret, CRYPTO_KEY_BYTES);
    ck_assert_mem_ne(client.secret, server.secret, CRYPTO_KEY_BYTES);
}
END_TEST

START_TEST(no_other_key_gives_more_than_itself)
{
    struct crypto_key server, admin, client, out = {.role = CRYPTO_ROLE_CLIENT};

    ck_assert_int_eq(crypto_key_create(&server), 0);
    ck_assert_int_eq(crypto_key_derive(&server, CRYPTO_ROLE_ADMIN, &admin), 0);
    ck_assert_int_eq(crypto_key_derive(&server, CRYPTO_ROLE_CLIENT, &client), 0);
    ck_assert_int_eq(crypto_key_derive(&client, CRYPTO_ROLE_CLIENT, &out), 0);
    ck_assert_mem_eq(&out, &client, sizeof out);
    ck_assert_int_eq(crypto_key_derive(&client, CRYPTO_ROLE_ADMIN, &out), -AIFS_EROLE);
    ck_assert_int_eq(crypto_key_derive(&client, CRYPTO_ROLE_SERVER, &out), -AIFS_EROLE);
    ck_assert_int_eq(crypto_key_derive(&admin, CRYPTO_ROLE_CLIENT, &out), -AIFS_EROLE);
    ck_assert_int_eq(crypto_key_derive(&server, (enum crypto_role)9, &out), -AIFS_EROLE);
    ck_assert_mem_eq(&out, &client, sizeof out);
}
END_TEST

START_TEST(a_fingerprint_is_that_of_one_key_and_shows_nothing_of_it)
{
    struct crypto_key a, b;
    char one[CRYPTO_FINGERPRINT_BYTES], two[CRYPTO_FINGERPRINT_BYTES], hex[17];

    ck_assert_int_eq(crypto_key_create(&a), 0);
    b = a;
    crypto_key_fingerprint(&a, one);
    crypto_key_fingerprint(&b, two);
    ck_assert_str_eq(one, two);
    ck_assert_uint_eq(strspn(one, "0123456789abcdef"), CRYPTO_FINGERPRINT_BYTES - 1);
    for (unsigned i = 0; i < 8; i++)
        snprintf(hex + 2 * i, 3, "%02x", a.secret[i]);
    ck_assert_str_ne(one, hex);
    b.secret[CRYPTO_KEY_BYTES - 1] ^= 1;
    crypto_key_fingerprint(&b, two);
    ck_assert_str_ne(one, two);
}
END_TEST

START_TEST(role_names_go_both_ways)
{
    enum crypto_role r;

    for (int i = CRYPTO_ROLE_SERVER; i <= CRYPTO_ROLE_CLIENT; i++) {
        ck_assert_int_eq(crypto_role_parse(crypto_role_name((enum crypto_role)i), &r), 0);
        ck_assert_int_eq((int)r, i);
    }
    ck_assert_int_lt(crypto_role_parse("root", &r), 0);
    ck_assert_str_eq(crypto_role_name((enum crypto_role)9), "?");
}
END_TEST

/* Of exit(3), and begun before the library was: it runs after the library's own. */
static void prove_once_more(void)
{
    uint8_t mac[CRYPTO_MAC_BYTES], key[CRYPTO_KEY_BYTES] = {1};

    crypto_hmac(key, "x", 1, mac);
    _exit(crypto_random(mac, sizeof mac) == 0 ? 0 : 2);
}

/* Of a process that uses proofs, and ends. */
static int ends_with_proofs(bool begins_the_library)
{
    uint8_t mac[CRYPTO_MAC_BYTES], key[CRYPTO_KEY_BYTES] = {1};
    pid_t pid = fork();
    int status;

    ck_assert_int_ge(pid, 0);
    if (!pid) {
        if (atexit(prove_once_more) ||
            (begins_the_library && !OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL)))
            _exit(1);
        crypto_hmac(key, "x", 1, mac);
        if (crypto_random(mac, sizeof mac))
            _exit(1);
        exit(1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(proofs_are_made_until_the_process_is_gone)
{
    ck_assert_int_eq(ends_with_proofs(false), 0);
}
END_TEST

/* Whoever begins libcrypto first has it end itself with exit(3): then what comes later has to do
 * without. */
START_TEST(proofs_are_made_when_the_program_has_begun_the_library_itself)
{
    ck_assert_int_eq(ends_with_proofs(true), 0);
}
END_TEST

SUITE_MAIN("crypto", NULL, NULL, rfc_4231_vectors_of_keys_up_to_32_bytes,
           rfc_4231_vectors_of_the_long_key, it_is_what_another_implementation_makes,
           comparison_sees_every_byte, random_bytes_differ,
           a_server_key_gives_the_key_of_every_role, no_other_key_gives_more_than_itself,
           a_fingerprint_is_that_of_one_key_and_shows_nothing_of_it, role_names_go_both_ways,
           proofs_are_made_until_the_process_is_gone,
           proofs_are_made_when_the_program_has_begun_the_library_itself)
