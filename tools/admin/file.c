/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `file`: where the bytes of a file are. Layout and inode number come through the mount; what each
 * target really holds is asked of the targets themselves when a key is at hand, and computed from
 * layout and size otherwise.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "proto/layout.h"
#include "tools/admin/cluster.h"
#include "tools/admin/layout_text.h"

static int get_text(const char *path, const char *name, char *out, size_t len)
{
    ssize_t n = getxattr(path, name, out, len - 1);

    if (n < 0)
        return -errno;
    out[n] = '\0';
    return 0;
}

int cmd_file_info(struct admin *a, int argc, char **argv)
{
    static const struct out_column columns[] = {{"PATH", OUT_TEXT, NULL},
                                                {"INODE", OUT_COUNT, NULL},
                                                {"FID", OUT_TEXT, NULL},
                                                {"SIZE", OUT_SIZE, "size_bytes"},
                                                {"DATA", OUT_TEXT, NULL},
                                                {"POOL", OUT_TEXT, NULL},
                                                {"CHUNK", OUT_SIZE, "chunk_bytes"},
                                                {"COUNT", OUT_COUNT, NULL},
                                                {"COPIES", OUT_COUNT, NULL}};
    struct out *o;
    int worst = ADMIN_OK, rows = 0;

    if (argc == 0)
        return admin_usage("file", "info", "say of what");
    o = out_table(a, "aifs.file.info/1", columns, ARRAY_LEN(columns));
    for (int i = 0; i < argc; i++) {
        char fid[64], data[32];
        struct layout_text l;
        struct stat st;
        int rc;

        admin_watch(a, argv[i]);
        rc = stat(argv[i], &st) == 0 ? 0 : -errno;
        if (rc == 0)
            rc = get_text(argv[i], "aifs.fid", fid, sizeof fid);
        if (rc == 0)
            rc = layout_text_get(argv[i], &l);
        if (rc < 0) {
            worst = admin_fail_path(rc, argv[i]);
            continue;
        }
        if (get_text(argv[i], "aifs.data", data, sizeof data) < 0)
            data[0] = '\0';
        rows++;
        out_text(o, argv[i]);
        out_number(o, st.st_ino);
        out_text(o, fid);
        out_number(o, (uint64_t)st.st_size);
        out_text(o, S_ISDIR(st.st_mode) ? "directory" : data);
        out_text(o, l.pool);
        out_number(o, l.chunk_bytes);
        l.count ? out_number(o, l.count) : out_text(o, "all");
        out_number(o, l.copies);
    }
    admin_watch(a, NULL);
    rows || a->json ? out_print(o) : out_drop(o);
    return worst;
}

struct place {
    uint32_t target;
    bool asked, known; /* it has answered */
    uint64_t chunks, bytes;
};

struct where {
    struct place places[4096];
    unsigned n;
};

static struct place *place_of(struct where *w, uint32_t target)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->places[i].target == target)
            return &w->places[i];
    if (w->n == ARRAY_LEN(w->places))
        return NULL;
    w->places[w->n] = (struct place){.target = target};
    return &w->places[w->n++];
}

/* What the target says it holds of the inode. */
static int ask_target(struct admin *a, struct rpc_peer *peer, uint32_t target, uint64_t ino,
                      struct place *place)
{
    struct msg_chunk_list_req req = {.target = target, .only_ino = ino, .first = true, .max = 4096};

    for (;;) {
        const struct msg_chunk_list_rep *rep;
        const void *answer;
        int rc = rpc_sync_call(a->sync, peer, RPC_OP_OSS_CHUNK_LIST, &req, a->timeout_ns, &answer);

        if (rc < 0)
            return rc;
        rep = answer;
        for (uint32_t i = 0; i < rep->n_chunks; i++) {
            place->chunks++;
            place->bytes += rep->chunks[i].len;
        }
        if (rep->eof || rep->n_chunks == 0)
            return 0;
        req.first = false;
        req.after_ino = rep->chunks[rep->n_chunks - 1].ino;
        req.after_chunk = rep->chunks[rep->n_chunks - 1].chunk;
    }
}

/* Asks every target that the layout names. */
static int ask_targets(struct admin *a, const struct cluster_map *map, uint64_t ino,
                       const struct msg_layout *l, struct where *w, struct out *o)
{
    int rc = ADMIN_OK;

    for (uint32_t i = 0; i < l->stripe_count; i++) {
        const struct map_chain *chain = layout_chain(l, map, i);
        const struct map_target *t = chain ? map_target(map, chain->targets[0]) : NULL;
        const struct map_node *node = t ? map_node(map, t->node) : NULL;
        struct place *p = t ? place_of(w, t->id) : NULL;
        struct rpc_peer *peer;
        int err = -EHOSTUNREACH;

        if (!p || p->asked || !(node || t->given_up)) /* two stripes may be on one target */
            continue;
        p->asked = true;
        if (t->given_up) { /* its server is perhaps not known any more */
            out_warning(o, "target %u (%s) was given up: what the file had there is lost", t->id,
                        t->alias);
            rc = ADMIN_PARTIAL;
            continue;
        }
        err = admin_connect_node(a, node, &peer);
        if (err == 0)
            err = ask_target(a, peer, t->id, ino, p);
        p->known = err == 0;
        if (err < 0) {
            out_warning(o, "target %u on %s did not answer: %s", t->id, node->alias, err_text(err));
            rc = ADMIN_PARTIAL;
        }
    }
    return rc;
}

