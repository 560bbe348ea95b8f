/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a demo cluster spend, from /proc: servers by their pid files, mounts by
 * command lines that name the demo's folder. One that has ended counts no more.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/bench.h"

static bool read_file(const char *path, char *out, size_t len)
{
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(out, 1, len - 1, f) : 0;

    if (f)
        fclose(f);
    for (size_t i = 0; i < n; i++) /* words of a command line */
        if (out[i] == '\0')
            out[i] = ' ';
    out[n] = '\0';
    return n > 0;
}

static void add(struct bench_pids *p, pid_t pid)
{
    if (pid > 0 && p->n < BENCH_PIDS_MAX)
        p->pids[p->n++] = pid;
}

/* The name alone: to read the words of a process that waits for a page of a file that is mapped
 * would wait with it. */
static bool is_named(pid_t pid, const char *name)
{
    char path[64], text[64];

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    return read_file(path, text, sizeof text) && strncmp(text, name, strlen(name)) == 0;
}

static void find_mounts(struct bench *b)
{
    DIR *d = opendir("/proc");
    struct dirent *e;

    while (d && (e = readdir(d)) != NULL) {
        char path[300], text[8192];
        pid_t pid = (pid_t)atoi(e->d_name);

        if (pid <= 0 || !is_named(pid, "aifs-mount"))
            continue;
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        if (read_file(path, text, sizeof text) && strstr(text, b->demo))
            add(&b->mounts, pid);
    }
    if (d)
        closedir(d);
}

int bench_find_demo(struct bench *b)
{
    DIR *d = opendir(b->demo);
    struct dirent *e;

    b->servers.n = b->mds.n = b->mounts.n = 0;
    while (d && (e = readdir(d)) != NULL) {
        char path[4096], text[32];

        snprintf(path, sizeof path, "%s/%s/run/pid", b->demo, e->d_name);
        if (!read_file(path, text, sizeof text))
            continue;
        add(&b->servers, (pid_t)atoi(text));
        if (strncmp(e->d_name, "mds", 3) == 0)
            add(&b->mds, (pid_t)atoi(text));
    }
    if (d)
        closedir(d);
    if (b->servers.n == 0) {
        bench_error("--demo: no servers run in %s (aifs-admin demo up --dir %s)", b->demo, b->demo);
        return 2;
    }
    find_mounts(b);
    return 0;
}

/* utime and stime, fields 14 and 15; the name, field 2, may hold anything but ends with the last
 * bracket. */
static double cpu_seconds(pid_t pid)
{
    unsigned long long user, system;
    char path[64], text[1024], *at;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!read_file(path, text, sizeof text) || !(at = strrchr(text, ')')) ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) !=
            2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

double bench_pids_cpu_seconds(const struct bench_pids *p)
{
    double sum = 0;

    for (unsigned i = 0; i < p->n; i++)
        sum += cpu_seconds(p->pids[i]);
    return p->n ? sum : -1;
}

uint64_t bench_pids_written(const struct bench_pids *p)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < p->n; i++) {
        char path[64], text[1024];
        const char *at;

        snprintf(path, sizeof path, "/proc/%d/io", (int)p->pids[i]);
        at = read_file(path, text, sizeof text) ? strstr(text, "wchar:") : NULL;
        sum += at ? strtoull(at + strlen("wchar:"), NULL, 10) : 0;
    }
    return sum;
}
