/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim [--from SEED] [--seeds N] [--ops N] [--seed SEED] [--no-faults] [--verbose] [--trace] [--all]
 *
 * Runs N seeds. The first one that fails is printed with its history, and the exit status is 1;
 * with --all the others are run too. The first few are run twice: the same seed is the same run.
 * With AIFS_TEST_LONG set it is LONG_SEEDS seeds, and whatever the simulator knows of and has not
 * met is a failure.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/core/core.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/net/net.h"
#include "proto/msg.h"
#include "tests/sim/sim.h"

#define LIMIT_NS   (600 * NS_PER_S)
#define LONG_SEEDS 12000u
#define TWICE      10u
#define QUIET_NS   (70 * NS_PER_S)
#define HARD_PART  100u /* one of so many may be too hard to check */

static unsigned n_ops = 80, n_hard;

static void print_stuck(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct strbuf b;

        if (!sim_client(i)->up)
            continue;
        strbuf_init(&b);
        core_print_requests(sim_client(i)->core, &b);
        fprintf(stderr, "client%u:\n%s\n", i + 1, b.data);
        strbuf_fini(&b);
    }
}

static void fail(const char *what)
{
    fprintf(stderr, "sim: seed %" PRIu64 ": %s\n", sim.seed, what);
}

static bool nothing_waits(void)
{
    if (sim_run_until(sim_work_done, NULL, LIMIT_NS))
        return true;
    history_print(&sim.history, stderr);
    print_stuck();
    fail("operations hang");
    return false;
}

static bool explained(void)
{
    const struct op *o;
    int rc = history_check(&sim.history, &o);

    n_hard += rc < 0;
    if (rc <= 0)
        return true;
    history_print(&sim.history, stderr);
    fail("nothing explains this answer:");
    fprintf(stderr, "%u ", (unsigned)(o - sim.history.ops));
    op_print(o, stderr);
    return false;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static bool run_seed(uint64_t seed)
{
    bool good;

    sim.seed = seed;
    sim.trace = sim.steps = 0;
    sim_random_seed(seed);
    clock_virtual_init(&sim.clock, 1000 * NS_PER_S, 1700000000ll * (int64_t)NS_PER_S);
    bool with = sim.faults;
    sim.faults = false;
    sim_work_start(0);
    sim_faults_start();
    sim_nodes_create();
    sim.faults = with;
    sim_work_start(n_ops);
    sim_faults_start();
    good = nothing_waits();
    sim_faults_end();
    if (good && sim_chance(20)) /* what waits for a minute's quiet has its turn too */
        sim_run_until(never, NULL, QUIET_NS);
    if (good) {
        sim_work_sweep();
        good = nothing_waits();
        sim_work_end();
    }
    if (good)
        good = explained();
    sim_nodes_destroy();
    sim_store_forget();
    sim_chunks_forget();
    return good;
}

/* An assertion of the code under test. */
static void on_abort(int signal)
{
    char text[64];
    int n =
        snprintf(text, sizeof text, "sim: seed %" PRIu64 " ended by signal %d\n", sim.seed, signal);

    (void)!write(STDERR_FILENO, text, (size_t)n);
}

static struct {
    uint64_t from, n;
    bool trace, all, one;
} options = {.from = 1, .n = 100};

static void parse(int argc, char **argv)
{
    static const struct option known[] = {{"from", required_argument, NULL, 'f'},
                                          {"seeds", required_argument, NULL, 'n'},
                                          {"ops", required_argument, NULL, 'o'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"no-faults", no_argument, NULL, 'q'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"all", no_argument, NULL, 'a'},
                                          {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        if (c == 'f' || c == 's')
            options.from = strtoull(optarg, NULL, 0);
        else if (c == 'n')
            options.n = strtoull(optarg, NULL, 0);
        else if (c == 'o')
            n_ops = (unsigned)strtoul(optarg, NULL, 0);
        else if (c == 'q')
            sim.faults = false;
        else if (c == '?')
            exit(2);
        options.one |= c == 's';
        sim.verbose |= c == 'v';
        options.trace |= c == 't';
        options.all |= c == 'a';
    }
    if (options.one)
        options.n = 1;
}

static bool run_once_or_twice(uint64_t i)
{
    uint64_t trace;

    if (!run_seed(options.from + i))
        return false;
    if (options.trace)
        printf("%" PRIu64 " %016" PRIx64 " %" PRIu64 "\n", sim.seed, sim.trace, sim.steps);
    if (i >= TWICE || options.one)
        return true;
    trace = sim.trace;
    if (run_seed(options.from + i) && trace == sim.trace)
        return true;
    fail("is another run when it is run again");
    return false;
}

int main(int argc, char **argv)
{
    const char *long_form = getenv("AIFS_TEST_LONG");
    uint64_t failed = 0;
    unsigned zeros;

    sim.faults = true;
    parse(argc, argv);
    if (long_form && *long_form && !options.one)
        options.n = LONG_SEEDS;
    setvbuf(stdout, NULL, _IOLBF, 0);
    log_set_level(sim.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
    signal(SIGABRT, on_abort);
    SIM_CHECK(buf_pool_create("sim", MSG_BULK_MAX, 16, &sim.pool) == 0);
    for (uint64_t i = 0; i < options.n && (!failed || options.all); i++)
        failed += !run_once_or_twice(i);
    buf_pool_destroy(sim.pool);
    zeros = sim_cover_print(stdout);
    printf("%" PRIu64 " seeds, %" PRIu64 " failed, %u too hard to check, %u things never met\n",
           options.n, failed, n_hard, zeros);
    if (long_form && *long_form && !options.one && (zeros || n_hard > options.n / HARD_PART))
        return 1;
    return failed ? 1 : 0;
}
