/* SPDX-License-Identifier: Apache-2.0 */
/* `fsck check`: feeds the checker (tools/fsck) with one snapshot of the metadata and with the chunk
 * lists of all targets, and prints what it finds. Changes nothing. */
#include "tools/fsck/fsck.h"

#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "mds/store/dump_fmt.h"
#include "tools/admin/admin.h"
#include "tools/admin/dump_stream.h"

static const struct out_column columns[] = {{"LEVEL", OUT_TEXT, NULL},
                                            {"CODE", OUT_TEXT, NULL},
                                            {"INODE", OUT_COUNT, NULL},
                                            {"PATH", OUT_TEXT, NULL},
                                            {"WHAT", OUT_TEXT, NULL}};

static void report(void *arg, enum fsck_level level, const char *code, uint64_t ino,
                   const char *path, const char *text)
{
    struct out *o = arg;

    out_text(o, level == FSCK_DAMAGE ? "damage" : "note");
    out_text(o, code);
    out_number(o, ino);
    out_text(o, path);
    out_text(o, text);
}

static int feed_page(void *arg, const void *page, uint32_t len)
{
    struct dump_item item;

    for (size_t at = 0; at < len; at += item.size)
        if (dump_parse((const uint8_t *)page + at, len - at, &item) < 0 ||
            fsck_record(arg, item.key, item.key_len, item.value, item.value_len) < 0)
            return admin_fail(-ENOMEM, "fsck");
    return ADMIN_OK;
}

static int feed_target(struct admin *a, struct fsck *f, struct rpc_peer *peer, uint32_t target,
                       bool verify)
{
    struct msg_chunk_list_req req = {
        .target = target, .first = true, .max = verify ? 64 : 4096, .verify = verify};

    for (;;) {
        const struct msg_chunk_list_rep *rep;
        const void *answer;
        int rc = rpc_sync_call(a->sync, peer, RPC_OP_OSS_CHUNK_LIST, &req,
                               verify ? 60 * NS_PER_S : a->timeout_ns, &answer);

        if (rc < 0)
            return rc;
        rep = answer;
        for (uint32_t i = 0; i < rep->n_chunks && rc == 0; i++)
            rc = fsck_chunk(f, target, &rep->chunks[i]);
        if (rc < 0 || rep->eof || rep->n_chunks == 0)
            return rc;
        req.first = false;
        req.after_ino = rep->chunks[rep->n_chunks - 1].ino;
        req.after_chunk = rep->chunks[rep->n_chunks - 1].chunk;
    }
}

static int feed_targets(struct admin *a, struct fsck *f, const struct cluster_map *map, bool verify,
                        struct out *o, uint32_t *ret_unchecked)
{
    for (uint32_t i = 0; i < map->n_targets; i++) {
        const struct map_target *t = &map->targets[i];
        const struct map_node *node = map_node(map, t->node);
        struct rpc_peer *peer;
        int rc;

        if (t->given_up)
            continue;
        rc = node ? admin_connect_node(a, node, &peer) : -ENOENT;

        if (rc == 0)
            rc = feed_target(a, f, peer, t->id, verify);
        if (rc < 0) {
            out_warning(o, "target %u (%s) on %s was not checked: %s", t->id, t->alias,
                        node ? node->alias : "an unknown server", err_text(rc));
            ++*ret_unchecked;
        }
    }
    return *ret_unchecked ? ADMIN_PARTIAL : ADMIN_OK;
}

/* What is on its way out has neither all of its names nor all of its chunks. */
static int see_trees(struct admin *a, struct out *o)
{
    static const struct msg_empty none;
    const struct msg_status_rep *rep;
    const void *answer;
    int rc = admin_call_mds(a, RPC_OP_STATUS, &none, &answer);

    if (rc != ADMIN_OK)
        return rc;
    rep = answer;
    out_total(o, "trees_removing", rep->n_trees);
    if (rep->n_trees)
        out_warning(o,
                    "%u removed tree%s not wholly gone yet: notes may come from that "
                    "(see aifs-admin rmtree --list)",
                    rep->n_trees, rep->n_trees == 1 ? " is" : "s are");
    return ADMIN_OK;
}

