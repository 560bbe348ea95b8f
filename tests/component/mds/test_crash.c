/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Crashes: a child works on a shard and dies at a fault point, or by SIGKILL at any time; what it
 * had acknowledged to us through a pipe is there, what it had not is there as a whole or not at
 * all, asking again gives one outcome, and the tree agrees with itself.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "proto/number.h"
#include "tests/component/mds/bed.h"
#include "tests/support/suite.h"

#define ROOT KEY_ROOT_INO
enum { NAMES = 40, DIRS = 4, SESSION = 7, ROUNDS = 8 };

static struct bed bed;
static uint64_t dirs[DIRS];

/* One step of the child: decided by its number alone, so that the parent knows what it was. */
struct step {
    unsigned kind, name, name2, dir, dir2;
};

static struct step make_step(unsigned n, unsigned seed)
{
    unsigned r = n * 2654435761u + seed;
    struct step s;

    s.kind = rand_r(&r) % 5;
    s.name = (unsigned)rand_r(&r) % NAMES;
    s.name2 = (unsigned)rand_r(&r) % NAMES;
    s.dir = (unsigned)rand_r(&r) % DIRS;
    s.dir2 = (unsigned)rand_r(&r) % DIRS;
    return s;
}

static int do_step(const struct step *s, unsigned n, bool again)
{
    char name[16], name2[16];
    struct msg_create_req create = {
        .parent = dirs[s->dir], .name = {name, 0}, .mode = 0644, .flags = MSG_CREATE_EXCL};
    struct msg_name_req remove = {.parent = dirs[s->dir], .name = {name, 0}};
    struct msg_rename_req rename = {.parent = dirs[s->dir],
                                    .new_parent = dirs[s->dir2],
                                    .name = {name, 0},
                                    .new_name = {name2, 0}};
    int (*call)(struct bed *, unsigned, const void *) = again ? bed_again : bed_call;

    create.name.len = remove.name.len = rename.name.len =
        (uint32_t)snprintf(name, sizeof(name), "n%u", s->name);
    rename.new_name.len = (uint32_t)snprintf(name2, sizeof(name2), "n%u", s->name2);
    bed.sequence = n; /* bed_call() adds one */
    if (again)
        bed.sequence++;
    switch (s->kind) {
    case 0:
        return call(&bed, RPC_OP_CREATE, &create);
    case 1:
        create.ino = number_given(create.parent, SESSION, n);
        return call(&bed, RPC_OP_MKNOD, &create);
    case 2:
        return call(&bed, RPC_OP_MKDIR, &create);
    case 3:
        return call(&bed, RPC_OP_RENAME, &rename);
    default:
        return call(&bed, n & 1 ? RPC_OP_UNLINK : RPC_OP_RMDIR, &remove);
    }
}

struct ack {
    unsigned n;
    int status;
    uint64_t a, b; /* what the two names are now */
};

static struct ack make_ack(const struct step *s, unsigned n, int status)
{
    char name[16], name2[16];

    snprintf(name, sizeof(name), "n%u", s->name);
    snprintf(name2, sizeof(name2), "n%u", s->name2);
    return (struct ack){.n = n,
                        .status = status,
                        .a = bed_lookup(&bed, dirs[s->dir], name),
                        .b = bed_lookup(&bed, dirs[s->dir2], name2)};
}

static void child_main(int fd, unsigned first, unsigned seed, const char *fault)
{
    bed_start(&bed);
    if (fault && fault_arm(fault) < 0)
        _exit(3);
    for (unsigned n = first;; n++) {
        struct step s = make_step(n, seed);
        int rc = do_step(&s, n, false);
        struct ack ack = make_ack(&s, n, rc);

        if (write(fd, &ack, sizeof(ack)) != sizeof(ack))
            _exit(4);
    }
}

/* Runs a child until it dies; returns the number of the first step that was not acknowledged. */
static unsigned round_once(unsigned first, unsigned seed, const char *fault, unsigned kill_after,
                           struct ack *ret_last)
{
    struct ack ack;
    unsigned next = first;
    int fds[2], status;
    pid_t pid;

