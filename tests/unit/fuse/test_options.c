// SPDX-License-Identifier: Apache-2.0
/* Arguments and -o options of mount.aifs. */
#include <stdio.h>
#include <string.h>

#include "client/mount/mount.h"
#include "common/base/mem.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

static struct mount_request m;
static char err[MOUNT_ERROR_BYTES];

static int parse(const char *options)
{
    const char *argv[] = {"mount.aifs", "h1,h2:/lab", "/mnt", "-o", options, NULL};

    err[0] = '\0';
    return mount_parse(&m, 5, (char **)argv, err, sizeof err);
}

static void teardown(void)
{
    mount_request_fini(&m);
}

START_TEST(words_of_fstab_are_swallowed)
{
    ck_assert_int_eq(parse("defaults,_netdev,nofail,noauto,users,x-systemd.mount-timeout=90,"
                           "X-mount.mkdir,comment=hello"),
                     MOUNT_OK);
    ck_assert_uint_eq(m.flags.len, 0);
    ck_assert_uint_eq(m.unknown.len, 0);
}
END_TEST

START_TEST(words_of_the_kernel_are_passed_on)
{
    ck_assert_int_eq(parse("ro,nosuid,noatime,context=\"a:b:c1,c2\""), MOUNT_OK);
    ck_assert(m.read_only);
    ck_assert_str_eq(m.flags.data, "nosuid,context=\"a:b:c1,c2\"");
}
END_TEST

START_TEST(what_the_kernel_is_told_is_as_long_as_it_is)
{
    char options[3100], *end = options;
    struct strbuf words;

    end += snprintf(options, sizeof options, "context=\"");
    memset(end, 'x', 3000);
    memcpy(end + 3000, "\",nodev", sizeof "\",nodev");
    ck_assert_int_eq(parse(options), MOUNT_OK);
    strbuf_init(&words);
    mount_kernel_words(&m, true, &words);
    ck_assert_int_eq(strncmp(words.data, "suid,dev,rw,noatime,context=\"xxx", 32), 0);
    ck_assert_str_eq(words.data + words.len - 8, "x\",nodev");
    ck_assert_uint_eq(words.len, strlen("suid,dev,rw,noatime,") + strlen(options));
    strbuf_fini(&words);
}
END_TEST

/* The daemon keeps them, and tells the kernel what is so. */
START_TEST(times_of_access_are_kept_if_one_of_these_words_says_so)
{
    static const struct {
        const char *words;
        bool kept;
        int said;
    } cases[] = {{"rw", false, MOUNT_ATIME_UNSAID},         {"relatime", true, MOUNT_RELATIME},
                 {"atime", true, MOUNT_RELATIME},           {"strictatime", true, MOUNT_RELATIME},
                 {"noatime", false, MOUNT_NOATIME},         {"norelatime", false, MOUNT_NOATIME},
                 {"relatime,noatime", false, MOUNT_NOATIME}};

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        ck_assert_int_eq(parse(cases[k].words), MOUNT_OK);
        ck_assert(conf_bool(m.conf, "relatime") == cases[k].kept);
        ck_assert_int_eq((int)m.atime_word, cases[k].said);
        ck_assert(!m.no_dir_time);
        ck_assert_uint_eq(m.flags.len, 0);
        mount_request_fini(&m);
    }
    ck_assert_int_eq(parse("relatime,nodiratime"), MOUNT_OK);
    ck_assert(m.no_dir_time);
}
END_TEST

START_TEST(the_last_of_ro_and_rw_wins)
{
    ck_assert_int_eq(parse("ro,rw"), MOUNT_OK);
    ck_assert(!m.read_only);
}
END_TEST

START_TEST(our_options_go_to_the_configuration)
{
    ck_assert_int_eq(parse("keyfile=/k,net=shm,memory_limit=64Mi,soft,timeo=5s,log=/l,multi,"
                           "nonempty,x-aifs.recover"),
                     MOUNT_OK);
    ck_assert_str_eq(conf_str(m.conf, "key_file"), "/k");
    ck_assert_int_eq(conf_enum(m.conf, "net.transport"), 2);
    ck_assert_uint_eq(conf_u64(m.conf, "memory_limit"), 64 * MIB);
    ck_assert(conf_bool(m.conf, "soft"));
    ck_assert_uint_eq(conf_u64(m.conf, "timeo"), 5 * NS_PER_S);
    ck_assert_str_eq(conf_str(m.conf, "log.file"), "/l");
    ck_assert(m.multi && m.nonempty && m.recover);
}
END_TEST

START_TEST(recover_is_asked_for_by_a_word_that_mount8_passes_on)
{
    ck_assert_int_eq(parse("ro"), MOUNT_OK);
    ck_assert(!m.recover);
    mount_request_fini(&m);
    ck_assert_int_eq(parse("ro,recover"), MOUNT_OK);
    ck_assert(m.recover);
}
END_TEST

START_TEST(hard_undoes_soft)
{
    ck_assert_int_eq(parse("soft,hard"), MOUNT_OK);
    ck_assert(!conf_bool(m.conf, "soft"));
}
END_TEST

START_TEST(a_word_takes_no_value)
{
    static const char *const bad[] = {"hard=3", "bg=1", "nodev=yes", "noatime=no"};

    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(parse(bad[i]), MOUNT_USAGE);
        ck_assert_ptr_nonnull(strstr(err, "takes no value"));
        mount_request_fini(&m);
    }
    ck_assert_int_eq(parse("relatime=yes,soft=no"), MOUNT_OK);
}
END_TEST

