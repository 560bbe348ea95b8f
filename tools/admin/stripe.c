/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stripe`: layouts, read and set through the mount as the extended attribute "aifs.layout"
 * ("pool=P chunk=N count=N copies=N start=N"), so that they need no key, permissions are those of
 * the directory, and the answer is what the kernel sees.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "tools/admin/admin.h"
#include "tools/admin/layout_text.h"

int layout_text_parse(const char *text, struct layout_text *ret_layout)
{
    static const struct {
        const char *name;
        size_t offset;
    } numbers[] = {{"chunk", offsetof(struct layout_text, chunk_bytes)},
                   {"count", offsetof(struct layout_text, count)},
                   {"copies", offsetof(struct layout_text, copies)},
                   {"start", offsetof(struct layout_text, start)},
                   {"table", offsetof(struct layout_text, table)}};
    char copy[512], *save = NULL;

    *ret_layout = (struct layout_text){0};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');

        if (!value)
            continue;
        *value++ = '\0';
        if (!strcmp(word, "pool"))
            snprintf(ret_layout->pool, sizeof ret_layout->pool, "%.63s", value);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
            if (!strcmp(word, numbers[i].name) &&
                text_parse_u64(value,
                               (uint64_t *)(void *)((char *)ret_layout + numbers[i].offset)) < 0)
                return -EINVAL;
        ret_layout->no_targets |= !strcmp(word, "table") && !strcmp(value, "0");
    }
    return ret_layout->chunk_bytes ? 0 : -EINVAL;
}

int layout_text_get(const char *path, struct layout_text *ret_layout)
{
    char text[512];
    ssize_t n = getxattr(path, "aifs.layout", text, sizeof text - 1);

    if (n < 0)
        return -errno;
    text[n] = '\0';
    return layout_text_parse(text, ret_layout);
}

struct ask {
    const char *count, *size, *pool, *start;
    bool inherit;
};

#define ASK_OPTIONS(ask)                                                                           \
    {"count", 'c', &(ask).count, NULL}, {"size", 'S', &(ask).size, NULL},                          \
        {"pool", 'p', &(ask).pool, NULL}, {"start", 'i', &(ask).start, NULL},                      \
    {                                                                                              \
        "inherit", 0, NULL, &(ask).inherit                                                         \
    }

/* The text for aifs.layout; an exit code. */
static int ask_text(const struct ask *ask, char *out, size_t len)
{
    uint64_t v;
    size_t at = 0;

    out[0] = '\0';
    if (ask->inherit && (ask->count || ask->size || ask->pool || ask->start)) {
        admin_error("--inherit forgets the layout of a directory: it goes with nothing else that "
                    "would be set");
        return ADMIN_USAGE;
    }
    if (ask->inherit) {
        snprintf(out, len, "inherit");
        return ADMIN_OK;
    }
    if (ask->pool)
        at += (size_t)snprintf(out + at, len - at, "pool=%.63s ", ask->pool);
    if (ask->size) {
        if (text_parse_size(ask->size, &v) < 0 || v < LAYOUT_TEXT_CHUNK_MIN ||
            v > LAYOUT_TEXT_CHUNK_MAX || (v & (v - 1))) {
            admin_error("a chunk is a power of two from 64Ki to 64Mi, not \"%s\"", ask->size);
            return ADMIN_USAGE;
        }
        at += (size_t)snprintf(out + at, len - at, "chunk=%llu ", (unsigned long long)v);
    }
    if (ask->count) {
        bool all =
            !strcmp(ask->count, "0") || !strcmp(ask->count, "-1") || !strcmp(ask->count, "all");

        if (!all && (text_parse_u64(ask->count, &v) < 0 || v > 4096)) {
            admin_error("a stripe count is a number up to 4096, or 0 for all, not \"%s\"",
                        ask->count);
            return ADMIN_USAGE;
        }
        at +=
            (size_t)snprintf(out + at, len - at, "count=%llu ", all ? 0ull : (unsigned long long)v);
    }
    if (ask->start) {
        if (text_parse_u64(ask->start, &v) < 0 || v > UINT32_MAX) {
            admin_error("--start is a number, not \"%s\"", ask->start);
            return ADMIN_USAGE;
        }
        at += (size_t)snprintf(out + at, len - at, "start=%llu ", (unsigned long long)v);
    }
    if (at == 0) {
        admin_error("say what to set: -c COUNT, -S SIZE, -p POOL, -i START or --inherit");
        return ADMIN_USAGE;
    }
    out[at - 1] = '\0';
    return ADMIN_OK;
}

static int explain(int err, const char *path, const struct ask *ask)
{
    if (err == -ENOTEMPTY) {
        admin_error("%s has data, so its layout is fixed: make another file with "
                    "\"aifs-admin stripe create\" and copy it there",
                    path);
        return ADMIN_CONFLICT;
    }
    if (err == -ENODEV && ask->pool) {
        admin_error("%s: there is no pool %s (see aifs-admin pool list)", path, ask->pool);
        return ADMIN_NOT_FOUND;
    }
    if (err == -ENOSPC && ask->pool) {
        admin_error("%s: pool %s has no target (see aifs-admin pool list)", path, ask->pool);
        return ADMIN_CONFLICT;
    }
    if (err == -EINVAL) {
        admin_error("%s: the layout cannot be: a chunk size is a power of two from 64KiB to 64MiB, "
                    "and a start is below the number of chains of the pool (see aifs-admin pool "
                    "list)",
                    path);
        return ADMIN_USAGE;
    }
    return admin_fail_path(err, path);
}

/* What was set is told with --json only. */
static const struct out_column done_columns[] = {{"PATH", OUT_TEXT, NULL},
                                                 {"LAYOUT", OUT_TEXT, NULL}};

static void done_row(struct out *done, const char *path, const char *text)
{
    out_text(done, path);
    out_text(done, text);
}

/* A pool without targets, and more stripes than there are targets, are wishes for later: said, for
 * it is not what is got now. */
static void warn_if_less(struct out *done, const char *path, const struct ask *ask)
{
    struct layout_text l;
    uint64_t wanted;

    if (ask->pool && layout_text_get(path, &l) == 0 && l.no_targets) {
        out_warning(done,
                    "%s: pool %s has no targets yet: nothing can be made there (ENOSPC: no space "
                    "left on device) until it has one (aifs-admin target add --pool %s)",
                    path, l.pool, l.pool);
        return;
    }
    if (!ask->count || ask->inherit || text_parse_u64(ask->count, &wanted) < 0 || wanted == 0 ||
        layout_text_get(path, &l) < 0 || l.count == 0 || l.count >= wanted)
        return;
    out_warning(done, "%s: pool %s has %llu target%s: files get %llu stripe%s, not %llu", path,
                l.pool, (unsigned long long)l.count, l.count == 1 ? "" : "s",
                (unsigned long long)l.count, l.count == 1 ? "" : "s", (unsigned long long)wanted);
}

static int done_print(const struct admin *a, struct out *done, int rc, int worst)
{
    if (a->json && rc == ADMIN_OK)
        out_print(done);
    else
        out_drop(done);
    return rc != ADMIN_OK ? rc : worst;
}

int cmd_stripe_set(struct admin *a, int argc, char **argv)
{
    struct ask ask = {0};
    const struct admin_option options[] = {ASK_OPTIONS(ask)};
    struct out *done;
    char text[256];
    int n = admin_options(options, ARRAY_LEN(options), argc, argv), rc, worst = ADMIN_OK;

    if (n < 0)
        return ADMIN_USAGE;
    if (n == 0)
        return admin_usage("stripe", "set", "say for which directory");
    rc = ask_text(&ask, text, sizeof text);
    done = out_table(a, "aifs.stripe.set/1", done_columns, ARRAY_LEN(done_columns));
    for (int i = 0; i < n && rc == ADMIN_OK; i++) {
        admin_watch(a, argv[i]);
        if (setxattr(argv[i], "aifs.layout", text, strlen(text), 0) != 0) {
            worst = explain(-errno, argv[i], &ask);
        } else {
            done_row(done, argv[i], text);
            warn_if_less(done, argv[i], &ask);
        }
    }
    admin_watch(a, NULL);
    return done_print(a, done, rc, worst);
}

int cmd_stripe_create(struct admin *a, int argc, char **argv)
{
    struct ask ask = {0};
    const struct admin_option options[] = {ASK_OPTIONS(ask)};
    struct out *done;
    char text[256];
    int n = admin_options(options, ARRAY_LEN(options), argc, argv), rc, worst = ADMIN_OK;

    if (n < 0)
        return ADMIN_USAGE;
    if (n == 0)
        return admin_usage("stripe", "create", "say which file");
    rc = ask_text(&ask, text, sizeof text);
    done = out_table(a, "aifs.stripe.create/1", done_columns, ARRAY_LEN(done_columns));
    for (int i = 0; i < n && rc == ADMIN_OK; i++) {
        int fd;

        admin_watch(a, argv[i]);
        fd = open(argv[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0) {
            worst = admin_fail(-errno, "%s", argv[i]);
            continue;
        }
        if (fsetxattr(fd, "aifs.layout", text, strlen(text), 0) != 0) {
            worst = explain(-errno, argv[i], &ask);
            unlink(argv[i]);
        } else {
            done_row(done, argv[i], text);
            warn_if_less(done, argv[i], &ask);
        }
        close(fd);
    }
    admin_watch(a, NULL);
    return done_print(a, done, rc, worst);
}

int cmd_stripe_get(struct admin *a, int argc, char **argv)
{
    static const struct out_column columns[] = {
        {"PATH", OUT_TEXT, NULL},   {"POOL", OUT_TEXT, NULL},    {"CHUNK", OUT_SIZE, "chunk_bytes"},
        {"COUNT", OUT_COUNT, NULL}, {"COPIES", OUT_COUNT, NULL}, {"START", OUT_COUNT, NULL}};
    bool count = false, size = false, pool = false, start = false;
    const struct admin_option options[] = {{"count", 'c', NULL, &count},
                                           {"size", 'S', NULL, &size},
                                           {"pool", 'p', NULL, &pool},
                                           {"start", 'i', NULL, &start}};
    int n = admin_options(options, ARRAY_LEN(options), argc, argv), worst = ADMIN_OK, rows = 0;
    struct out *o = NULL;

    if (n < 0)
        return ADMIN_USAGE;
    if (n == 0)
        return admin_usage("stripe", "get", "say of what");
    if (count + size + pool + start > 1) /* one value, for scripts: which would be which? */
        return admin_usage("stripe", "get",
                           "--count, --size, --pool and --start print one value: take one of them, "
                           "or none for all");
    if (a->json || !(count || size || pool || start))
        o = out_table(a, "aifs.stripe.get/1", columns, ARRAY_LEN(columns));
    for (int i = 0; i < n; i++) {
        struct layout_text l;
        int rc;

        admin_watch(a, argv[i]);
        rc = layout_text_get(argv[i], &l);
        if (rc < 0) {
            worst = admin_fail_path(rc, argv[i]);
        } else if (o) {
            rows++;
            out_text(o, argv[i]);
            out_text(o, l.pool);
            out_number(o, l.chunk_bytes);
            l.count ? out_number(o, l.count) : out_text(o, "all");
            out_number(o, l.copies);
            out_number(o, l.start);
        } else if (pool) {
            puts(l.pool);
        } else {
            printf("%llu\n", (unsigned long long)(count  ? l.count
                                                  : size ? l.chunk_bytes
                                                         : l.start));
        }
    }
    admin_watch(a, NULL);
    if (o)
        rows || a->json ? out_print(o) : out_drop(o);
    return worst;
}