    ck_ok(pipe(fds));
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(fds[0]);
        child_main(fds[1], first, seed, fault);
    }
    close(fds[1]);
    while (read(fds[0], &ack, sizeof(ack)) == sizeof(ack)) {
        ck_assert_uint_eq(ack.n, next);
        next++;
        *ret_last = ack;
        if (kill_after && next - first == kill_after)
            kill(pid, SIGKILL);
    }
    close(fds[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 137, "child: status %x", status);
    return next;
}

static void prepare(void)
{
    char name[8];

    bed_open(&bed);
    bed_session(&bed, SESSION);
    for (unsigned i = 0; i < DIRS; i++) {
        snprintf(name, sizeof(name), "d%u", i);
        bed.slot = 9;
        dirs[i] = bed_dir(&bed, ROOT, name);
    }
    bed.slot = 1;
    bed.sequence = 0;
    bed_stop(&bed);
}

/* By another slot: nobody knows of it but the session's numbers, and they are as durable as it. */
static void number_is_used(const struct step *s, unsigned n, int status)
{
    struct msg_create_req req = {
        .parent = dirs[s->dir], .name = str("twice"), .ino = number_given(ROOT, SESSION, n)};

    if (s->kind != 1 || status != 0)
        return;
    bed.slot = 2;
    bed.sequence = n;
    ck_assert_int_eq(bed_call(&bed, RPC_OP_MKNOD, &req), -AIFS_EPROTO);
    bed.slot = 1;
}

/* Few rounds on one shard: each opens it twice and leaves a table, and a child has none of
 * RocksDB's threads (they do not come along with a fork), which would merge them before there are
 * so many that it stops writing. */
static void crash_rounds(unsigned rounds, const char *point, unsigned times)
{
    unsigned next = 0, seed = 12345 + times, r = 99 + times;

    prepare();
    for (unsigned i = 0; i < rounds; i++) {
        struct ack last = {.n = UINT32_MAX};
        char fault[64];
        struct step s;
        int rc, again;

        snprintf(fault, sizeof(fault), "%s=crash@%u", point ? point : "", 1 + rand_r(&r) % 20);
        next = round_once(next, seed, point ? fault : NULL,
                          point ? 0 : 1 + (unsigned)rand_r(&r) % 30, &last);
        bed_start(&bed);
        bed_check_tree(&bed);
        if (last.n != UINT32_MAX) { /* nothing later touches it but the step not acknowledged */
            s = make_step(last.n, seed);
            number_is_used(&s, last.n, last.status);
            again = do_step(&s, last.n, true);
            if (again != -AIFS_EPROTO) { /* else the next step is in, and its slot has moved on */
                struct ack now = make_ack(&s, last.n, again);

                ck_assert_int_eq(again, last.status);
                ck_assert(bed.e.result & SHARD_R_DUPLICATE);
                ck_assert_uint_eq(now.a, last.a);
                ck_assert_uint_eq(now.b, last.b);
            }
        }
        s = make_step(next, seed);
        rc = do_step(&s, next, true);
        ck_assert_int_eq(do_step(&s, next, true), rc);
        ck_assert(bed.e.result & SHARD_R_DUPLICATE);
        number_is_used(&s, next, rc);
        next++;
        bed_check_tree(&bed);
        bed_stop(&bed);
    }
    bed_start(&bed);
    bed_close(&bed);
}

START_TEST(dying_before_the_commit_loses_nothing_acknowledged)
{
    crash_rounds(ROUNDS, "mds.commit.before", (unsigned)_i);
}
END_TEST

START_TEST(dying_after_the_commit_answers_the_retry)
{
    crash_rounds(ROUNDS, "mds.commit.after", (unsigned)_i);
}
END_TEST

START_TEST(dying_at_any_time)
{
    crash_rounds(ROUNDS, NULL, (unsigned)_i);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("crash");

    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, dying_before_the_commit_loses_nothing_acknowledged, 0, 3);
    tcase_add_loop_test(t, dying_after_the_commit_answers_the_retry, 0, 3);
    tcase_add_loop_test(t, dying_at_any_time, 0, 3);
    return suite_run_case("crash", t);
}
