/* SPDX-License-Identifier: Apache-2.0 */
/* Retry decisions. */
#include "client/core/retry.h"
#include "common/base/compiler.h"
#include "common/base/err.h"
#include "tests/support/suite.h"

START_TEST(outcomes_of_the_operation_are_not_tried_again)
{
    static const int outcomes[] = {-ENOENT, -EEXIST,        -EACCES,       -ENOSPC,
                                   -EIO,    -AIFS_ESESSION, -AIFS_EFENCED, -AIFS_EPROTO};
    unsigned i;

    for (i = 0; i < ARRAY_LEN(outcomes); i++) {
        ck_assert_int_eq(retry_mds(outcomes[i], 0).action, RETRY_FAIL);
        ck_assert_int_eq(retry_oss_write(outcomes[i], 0).action, RETRY_FAIL);
        ck_assert_int_eq(retry_mds(outcomes[i], 0).status, outcomes[i]);
    }
}
END_TEST

START_TEST(a_busy_server_is_asked_again_for_ever_with_a_bounded_pause)
{
    unsigned attempt;
    uint64_t last = 0;

    for (attempt = 0; attempt < 1000; attempt++) {
        struct retry r = retry_mds(-AIFS_EBUSY_SERVER, attempt);

        ck_assert_int_eq(r.action, RETRY_AGAIN);
        ck_assert_uint_ge(r.delay_ns, last);
        ck_assert_uint_le(r.delay_ns, NS_PER_S);
        last = r.delay_ns;
    }
}
END_TEST

START_TEST(damaged_transfers_are_repeated_a_few_times_and_then_an_error)
{
    ck_assert_int_eq(retry_oss_read(-AIFS_ECHECKSUM, 0).action, RETRY_AGAIN);
    ck_assert_int_eq(retry_oss_read(-AIFS_ECHECKSUM, RETRY_CHECKSUM_MAX).action, RETRY_FAIL);
    ck_assert_int_eq(retry_oss_read(-AIFS_ECHECKSUM, RETRY_CHECKSUM_MAX).status, -EIO);
    ck_assert_int_eq(retry_oss_read(-AIFS_ECORRUPT, 0).action, RETRY_AGAIN);
    ck_assert_int_eq(retry_oss_read(-AIFS_ECORRUPT, 1).status, -EIO);
}
END_TEST

START_TEST(stale_knowledge_is_refreshed)
{
    ck_assert_int_eq(retry_oss_write(-AIFS_ESTALE_MAP, 0).action, RETRY_MAP);
    ck_assert_int_eq(retry_oss_write(-AIFS_ESTALE_TRUNC, 0).action, RETRY_ATTR);
    ck_assert_int_eq(retry_oss_write(-AIFS_ESTALE_TRUNC, RETRY_STALE_MAX).action, RETRY_FAIL);
    ck_assert(retry_oss_write(-AIFS_ESTALE_TRUNC, RETRY_STALE_MAX).gave_up);
    ck_assert(!retry_oss_write(-ENOSPC, RETRY_STALE_MAX).gave_up); /* an answer */
}
END_TEST

START_TEST(a_target_that_is_away_is_waited_for_and_one_that_is_given_up_is_not)
{
    static const int away[] = {-AIFS_EDOWN, -AIFS_ENOTARGET};

    for (unsigned i = 0; i < ARRAY_LEN(away); i++) {
        ck_assert_int_eq(retry_oss_read(away[i], 1000).action, RETRY_MAP);
        ck_assert_int_eq(retry_oss_write(away[i], 1000).action, RETRY_MAP);
    }
    ck_assert_int_eq(retry_oss_read(-AIFS_ELOST, 0).action, RETRY_FAIL);
    ck_assert_int_eq(retry_oss_write(-AIFS_ELOST, 0).action, RETRY_FAIL);
}
END_TEST

SUITE_MAIN("client-retry", NULL, NULL, outcomes_of_the_operation_are_not_tried_again,
           a_busy_server_is_asked_again_for_ever_with_a_bounded_pause,
           damaged_transfers_are_repeated_a_few_times_and_then_an_error,
           stale_knowledge_is_refreshed,
           a_target_that_is_away_is_waited_for_and_one_that_is_given_up_is_not)
