// SPDX-License-Identifier: Apache-2.0
/* Who waits for whom; see the header. */
#include "tools/admin/top_waits.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct out_column columns[] = {
    {"CLIENT", OUT_TEXT, NULL},
    {"MOUNT", OUT_TEXT, NULL},
    {"JOB", OUT_TEXT, NULL},
    {"PID", OUT_COUNT, NULL},
    {"WAITS", OUT_AGE, "age_ns"},
    {"FOR", OUT_TEXT, "kind"},
    {"", OUT_TEXT | OUT_JSON_ONLY, "type"},
    {"INODE", OUT_COUNT, NULL},
    {"PATH", OUT_TEXT, NULL},
    {"OF", OUT_TEXT, "other_client"},
    {"MOUNT", OUT_TEXT, "other_mount"},
    {"PID", OUT_COUNT, "other_pid"},
    {"WHO", OUT_TEXT, "other_state"},
    {"SINCE", OUT_AGE, "other_age_ns"},
    {"TARGET", OUT_COUNT, NULL},
    {"", OUT_COUNT | OUT_JSON_ONLY, "start"},
    {"", OUT_COUNT | OUT_JSON_ONLY, "end"},
    {"", OUT_COUNT | OUT_JSON_ONLY, "session"},
    {"", OUT_COUNT | OUT_JSON_ONLY, "other_session"},
    {"", OUT_TEXT | OUT_JSON_ONLY, "other_job"},
    {"", OUT_COUNT | OUT_JSON_ONLY, "requests"},
};

/* ---- paths ---- */

/* What fdinfo says of a descriptor; it asks no file system. */
static bool is_of_inode(const char *fdinfo, uint64_t ino)
{
    char line[256];
    bool same = false;
    FILE *f = fopen(fdinfo, "re");

    while (f && !same && fgets(line, sizeof line, f)) {
        unsigned long long number;

        same = sscanf(line, "ino: %llu", &number) == 1 && number == ino;
    }
    if (f)
        fclose(f);
    return same;
}

static bool path_at(uint32_t pid, const char *fd, uint64_t ino, char ret_path[PATH_MAX])
{
    char name[64 + NAME_MAX];
    ssize_t n;

    snprintf(name, sizeof name, "/proc/%u/fdinfo/%s", pid, fd);
    if (!is_of_inode(name, ino))
        return false;
    snprintf(name, sizeof name, "/proc/%u/fd/%s", pid, fd);
    n = readlink(name, ret_path, PATH_MAX - 1);
    if (n > 0)
        ret_path[n] = '\0';
    return n > 0;
}

static bool is_here(const struct msg_wait_end *e)
{
    char host[256] = "";

    return e->pid && gethostname(host, sizeof host - 1) == 0 && strlen(host) == e->host.len &&
           !memcmp(host, e->host.data, e->host.len);
}

/* What the process calls the file, under the mount that its client is. */
static bool find_path(const struct msg_wait_end *e, uint64_t ino, char ret_path[PATH_MAX])
{
    char dir[64];
    struct dirent *fd;
    bool found = false;
    DIR *d;

    if (!is_here(e))
        return false;
    snprintf(dir, sizeof dir, "/proc/%u/fd", e->pid);
    d = opendir(dir);
    while (d && !found && (fd = readdir(d)))
        found = fd->d_name[0] != '.' && path_at(e->pid, fd->d_name, ino, ret_path) &&
                (e->mount.len == 0 || !strncmp(ret_path, e->mount.data, e->mount.len));
    if (d)
        closedir(d);
    return found;
}

/* ---- rows ---- */

static void out_bytes(struct out *o, const struct msg_bytes *b)
{
    char text[1024];

    snprintf(text, sizeof text, "%.*s", (int)b->len, b->len ? (const char *)b->data : "");
    out_text(o, text);
}

static void out_if(struct out *o, uint64_t value, bool known)
{
    known ? out_number(o, value) : out_none(o);
}

static const char *kind_of(const struct msg_wait *w)
{
    static const char *const names[] = {[MSG_WAIT_RECORD] = "record",
                                        [MSG_WAIT_FLOCK] = "flock",
                                        [MSG_WAIT_DATA] = "data",
                                        [MSG_WAIT_CACHE] = "cache",
                                        [MSG_WAIT_SERVER] = "server"};

    return w->kind < ARRAY_LEN(names) ? names[w->kind] : "other";
}

/* What the other does. */
static const char *state_of(const struct msg_wait *w)
{
    static const char *const servers[] = {
        [MSG_SERVER_SLOW] = "slow", [MSG_SERVER_DOWN] = "down", [MSG_SERVER_MISSING] = "missing"};

    if (w->kind == MSG_WAIT_SERVER)
        return w->server_state < ARRAY_LEN(servers) ? servers[w->server_state] : "other";
    return !w->has_other ? NULL : w->other_waits ? "waits" : "holds";
}

static void row(struct out *o, const struct msg_wait *w)
{
    bool record = w->kind == MSG_WAIT_RECORD, server = w->kind == MSG_WAIT_SERVER;
    bool other = w->has_other && !server;
    char path[PATH_MAX];

    out_bytes(o, &w->who.host);
    out_bytes(o, &w->who.mount);
    out_bytes(o, &w->who.job);
    out_if(o, w->who.pid, w->who.pid != 0);
    out_number(o, w->who.age_ns);
    out_text(o, kind_of(w));
    out_text(o, w->write ? "write" : "read");
    out_number(o, w->ino);
    out_text(o,
             find_path(&w->who, w->ino, path) || find_path(&w->other, w->ino, path) ? path : NULL);
    out_bytes(o, &w->other.host);
    out_bytes(o, &w->other.mount);
    out_if(o, w->other.pid, w->other.pid != 0);
    out_text(o, state_of(w));
    out_if(o, w->other.age_ns, w->other.age_ns != 0);
    out_if(o, w->target, server);
    out_if(o, w->start, record);
    out_if(o, w->end, record && w->end != MSG_LOCK_END);
    out_if(o, w->who.session, w->who.session != 0);
    out_if(o, w->other.session, other);
    out_bytes(o, &w->other.job);
    out_if(o, w->requests, server);
}

static int by_age(const void *a, const void *b)
{
    const struct msg_wait *x = *(const struct msg_wait *const *)a;
    const struct msg_wait *y = *(const struct msg_wait *const *)b;

    return x->who.age_ns > y->who.age_ns ? -1 : x->who.age_ns < y->who.age_ns;
}

struct out *top_waits(struct admin *a, uint64_t timeout_ns, uint64_t max, bool *ret_more,
                      uint32_t *ret_n)
{
    static const struct msg_empty none;
    const struct msg_wait *sorted[MSG_WAITS_MAX];
    const struct msg_waits_rep *rep;
    const void *answer;
    struct out *o;

    if (rpc_sync_call(a->sync, a->mds_peer, RPC_OP_WAITS, &none, timeout_ns, &answer) < 0)
        return NULL;
    rep = answer;
    for (uint32_t i = 0; i < rep->n_waits; i++)
        sorted[i] = &rep->waits[i];
    qsort(sorted, rep->n_waits, sizeof(sorted[0]), by_age);
    o = out_table(a, "", columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < rep->n_waits && i < max; i++)
        row(o, sorted[i]);
    *ret_more = rep->more;
    *ret_n = rep->n_waits;
    return o;
}