static int one_offset(struct admin *a, const struct cluster_map *map, const struct msg_layout *l,
                      uint64_t offset)
{
    static const struct out_column columns[] = {{"OFFSET", OUT_COUNT, NULL},
                                                {"CHUNK", OUT_COUNT, NULL},
                                                {"TARGET", OUT_COUNT, NULL},
                                                {"ALIAS", OUT_TEXT, NULL}};
    const struct map_chain *chain = layout_chain(l, map, layout_chunk(l, offset));
    const struct map_target *t = chain ? map_target(map, chain->targets[0]) : NULL;
    struct out *o = out_table(a, "aifs.file.where.offset/1", columns, ARRAY_LEN(columns));

    out_number(o, offset);
    out_number(o, layout_chunk(l, offset));
    t ? out_number(o, t->id) : out_none(o);
    out_text(o, t ? t->alias : NULL);
    out_print(o);
    return ADMIN_OK;
}

static int make_layout(const struct cluster_map *map, const struct layout_text *text,
                       struct msg_layout *ret_layout)
{
    const struct map_pool *pool = map_pool_by_name(map, text->pool, (uint32_t)strlen(text->pool));
    const struct map_table *table = pool ? map_table(map, pool->id, (uint32_t)text->copies) : NULL;

    if (!table)
        return -ENOENT;
    *ret_layout =
        (struct msg_layout){.pool = pool->id,
                            .copies = (uint32_t)text->copies,
                            .table_len = text->table ? (uint32_t)text->table : table->n_chains,
                            .chunk_bytes = (uint32_t)text->chunk_bytes,
                            .stripe_count = (uint32_t)text->count,
                            .start = (uint32_t)text->start};
    return layout_check(ret_layout);
}

static const struct out_column place_columns[] = {{"TARGET", OUT_COUNT, NULL},
                                                  {"ALIAS", OUT_TEXT, NULL},
                                                  {"NODE", OUT_TEXT, NULL},
                                                  {"CHUNKS", OUT_COUNT, NULL},
                                                  {"BYTES", OUT_SIZE, "bytes"}};

static void print_inline(const struct admin *a, const char *path, const struct stat *st)
{
    if (a->json)
        out_print(out_table(a, "aifs.file.where/1", place_columns, ARRAY_LEN(place_columns)));
    else
        printf("%s: %lld bytes, inline in the metadata server\n", path, (long long)st->st_size);
}

static int print_places(struct admin *a, const struct cluster_map *map, uint64_t ino,
                        const struct msg_layout *l)
{
    struct where *w = calloc(1, sizeof *w);
    struct out *o = out_table(a, "aifs.file.where/1", place_columns, ARRAY_LEN(place_columns));
    int rc = w ? ask_targets(a, map, ino, l, w, o) : ADMIN_FAILED;

    for (unsigned i = 0; w && i < w->n; i++) {
        const struct map_target *t = map_target(map, w->places[i].target);
        const struct map_node *n = t ? map_node(map, t->node) : NULL;

        out_number(o, w->places[i].target);
        out_text(o, t ? t->alias : NULL);
        out_text(o, n ? n->alias : NULL);
        w->places[i].known ? out_number(o, w->places[i].chunks) : out_none(o);
        w->places[i].known ? out_number(o, w->places[i].bytes) : out_none(o);
    }
    out_print(o);
    free(w);
    return rc;
}

int cmd_file_where(struct admin *a, int argc, char **argv)
{
    char data[32];
    struct layout_text text;
    struct cluster_map *map;
    struct msg_layout l;
    struct stat st;
    uint64_t offset = 0;
    int rc;

    if (argc < 1 || argc > 2)
        return admin_usage("file", "where", "say of which file, and at most one offset");
    if (argc == 2 && text_parse_size(argv[1], &offset) < 0)
        return admin_usage("file", "where", "\"%s\" is not an offset (0, 5Mi)", argv[1]);
    admin_watch(a, argv[0]);
    if (stat(argv[0], &st) != 0)
        return admin_fail(-errno, "%s", argv[0]);
    if (!S_ISREG(st.st_mode)) {
        admin_error("%s is not a regular file", argv[0]);
        return ADMIN_USAGE;
    }
    rc = layout_text_get(argv[0], &text);
    if (rc < 0)
        return admin_fail_path(rc, argv[0]);
    if (argc == 2 && offset >= (uint64_t)st.st_size) {
        admin_error("%s: offset %llu is behind the end of the file, which has %lld bytes", argv[0],
                    (unsigned long long)offset, (long long)st.st_size);
        return ADMIN_NOT_FOUND;
    }
    if (get_text(argv[0], "aifs.data", data, sizeof data) == 0 && !strcmp(data, "inline")) {
        print_inline(a, argv[0], &st);
        return ADMIN_OK;
    }
    admin_watch(a, NULL);
    admin_connect_by(a, argv[0]);
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = admin_check_mount(a, argv[0]);
    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    rc = make_layout(map, &text, &l);
    if (rc < 0)
        rc = admin_fail(rc, "%s: its layout names a pool that the map does not have", argv[0]);
    else if (argc == 2)
        rc = one_offset(a, map, &l, offset);
    else
        rc = print_places(a, map, st.st_ino, &l);
    map_put(map);
    return rc;
}
