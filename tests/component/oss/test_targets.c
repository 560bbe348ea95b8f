// SPDX-License-Identifier: Apache-2.0
/* The targets of aifs-oss as a process: added, formatted, not there, renamed, not answering. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/component/oss/server.h"
#include "tests/support/suite.h"

START_TEST(a_target_is_added_online_and_kept)
{
    char path[200];
    struct msg_target_add_req m = {.path = {path, 0}, .pool = {"slow", 4}};
    struct msg_target_req all = {0};
    uint32_t before;
    struct uuid uuid;
    struct caller k;

    snprintf(path, sizeof path, "%s/t3", bed->dir);
    m.path.len = (uint32_t)strlen(path);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    before = bed->registrations;
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TARGET_ADD, &m), -ENOENT); /* nothing there */
    rpc_call_fini(&k.call);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    m.lived = true;
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TARGET_ADD, &m), -AIFS_ENOTARGET);
    rpc_call_fini(&k.call);
    m.lived = false;
    ck_assert_int_eq(rmdir(path), 0); /* it is empty */
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TARGET_ADD, &m), 0);
    uuid = ((const struct msg_target_add_rep *)k.call.rep)->uuid;
    ck_assert(!uuid_is_zero(&uuid));
    rpc_call_fini(&k.call);
    while (bed->registrations == before)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_uint_eq(bed->n_targets, 3);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TARGET_ADD, &m), -EEXIST);
    rpc_call_fini(&k.call);
    server_end(SIGTERM, 0);
    server_start(NULL);
    server_connect();
    ck_assert_int_eq(server_write(102, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_STAT, &all), 0);
    ck_assert_uint_eq(((const struct msg_status_rep *)k.call.rep)->nodes[0].n_targets, 3);
    rpc_call_fini(&k.call);
}
END_TEST

static bool is_there(const char *name)
{
    char path[200];

    snprintf(path, sizeof path, "%s/%s", bed->dir, name);
    return access(path, F_OK) == 0;
}

START_TEST(an_empty_directory_is_formatted_when_the_metadata_server_is_known)
{
    char path[200], only[300];

    server_end(SIGTERM, 0);
    snprintf(path, sizeof path, "%s/new", bed->dir);
    snprintf(only, sizeof only, "--oss.targets=%s", path);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    server_start(only);
    while (!is_there("run/port")) { /* the metadata server, which is us, does not answer */
        ck_assert_int_eq(waitpid(bed->pid, NULL, WNOHANG), 0);
        poll(NULL, 0, 5);
    }
    ck_assert(!is_there("new/target") && !is_there("new/seg") && !is_there("new/lock"));
    server_connect();
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    ck_assert(is_there("new/target"));
}
END_TEST

START_TEST(what_does_not_exist_is_left_out_and_not_made)
{
    char only[600];
    uint32_t before = bed->registrations;
    int status;

    server_end(SIGTERM, 0);
    snprintf(only, sizeof only, "--oss.targets=%s/none,%s/t1,%s/none/below", bed->dir, bed->dir,
             bed->dir);
    server_start(only);
    server_connect();
    while (bed->registrations == before)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_uint_eq(bed->n_targets, 1);
    ck_assert(!is_there("none"));
    server_end(SIGTERM, 0);
    snprintf(only, sizeof only, "--oss.targets=%s/none", bed->dir);
    server_start(only); /* it has nothing to serve */
    ck_assert_int_eq(waitpid(bed->pid, &status, 0), bed->pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    ck_assert(!is_there("none"));
    server_start(NULL);
    server_connect();
}
END_TEST

static void until_it_has(uint32_t n_targets)
{
    for (uint32_t before = bed->registrations;
         bed->registrations == before || bed->n_targets != n_targets;)
        reactor_run_once(bed->reactor, NS_PER_S);
}

static void told_of(uint32_t n_targets)
{
    while (bed->n_targets != n_targets)
        reactor_run_once(bed->reactor, NS_PER_S);
}

static void restart_moved(const char *from, const char *to)
{
    server_end(SIGTERM, 0);
    ck_assert_int_eq(rename(from, to), 0);
    bed->n_targets = 0;
    server_start(NULL);
    server_connect();
}

/* Its disk comes back some day: it is not forgotten when another one is added meanwhile. */
START_TEST(an_added_target_that_is_not_there_is_remembered)
{
    char path[200], away[200], more[200];
    struct msg_target_add_req m = {.path = {path, 0}};
    struct caller k;

    snprintf(path, sizeof path, "%s/t3", bed->dir);
    snprintf(away, sizeof away, "%s/away", bed->dir);
    snprintf(more, sizeof more, "%s/t4", bed->dir);
    m.path.len = (uint32_t)strlen(path);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(mkdir(more, 0755), 0);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TARGET_ADD, &m), 0);
    rpc_call_fini(&k.call);
    told_of(3);
    restart_moved(path, away);
    told_of(2);
    m.path.data = more;
    while (server_call(&k, RPC_OP_OSS_TARGET_ADD, &m) != 0)
        rpc_call_fini(&k.call);
    rpc_call_fini(&k.call);
    told_of(3);
    restart_moved(away, path);
    told_of(4);
}
END_TEST

