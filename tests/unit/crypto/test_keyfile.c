// SPDX-License-Identifier: Apache-2.0
/* Key files: what is written can be read, what is wrong is named. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "common/base/err.h"
#include "common/crypto/crypto.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

#define UUID   "00112233-4455-6677-8899-aabbccddeeff"
#define SECRET "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static struct tmp tmp;
static struct crypto_key key;
static char err[512];

static void setup(void)
{
    tmp_make(&tmp);
}

static void teardown(void)
{
    tmp_remove(&tmp);
}

START_TEST(a_line_is_read_with_and_without_newline)
{
    static const char *const lines[] = {"aifs-key-1 " UUID " admin " SECRET,
                                        "aifs-key-1 " UUID " admin " SECRET "\n"};
    char text[UUID_TEXT_BYTES];

    for (int i = 0; i < 2; i++) {
        memset(&key, 0, sizeof key);
        ck_assert_int_eq(crypto_key_load(tmp_write(&tmp, "key", lines[i]), &key, err, sizeof err),
                         0);
        uuid_format(&key.cluster, text);
        ck_assert_str_eq(text, UUID);
        ck_assert_int_eq(key.role, CRYPTO_ROLE_ADMIN);
        for (unsigned b = 0; b < CRYPTO_KEY_BYTES; b++)
            ck_assert_uint_eq(key.secret[b], b);
    }
}
END_TEST

START_TEST(what_is_saved_is_loaded_and_private)
{
    struct crypto_key made, loaded;
    struct stat st;
    const char *path = tmp_path(&tmp, "key");

    umask(0);
    ck_assert_int_eq(crypto_key_create(&made), 0);
    ck_assert_int_eq(crypto_key_save(path, &made), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(crypto_key_load(path, &loaded, err, sizeof err), 0);
    ck_assert_mem_eq(&loaded, &made, sizeof made);
}
END_TEST

START_TEST(saving_never_overwrites)
{
    ck_assert_int_eq(crypto_key_create(&key), 0);
    ck_assert_int_eq(crypto_key_save(tmp_write(&tmp, "key", "precious"), &key), -EEXIST);
    ck_assert_int_eq(crypto_key_save(tmp_path(&tmp, "no/dir"), &key), -ENOENT);
}
END_TEST

START_TEST(a_key_that_cannot_be_written_whole_leaves_no_file)
{
    struct rlimit limit = {16, 16};

    ck_assert_int_eq(crypto_key_create(&key), 0);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(crypto_key_save(tmp_path(&tmp, "key"), &key), -EFBIG);
    ck_assert_int_eq(access(tmp_path(&tmp, "key"), F_OK), -1);
}
END_TEST

START_TEST(a_file_others_can_open_is_refused_with_the_remedy)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0601, 0777};
    const char line[] = "aifs-key-1 " UUID " client " SECRET "\n";

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        const char *path = tmp_write_bytes(&tmp, "key", line, sizeof line - 1, modes[i]);

        ck_assert_int_eq(crypto_key_load(path, &key, err, sizeof err), -AIFS_ECONFIG);
        ck_assert_ptr_nonnull(strstr(err, path));
        ck_assert_ptr_nonnull(strstr(err, "run: chmod 600"));
    }
}
END_TEST

START_TEST(what_is_no_key_is_not_told_to_become_private)
{
    const char text[] = "root:x:0:0:root:/root:/bin/bash\n";
    const char *path = tmp_write_bytes(&tmp, "passwd", text, sizeof text - 1, 0644);

    ck_assert_int_eq(crypto_key_load(path, &key, err, sizeof err), -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, "passwd: does not start with \"aifs-key-1\""));
    ck_assert_ptr_null(strstr(err, "chmod"));
}
END_TEST

START_TEST(what_is_no_file_is_refused_without_hanging)
{
    ck_assert_int_eq(crypto_key_load(tmp_path(&tmp, "absent"), &key, err, sizeof err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err, "absent: No such file"));
    ck_assert_int_eq(crypto_key_load(tmp.dir, &key, err, sizeof err), -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, "not a regular file"));
    ck_assert_int_eq(mkfifo(tmp_path(&tmp, "fifo"), 0600), 0);
    ck_assert_int_eq(crypto_key_load(tmp.path, &key, err, sizeof err), -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, "not a regular file"));
}
END_TEST

START_TEST(each_mistake_in_the_line_is_named)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"", "does not start with \"aifs-key-1\""},
        {"\n", "does not start with"},
        {"aifs-key-2 " UUID " client " SECRET, "does not start with"},
        {"aifs-key-1", "not \"aifs-key-1 CLUSTER-UUID ROLE SECRET\""},
        {"aifs-key-1 " UUID " client", "not \"aifs-key-1 CLUSTER"},
        {"aifs-key-1 " UUID " client " SECRET " more", "not \"aifs-key-1 CLUSTER"},
        {"aifs-key-1  " UUID " client " SECRET, "not \"aifs-key-1 CLUSTER"},
        {"aifs-key-1 0011 client " SECRET, "the cluster is not a UUID"},
        {"aifs-key-1 " UUID " boss " SECRET, "the role is none of server, admin, client"},
        {"aifs-key-1 " UUID " client " SECRET "00", "64 lower-case hexadecimal digits"},
        {"aifs-key-1 " UUID " client 00", "64 lower-case hexadecimal digits"},
        {"aifs-key-1 " UUID " client X" SECRET, "64 lower-case hexadecimal digits"},
        {"aifs-key-1 " UUID " client " SECRET "\n\n", "not one line"},
        {"aifs-key-1 " UUID " client " SECRET "\r\n", "64 lower-case hexadecimal digits"},
        {"aifs-key-1 " UUID " client " SECRET "\n# comment\n", "not one line"},
        {"# comment\naifs-key-1 " UUID " client " SECRET "\n", "does not start with"},
    };

    memset(&key, 7, sizeof key);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(
            crypto_key_load(tmp_write(&tmp, "key", cases[i].line), &key, err, sizeof err),
            -AIFS_ECONFIG);
        ck_assert_msg(strstr(err, cases[i].message) != NULL, "\"%s\": %s", cases[i].line, err);
    }
    ck_assert_uint_eq(key.secret[0], 7);
}
END_TEST

START_TEST(binary_and_endless_files_are_refused)
{
    static char junk[100000] = "aifs-key-1 ";

    ck_assert_int_eq(
        crypto_key_load(tmp_write_bytes(&tmp, "key", junk, 100, 0600), &key, err, sizeof err),
        -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, "not one line"));
    memset(junk + 11, 'a', sizeof junk - 11);
    ck_assert_int_eq(crypto_key_load(tmp_write_bytes(&tmp, "key", junk, sizeof junk, 0600), &key,
                                     err, sizeof err),
                     -AIFS_ECONFIG);
    ck_assert_ptr_nonnull(strstr(err, "not one line"));
}
END_TEST

SUITE_MAIN("keyfile", setup, teardown, a_line_is_read_with_and_without_newline,
           what_is_saved_is_loaded_and_private, saving_never_overwrites,
           a_key_that_cannot_be_written_whole_leaves_no_file,
           a_file_others_can_open_is_refused_with_the_remedy,
           what_is_no_key_is_not_told_to_become_private, what_is_no_file_is_refused_without_hanging,
           each_mistake_in_the_line_is_named, binary_and_endless_files_are_refused)
