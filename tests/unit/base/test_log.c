// SPDX-License-Identifier: Apache-2.0
/* Log lines as they arrive in a file: form, levels, limits, and what hostile text becomes. */
#include "common/base/log.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

static struct tmp tmp;
static char text[1 << 16];

static void setup(void)
{
    tmp_make(&tmp);
    ck_assert_int_eq(log_open_file(tmp_path(&tmp, "log")), 0);
    log_set_program("tester");
    log_set_burst(0);
}

static void teardown(void)
{
    tmp_remove(&tmp);
}

static const char *content(const char *name)
{
    FILE *f = fopen(tmp_path(&tmp, name), "r");

    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static unsigned lines(const char *s)
{
    unsigned n = 0;

    for (; *s; s++)
        n += *s == '\n';
    return n;
}

START_TEST(a_line_has_time_program_level_tag_and_text)
{
    char program[32], level[16], tag[16], rest[64];
    int pid, year;

    LOG_WARN("target 3", "%d of %d", 1, 2);
    ck_assert_int_eq(sscanf(content("log"),
                            "%d-%*d-%*dT%*d:%*d:%*d.%*3dZ %31[a-z][%d] %15s %15[a-z 0-9]: %63[^\n]",
                            &year, program, &pid, level, tag, rest),
                     6);
    ck_assert_int_ge(year, 2024);
    ck_assert_str_eq(program, "tester");
    ck_assert_int_eq(pid, getpid());
    ck_assert_str_eq(level, "WARN");
    ck_assert_str_eq(tag, "target 3");
    ck_assert_str_eq(rest, "1 of 2");
}
END_TEST

START_TEST(the_cause_is_the_errno_of_the_caller_who_keeps_it)
{
    errno = ENOSPC;
    LOG_ERROR("disk", "write: %m");
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_ptr_nonnull(strstr(content("log"), "ERROR disk: write: No space left on device\n"));
}
END_TEST

START_TEST(levels_above_the_threshold_are_not_written)
{
    log_set_level(LOG_LEVEL_WARN);
    LOG_INFO("x", "hidden");
    LOG_WARN("x", "shown");
    log_set_level(LOG_LEVEL_TRACE);
    LOG_TRACE("x", "shown too");
    ck_assert_uint_eq(lines(content("log")), 2);
    ck_assert_ptr_null(strstr(text, "hidden"));
}
END_TEST

START_TEST(control_characters_cannot_forge_a_line)
{
    LOG_INFO("tag\nx", "a\n2026 ERROR fake: b\x1b[31m\r");
    ck_assert_uint_eq(lines(content("log")), 1);
    ck_assert_ptr_nonnull(strstr(text, "INFO tag x: a 2026 ERROR fake: b?[31m?\n"));
}
END_TEST

START_TEST(a_huge_line_is_cut_and_ended)
{
    static char huge[10000];

    memset(huge, 'x', sizeof huge - 1);
    LOG_INFO("x", "%s", huge);
    ck_assert_uint_eq(lines(content("log")), 1);
    ck_assert_uint_lt(strlen(text), 2100);
    ck_assert_uint_gt(strlen(text), 1900);
}
END_TEST

START_TEST(a_call_site_prints_its_burst_and_later_says_how_many_it_left_out)
{
    struct log_site site = {0};

    log_set_burst(5);
    for (unsigned i = 0; i < 100; i++) {
        log_write(&site, LOG_LEVEL_WARN, "storm", "drop");
        atomic_store(&site.second,
                     UINT64_MAX); /* however long this loop takes, a new second each time */
    }
    ck_assert_uint_eq(lines(content("log")), 100);
    atomic_store(&site.printed, 5);
    atomic_store(&site.second, clock_mono_ns(clock_real()) / NS_PER_S + 1);
    log_write(&site, LOG_LEVEL_WARN, "storm", "one too many");
    if (atomic_load(&site.dropped) == 0) /* the second was over between the two lines above */
        atomic_store(&site.dropped, 1);
    atomic_store(&site.second, UINT64_MAX);
    log_write(&site, LOG_LEVEL_WARN, "storm", "the next");
    ck_assert_ptr_nonnull(strstr(content("log"), "WARN storm: lines like the next left out: 1\n"));
    ck_assert_uint_eq(atomic_load(&site.dropped), 0);
}
END_TEST

START_TEST(a_storm_is_cut_to_the_burst_of_each_second)
{
    uint64_t first = clock_mono_ns(clock_real()) / NS_PER_S, seconds;

    log_set_burst(5);
    for (unsigned i = 0; i < 1000; i++)
        LOG_WARN("storm", "drop");
    seconds = clock_mono_ns(clock_real()) / NS_PER_S - first + 1;
    ck_assert_uint_ge(lines(content("log")), 5);
    ck_assert_uint_le(lines(content("log")), 6 * seconds);
}
END_TEST

START_TEST(debug_lines_are_not_limited)
{
    log_set_burst(5);
    log_set_level(LOG_LEVEL_DEBUG);
    for (int i = 0; i < 100; i++)
        LOG_DEBUG("x", "%d", i);
    ck_assert_uint_eq(lines(content("log")), 100);
}
END_TEST

START_TEST(opening_again_moves_to_the_new_file)
{
    struct stat st;

    LOG_INFO("x", "one");
    ck_assert_int_eq(log_open_file(tmp_path(&tmp, "log2")), 0);
    LOG_INFO("x", "two");
    ck_assert_uint_eq(lines(content("log")), 1);
    ck_assert_uint_eq(lines(content("log2")), 1);
    ck_assert_int_eq(stat(tmp_path(&tmp, "log2"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0137, 0);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_is_an_error_and_changes_nothing)
{
    ck_assert_int_eq(log_open_file(tmp_path(&tmp, "no/such/dir")), -ENOENT);
    LOG_INFO("x", "still here");
    ck_assert_uint_eq(lines(content("log")), 1);
}
END_TEST

START_TEST(a_failed_assertion_names_itself_and_aborts)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        ASSERT(1 + 1 == 3);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_ptr_nonnull(strstr(content("log"), "\"1 + 1 == 3\" does not hold"));
}
END_TEST

SUITE_MAIN("log", setup, teardown, a_storm_is_cut_to_the_burst_of_each_second,
           a_line_has_time_program_level_tag_and_text,
           the_cause_is_the_errno_of_the_caller_who_keeps_it,
           levels_above_the_threshold_are_not_written, control_characters_cannot_forge_a_line,
           a_huge_line_is_cut_and_ended,
           a_call_site_prints_its_burst_and_later_says_how_many_it_left_out,
           debug_lines_are_not_limited, opening_again_moves_to_the_new_file,
           a_file_that_cannot_be_opened_is_an_error_and_changes_nothing,
           a_failed_assertion_names_itself_and_aborts)