static void out_counts(struct out *o, const struct fsck_counts *c, const struct cluster_map *map,
                       uint32_t unchecked)
{
    out_total(o, "inodes", c->inodes);
    out_total(o, "names", c->names);
    out_total(o, "chunks", c->chunks);
    out_total(o, "chunk_bytes", c->chunk_bytes);
    out_total(o, "damage", c->damage);
    out_total(o, "notes", c->notes);
    out_total(o, "targets", map->n_targets);
    out_total(o, "targets_unchecked", unchecked);
}

static void print_counts(const struct fsck *f, const struct cluster_map *map, uint32_t unchecked)
{
    struct fsck_counts c;
    char bytes[32];

    fsck_get_counts(f, &c);
    fprintf(stderr,
            "%llu inodes (%llu directories, %llu files of which %llu inline, %llu symlinks, %llu "
            "others), %llu names, %llu xattrs\n"
            "%llu orphans, %llu to destroy, %llu to cut; %llu chunks (%s), %llu without an inode\n"
            "damage: %llu finding%s; %llu note%s\n",
            (unsigned long long)c.inodes, (unsigned long long)c.directories,
            (unsigned long long)c.files, (unsigned long long)c.inline_files,
            (unsigned long long)c.symlinks, (unsigned long long)c.others,
            (unsigned long long)c.names, (unsigned long long)c.xattrs,
            (unsigned long long)c.orphans, (unsigned long long)c.destroy_queue,
            (unsigned long long)c.punch_queue, (unsigned long long)c.chunks,
            text_format_size(c.chunk_bytes, bytes, sizeof bytes),
            (unsigned long long)c.orphan_chunks, (unsigned long long)c.damage,
            c.damage == 1 ? "" : "s", (unsigned long long)c.notes, c.notes == 1 ? "" : "s");
    if (unchecked)
        fprintf(stderr,
                "INCOMPLETE: the chunks of %u of %u targets were not checked (see the warnings)\n",
                unchecked, map->n_targets);
}

int cmd_fsck_check(struct admin *a, int argc, char **argv)
{
    bool verify = false;
    const struct admin_option options[] = {{"verify", 0, NULL, &verify}};
    struct cluster_map *map;
    struct fsck_counts counts;
    struct fsck *f;
    struct out *o;
    uint64_t records;
    uint32_t unchecked = 0;
    int n = admin_options(options, ARRAY_LEN(options), argc, argv), rc;

    if (n != 0)
        return n < 0 ? ADMIN_USAGE
                     : admin_usage("fsck", "check", "unexpected argument %s", argv[0]);
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    o = out_table(a, "aifs.fsck.check/1", columns, ARRAY_LEN(columns));
    if (fsck_create(map, report, o, &f) < 0) {
        map_put(map);
        return admin_fail(-ENOMEM, "fsck");
    }
    rc = see_trees(a, o);
    if (rc == ADMIN_OK)
        rc = dump_stream(a, feed_page, f, &records);
    if (rc == ADMIN_OK && fsck_metadata_done(f) < 0)
        rc = ADMIN_FAILED;
    if (rc == ADMIN_OK)
        rc = feed_targets(a, f, map, verify, o, &unchecked);
    fsck_get_counts(f, &counts);
    out_counts(o, &counts, map, unchecked);
    if (rc != ADMIN_OK && rc != ADMIN_PARTIAL)
        out_drop(o); /* half a snapshot of the names says nothing */
    else if (a->json || counts.damage || counts.notes)
        out_print(o);
    else
        out_drop(o);
    if (!a->quiet && !a->json && (rc == ADMIN_OK || rc == ADMIN_PARTIAL))
        print_counts(f, map, unchecked);
    fsck_destroy(f);
    map_put(map);
    return (rc == ADMIN_OK || rc == ADMIN_PARTIAL) && counts.damage ? ADMIN_FAILED : rc;
}
