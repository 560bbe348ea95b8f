/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that peers map: what may be, what is refused, and what is read there. This process is its
 * own peer. */
#include "common/net/share.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "tests/support/suite.h"

#define PAGE 4096u
#define BASE 0x10000000u

static int process = -1;

static void start(void)
{
    process = share_open_process(getpid());
    ck_assert_int_ge(process, 0);
}

static void stop(void)
{
    close(process);
}

static struct share make(size_t bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat st;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    for (size_t i = 0; i < bytes; i++)
        ck_assert_int_eq(pwrite(fd, &(char){(char)(i * 7 + i / 251)}, 1, (off_t)i), 1);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    return (struct share){.base = BASE, .bytes = bytes, .ino = st.st_ino, .fd = fd};
}

static void refused(struct share s, int expected)
{
    struct share_view v = {0};

    ck_assert_int_eq(share_map(process, &s, &v), expected);
    ck_assert_ptr_null(v.at);
}

START_TEST(what_is_shared_is_what_a_peer_maps)
{
    uint8_t *m = share_create(SHARE_STEP_BYTES), got[100];
    struct iovec local = {got, sizeof got}, remote = {NULL, sizeof got};
    struct share s = share_mine();
    struct share_view v;

    ck_assert_ptr_null(share_create(SHARE_STEP_BYTES)); /* there is one */
    if (!m) {
        ck_assert_uint_eq(s.bytes, 0);
        return; /* a kernel that cannot */
    }
    ck_assert_uint_eq(s.base, (uintptr_t)m);
    ck_assert_uint_eq(s.bytes, SHARE_STEP_BYTES);
    ck_assert_int_eq(share_map(process, &s, &v), 0);
    ck_assert_ptr_ne(v.at, m);
    memset(m + 5000, 'x', sizeof got);
    remote.iov_base = m + 5000;
    ck_assert(share_read(&v, &local, &remote, 1, 0, sizeof got));
    ck_assert_mem_eq(got, m + 5000, sizeof got);
    ck_assert_int_lt(ftruncate(s.fd, 0), 0); /* so that who reads there is safe */
    share_unmap(&v);
    ck_assert_ptr_null(v.at);
    share_unmap(&v);
}
END_TEST

START_TEST(sizes_that_are_none_are_not_shared)
{
    ck_assert_ptr_null(share_create(0));
    ck_assert_ptr_null(share_create(SHARE_STEP_BYTES - PAGE));
    ck_assert_uint_eq(share_mine().bytes, 0);
}
END_TEST

START_TEST(what_could_become_smaller_or_is_something_else_is_refused)
{
    struct share s = make(2 * PAGE, 0), sealed = make(2 * PAGE, F_SEAL_SHRINK), bad;
    struct share_view v = {0};

    ck_assert_int_eq(share_map(process, &sealed, &v), 0);
    share_unmap(&v);
    refused(s, -AIFS_EPROTO);
    bad = sealed;
    bad.bytes = 3 * PAGE; /* more than there is */
    refused(bad, -AIFS_EPROTO);
    bad = sealed;
    bad.ino++;
    refused(bad, -AIFS_EPROTO);
    bad = sealed;
    bad.bytes = PAGE + 1;
    refused(bad, -AIFS_EPROTO);
    bad = sealed;
    bad.base = UINT64_MAX - PAGE + 1;
    refused(bad, -AIFS_EPROTO);
    bad = sealed;
    bad.bytes = UINT64_MAX - PAGE + 1;
    refused(bad, -AIFS_EPROTO);
    bad = sealed;
    bad.fd = -1;
    refused(bad, -AIFS_EPROTO);
    bad.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    refused(bad, -AIFS_EPROTO);
    close(bad.fd);
    refused(bad, -EBADF);
    ck_assert_int_lt(share_open_process(0x3fffffff), 0);
}
END_TEST

START_TEST(pieces_are_read_in_order_and_nothing_outside)
{
    static uint8_t want[2 * PAGE], got[2 * PAGE];
    struct share s = make(sizeof want, F_SEAL_SHRINK);
    struct iovec remote[3] = {
        {(void *)BASE, 1}, {(void *)(BASE + 4000), 100}, {(void *)(BASE + 1), 3000}};
    struct iovec local[2] = {{got, 50}, {got + 50, sizeof got - 50}};
    uint8_t all[3101];
    struct share_view v;

    ck_assert_int_eq(share_map(process, &s, &v), 0);
    ck_assert_int_eq(pread(s.fd, want, sizeof want, 0), sizeof want);
    memcpy(all, want, 1);
    memcpy(all + 1, want + 4000, 100);
    memcpy(all + 101, want + 1, 3000);
    for (uint64_t from = 0; from <= sizeof all; from += 10) {
        uint64_t len = MIN(sizeof all - from, from + 7);

        memset(got, 0, sizeof got);
        ck_assert(share_read(&v, local, remote, 3, from, len));
        ck_assert_int_eq(memcmp(got, all + from, len), 0);
        ck_assert_uint_eq(got[len], 0);
    }
    ck_assert(!share_read(&v, local, remote, 3, 3000, 102)); /* more than is named */
    ck_assert(share_holds(&v, remote, 3));
    remote[1] = (struct iovec){(void *)(BASE + sizeof want - 99), 100};
    ck_assert(!share_holds(&v, remote, 3));
    ck_assert(share_holds(&v, remote, 1));
    ck_assert(!share_read(&v, local, remote, 3, 0, 1));
    remote[1] = (struct iovec){(void *)(BASE - 1), 100};
    ck_assert(!share_read(&v, local, remote, 3, 0, 1));
    remote[1] = (struct iovec){(void *)(BASE + 1), SIZE_MAX};
    ck_assert(!share_read(&v, local, remote, 3, 0, 1));
    share_unmap(&v);
    ck_assert(!share_holds(&v, remote, 1));
    ck_assert(!share_holds(&v, &(struct iovec){NULL, 0}, 1));
}
END_TEST

SUITE_MAIN("share", start, stop, what_is_shared_is_what_a_peer_maps,
           sizes_that_are_none_are_not_shared,
           what_could_become_smaller_or_is_something_else_is_refused,
           pieces_are_read_in_order_and_nothing_outside)