/* It is there, and damaged: its server does not go on without it. */
START_TEST(a_target_that_has_lost_a_part_keeps_its_server_from_starting)
{
    char seg[200], away[200];
    int status;

    snprintf(seg, sizeof seg, "%s/t2/seg", bed->dir);
    snprintf(away, sizeof away, "%s/seg", bed->dir);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    server_end(SIGTERM, 0);
    ck_assert_int_eq(rename(seg, away), 0);
    server_start(NULL);
    ck_assert_int_eq(waitpid(bed->pid, &status, 0), bed->pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    ck_assert_int_eq(rename(away, seg), 0);
    server_start(NULL);
    server_connect();
}
END_TEST

/* Which of them has what was written last nobody could tell. */
START_TEST(a_copy_of_a_target_beside_it_is_refused)
{
    char path[200], copy[200], command[500], both[500];
    struct msg_target_add_req m = {.path = {copy, 0}};
    struct caller k;
    int status;

    snprintf(path, sizeof path, "%s/t1", bed->dir);
    snprintf(copy, sizeof copy, "%s/t3", bed->dir);
    m.path.len = (uint32_t)strlen(copy);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), 0);
    server_end(SIGTERM, 0);
    snprintf(command, sizeof command, "cp -a %s %s", path, copy);
    ck_assert_int_eq(system(command), 0);
    server_start(NULL);
    server_connect();
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, true, NULL), 0);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TARGET_ADD, &m), -ENOTUNIQ);
    rpc_call_fini(&k.call);
    server_end(SIGTERM, 0);
    snprintf(both, sizeof both, "--oss.targets=%s,%s", copy, path);
    server_start(both);
    ck_assert_int_eq(waitpid(bed->pid, &status, 0), bed->pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    server_start(NULL);
    server_connect();
}
END_TEST

START_TEST(a_target_whose_directory_is_renamed_serves_again_when_it_is_back)
{
    char path[200], away[200];
    uint32_t len = 0;

    snprintf(path, sizeof path, "%s/t1", bed->dir);
    snprintf(away, sizeof away, "%s/away", bed->dir);
    server_fill(bed->buf, 10000, 2);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10000, true, NULL), 0);
    ck_assert_int_eq(server_write(101, 9, 0, 0, bed->buf, 10000, true, NULL), 0);
    ck_assert_int_eq(rename(path, away), 0);
    ck_assert_int_eq(mkdir(path, 0755), 0); /* something else is there */
    until_it_has(1);
    while (server_read(100, 9, 0, 0, bed->buf, 4096, &len) != -AIFS_ENOTARGET)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_int_eq(server_read(101, 9, 0, 0, bed->buf, 4096, &len), 0); /* the other one */
    ck_assert_int_eq(rmdir(path), 0);                                     /* empty still */
    ck_assert_int_eq(rename(away, path), 0);
    until_it_has(2);
    while (server_read(100, 9, 0, 0, bed->buf + CHUNK, 12288, &len) != 0)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_uint_eq(len, 10000);
    server_fill(bed->buf, 10000, 2);
    ck_assert_int_eq(memcmp(bed->buf, bed->buf + CHUNK, 10000), 0);
    ck_assert_int_eq(server_write(100, 9, 1, 0, bed->buf, 10000, true, NULL), 0);
}
END_TEST

START_TEST(nothing_is_written_where_the_directory_of_a_target_was)
{
    char path[200], away[200], added[200];
    struct msg_target_add_req m = {.path = {added, 0}, .pool = {"slow", 4}};
    struct caller k;

    snprintf(path, sizeof path, "%s/t1", bed->dir);
    snprintf(away, sizeof away, "%s/away", bed->dir);
    snprintf(added, sizeof added, "%s/t3", bed->dir);
    m.path.len = (uint32_t)strlen(added);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10, false, NULL), 0);
    ck_assert_int_eq(rename(path, away), 0);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(mkdir(added, 0755), 0);
    until_it_has(1);
    ck_assert_int_eq(server_call(&k, RPC_OP_OSS_TARGET_ADD, &m), 0);
    rpc_call_fini(&k.call);
    ck_assert_int_eq(rmdir(path), 0); /* empty still */
    ck_assert_int_eq(rename(away, path), 0);
    until_it_has(3);
}
END_TEST

START_TEST(a_server_all_of_whose_directories_are_renamed_ends_in_order)
{
    char path[200], away[200];

    for (int i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/t%d", bed->dir, i);
        snprintf(away, sizeof away, "%s/away%d", bed->dir, i);
        ck_assert_int_eq(server_write(99 + (uint32_t)i, 9, 0, 0, bed->buf, 10000, false, NULL), 0);
        ck_assert_int_eq(rename(path, away), 0);
    }
    until_it_has(0);
    server_end(SIGTERM, 0);
}
END_TEST

START_TEST(a_directory_that_does_not_answer_keeps_nobody_waiting)
{
    uint32_t len, beats;

    server_end(SIGTERM, 0);
    setenv("AIFS_FAULT", "oss.look=delay:3600000", 1);
    server_start(NULL);
    unsetenv("AIFS_FAULT");
    server_connect();
    beats = bed->beats;
    while (bed->beats < beats + 2)
        reactor_run_once(bed->reactor, NS_PER_S);
    ck_assert_int_eq(server_write(100, 9, 0, 0, bed->buf, 10000, true, NULL), 0);
    ck_assert_int_eq(server_read(100, 9, 0, 0, bed->buf, 4096, &len), 0);
    server_end(SIGTERM, 0);
}
END_TEST

SUITE_MAIN("oss targets", server_make_bed, server_end_bed, a_target_is_added_online_and_kept,
           an_empty_directory_is_formatted_when_the_metadata_server_is_known,
           what_does_not_exist_is_left_out_and_not_made,
           an_added_target_that_is_not_there_is_remembered,
           a_target_that_has_lost_a_part_keeps_its_server_from_starting,
           a_copy_of_a_target_beside_it_is_refused,
           a_target_whose_directory_is_renamed_serves_again_when_it_is_back,
           nothing_is_written_where_the_directory_of_a_target_was,
           a_server_all_of_whose_directories_are_renamed_ends_in_order,
           a_directory_that_does_not_answer_keeps_nobody_waiting)
