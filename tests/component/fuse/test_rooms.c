/* SPDX-License-Identifier: Apache-2.0 */
/* The own channel on the real kernel, where the file system has room for the data of large
 * writes: these are read in two parts, and what comes between them too. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/component/fuse/serve.h"
#include "tests/support/suite.h"

static void setup(void)
{
    struct null_fs_options o = {.timeout_ns = NS_PER_S, .keep_bytes = 8 * MIB, .rooms = 2};

    serve(CHANNEL_KIND_FUSE, &o);
}

/* Messages behind a large write are read with room for another one. */
START_TEST(what_comes_between_large_writes_arrives_whole)
{
    uint8_t *data = noise(7 * MIB), *back = malloc(7 * MIB);
    int fd = open_at("f", O_WRONLY | O_CREAT);
    char target[4096], name[256], told[4096];

    memset(target, 't', sizeof target - 1);
    memset(name, 'n', sizeof name - 1);
    target[sizeof target - 1] = name[sizeof name - 1] = '\0';
    for (unsigned k = 0; k < 6; k++) { /* each but a page of the next, which comes by itself */
        off_t at = (off_t)(k * MIB);
        int other;

        ck_assert_int_eq(pwrite(fd, data + at, MIB, at), MIB);
        name[0] = (char)('a' + k);
        other = open_at(name, O_WRONLY | O_CREAT);
        close(other);
        ck_assert_int_eq(unlink(tmp_path(&served, name)), 0);
        ck_assert_int_eq(symlink(target, tmp_path(&served, "link")), 0);
        ck_assert_int_eq(readlink(tmp_path(&served, "link"), told, sizeof told), 4095);
        ck_assert_mem_eq(told, target, 4095);
        ck_assert_int_eq(unlink(tmp_path(&served, "link")), 0);
        ck_assert_int_eq(pwrite(fd, data + at + MIB, MIB - 4096, at + MIB), MIB - 4096);
        ck_assert_int_eq(pwrite(fd, data + at + 2 * MIB - 4096, 4095, at + 2 * MIB - 4096), 4095);
    }
    ck_assert_int_eq(pwrite(fd, data + 7 * MIB - 1, 1, 7 * MIB - 1), 1);
    close(fd);
    fd = open_at("f", O_RDONLY);
    ck_assert_int_eq(pread(fd, back, 7 * MIB, 0), 7 * MIB);
    ck_assert_mem_eq(data, back, 7 * MIB);
    close(fd);
    free(data);
    free(back);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fuse-rooms");

    if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0) {
        printf("skipped: mounting needs root and /dev/fuse\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, unserve);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_comes_between_large_writes_arrives_whole);
    return suite_run_case("fuse-rooms", tc);
}
