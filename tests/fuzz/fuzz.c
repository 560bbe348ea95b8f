// SPDX-License-Identifier: Apache-2.0
/* See fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"

#define LONG_TIMES 106u

static const char *running = "none";
static uint64_t running_seed;

static void tell_seed(void)
{
    char line[128];
    int n = snprintf(line, sizeof line, "died in: --case %s --seed %llu --count 1\n", running,
                     (unsigned long long)running_seed);

    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(1);
}

static void on_abort(int sig)
{
    tell_seed();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* There only with a sanitizer. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

void fuzz_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, expr);
    abort();
}

static size_t mutate_once(struct rng *g, uint8_t *data, size_t len)
{
    static const uint8_t edges[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe};
    size_t at = rng_below(g, (uint32_t)len), n = 1 + rng_below(g, (uint32_t)MIN(len - at, 16));

    switch (rng_below(g, 6)) {
    case 0:
        data[at] ^= (uint8_t)(1u << rng_below(g, 8));
        break;
    case 1:
        data[at] = edges[rng_below(g, ARRAY_LEN(edges))];
        break;
    case 2:
        data[at] = (uint8_t)(data[at] + rng_below(g, 9) - 4);
        break;
    case 3:
        memset(data + at, edges[rng_below(g, ARRAY_LEN(edges))], n);
        break;
    case 4: /* a piece from elsewhere */
        memmove(data + at, data + rng_below(g, (uint32_t)(len - n + 1)), n);
        break;
    default: /* something is missing */
        memmove(data + at, data + at + n, len - at - n);
        return len - n;
    }
    return len;
}

size_t fuzz_mutate(struct rng *g, uint8_t *data, size_t len)
{
    for (uint32_t n = 1 + rng_below(g, 8); len > 0 && n > 0; n--)
        len = mutate_once(g, data, len);
    return len > 0 && rng_below(g, 16) == 0 ? rng_below(g, (uint32_t)len) : len;
}

static void run_case(const struct fuzz_case *c, uint64_t seed, uint64_t count, uint64_t until_ns)
{
    uint64_t i;

    running = c->name;
    for (i = 0; count ? i < count : clock_mono_ns(clock_real()) < until_ns; i++) {
        struct rng g = {seed + i};

        running_seed = seed + i;
        c->run(&g);
    }
    printf("%s: %llu iterations from seed %llu\n", c->name, (unsigned long long)i,
           (unsigned long long)seed);
}

/* In the long form everything takes so much longer, but for one case alone. */
static uint64_t patience(bool all)
{
    const char *long_form = getenv("AIFS_TEST_LONG");

    return all && long_form && *long_form ? LONG_TIMES : 1;
}

int fuzz_main(int argc, char **argv, const struct fuzz_case *cases, size_t n)
{
    const char *only = NULL;
    uint64_t seconds = 10, count = 0, seed = (uint64_t)clock_wall_ns(clock_real());

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--case") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--count") == 0)
            count = strtoull(argv[i + 1], NULL, 0);
        else
            return 2;
    }
    seconds *= patience(!only);
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    if (__sanitizer_set_death_callback) {
        signal(SIGSEGV, SIG_DFL);
        __sanitizer_set_death_callback(tell_seed);
    }
    for (size_t i = 0; i < n; i++) {
        if (!only || strcmp(only, cases[i].name) == 0)
            run_case(&cases[i], seed, count,
                     clock_mono_ns(clock_real()) + seconds * NS_PER_S / (only ? 1 : n));
    }
    return 0;
}