START_TEST(a_backslash_keeps_a_comma)
{
    ck_assert_int_eq(parse("job=a\\,b\\\\c,soft"), MOUNT_OK);
    ck_assert_str_eq(conf_str(m.conf, "job"), "a,b\\c");
    ck_assert(conf_bool(m.conf, "soft"));
}
END_TEST

START_TEST(an_unknown_option_is_named_with_a_suggestion)
{
    ck_assert_int_eq(parse("ro,keyfil=/k"), MOUNT_USAGE);
    ck_assert_ptr_nonnull(strstr(err, "\"keyfil\""));
    ck_assert_ptr_nonnull(strstr(err, "\"keyfile\""));
}
END_TEST

START_TEST(a_bad_value_is_named)
{
    ck_assert_int_eq(parse("memory_limit=lots"), MOUNT_USAGE);
    ck_assert_ptr_nonnull(strstr(err, "memory_limit"));
    mount_request_fini(&m);
    ck_assert_int_eq(parse("net=pigeon"), MOUNT_USAGE);
    ck_assert_ptr_nonnull(strstr(err, "pigeon"));
}
END_TEST

START_TEST(sloppy_ignores_unknown_options)
{
    const char *argv[] = {"mount.aifs", "h:/", "/mnt", "-s", "-o", "bogus=1,ro", NULL};

    ck_assert_int_eq(mount_parse(&m, 6, (char **)argv, err, sizeof err), MOUNT_OK);
    ck_assert(m.read_only && m.sloppy);
}
END_TEST

START_TEST(switches_of_mount8_are_understood)
{
    const char *argv[] = {"mount.aifs", "h:/",  "/mnt", "-fnv", "-N",   "1",
                          "-t",         "aifs", "-oro", "-o",   "soft", NULL};

    ck_assert_int_eq(mount_parse(&m, 11, (char **)argv, err, sizeof err), MOUNT_OK);
    ck_assert(m.fake && m.verbose && m.read_only);
    ck_assert(conf_bool(m.conf, "soft"));
}
END_TEST

START_TEST(missing_and_superfluous_arguments_are_refused)
{
    const char *few[] = {"mount.aifs", "h:/", NULL};
    const char *many[] = {"mount.aifs", "h:/", "/a", "/b", NULL};
    const char *odd[] = {"mount.aifs", "h:/", "/a", "-q", NULL};

    ck_assert_int_eq(mount_parse(&m, 2, (char **)few, err, sizeof err), MOUNT_USAGE);
    mount_request_fini(&m);
    ck_assert_int_eq(mount_parse(&m, 4, (char **)many, err, sizeof err), MOUNT_USAGE);
    mount_request_fini(&m);
    ck_assert_int_eq(mount_parse(&m, 4, (char **)odd, err, sizeof err), MOUNT_USAGE);
}
END_TEST

START_TEST(a_configuration_file_gives_options_and_the_line_wins)
{
    struct tmp t;
    char options[PATH_MAX + 64];

    tmp_make(&t);
    snprintf(options, sizeof options, "timeo=7s,config=%s",
             tmp_write(&t, "c.conf", "timeo = 9s\nhung_log = 11s\n"));
    ck_assert_int_eq(parse(options), MOUNT_OK);
    ck_assert_uint_eq(conf_u64(m.conf, "timeo"), 7 * NS_PER_S);
    ck_assert_uint_eq(conf_u64(m.conf, "hung_log"), 11 * NS_PER_S);
    tmp_remove(&t);
}
END_TEST

START_TEST(a_bad_configuration_file_is_named_with_its_line)
{
    struct tmp t;
    char options[PATH_MAX + 64];

    tmp_make(&t);
    snprintf(options, sizeof options, "config=%s",
             tmp_write(&t, "c.conf", "soft = no\ntimo = 9s\n"));
    ck_assert_int_eq(parse(options), MOUNT_FAILED);
    ck_assert_ptr_nonnull(strstr(err, "c.conf:2"));
    tmp_remove(&t);
}
END_TEST

START_TEST(remount_remembers_what_it_cannot_change)
{
    ck_assert_int_eq(parse("remount,ro,memory_limit=64Mi,_netdev"), MOUNT_OK);
    ck_assert(m.remount);
    ck_assert_int_eq(mount_remount(&m, err, sizeof err), MOUNT_FAILED);
    ck_assert_ptr_nonnull(strstr(err, "memory_limit"));
}
END_TEST

SUITE_MAIN("mount-options", NULL, teardown, words_of_fstab_are_swallowed,
           words_of_the_kernel_are_passed_on, what_the_kernel_is_told_is_as_long_as_it_is,
           times_of_access_are_kept_if_one_of_these_words_says_so, the_last_of_ro_and_rw_wins,
           our_options_go_to_the_configuration,
           recover_is_asked_for_by_a_word_that_mount8_passes_on, hard_undoes_soft,
           a_word_takes_no_value, a_backslash_keeps_a_comma,
           an_unknown_option_is_named_with_a_suggestion, a_bad_value_is_named,
           sloppy_ignores_unknown_options, switches_of_mount8_are_understood,
           missing_and_superfluous_arguments_are_refused,
           a_configuration_file_gives_options_and_the_line_wins,
           a_bad_configuration_file_is_named_with_its_line, remount_remembers_what_it_cannot_change)
