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
                                            {"WHAT", OUT_TEXT, NULL}};

static void report(void *arg, enum fsck_level level, const char *code, uint64_t ino,
                   const char *text)
{
    struct out *o = arg;

    out_text(o, level == FSCK_DAMAGE ? "damage" : "note");
    out_text(o, code);
    out_number(o, ino);
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
                        struct out *o)
{
    int worst = ADMIN_OK;

    for (uint32_t i = 0; i < map->n_targets; i++) {
        const struct map_target *t = &map->targets[i];
        const struct map_node *node = map_node(map, t->node);
        struct rpc_peer *peer;
        int rc = node ? admin_connect_node(a, node, &peer) : -ENOENT;

        if (rc == 0)
            rc = feed_target(a, f, peer, t->id, verify);
        if (rc < 0) {
            out_warning(o, "target %u could not be read: %s", t->id, err_text(rc));
            worst = ADMIN_PARTIAL;
        }
    }
    return worst;
}

static void print_counts(const struct fsck *f)
{
    struct fsck_counts c;
    char bytes[32];

    fsck_get_counts(f, &c);
    fprintf(stderr,
            "%llu inodes (%llu directories, %llu files of which %llu inline, %llu symlinks, %llu "
            "others), %llu names, %llu xattrs\n"
            "%llu orphans, %llu to destroy, %llu to cut; %llu chunks (%s), %llu without an inode\n"
            "%llu findings of damage, %llu notes\n",
            (unsigned long long)c.inodes, (unsigned long long)c.directories,
            (unsigned long long)c.files, (unsigned long long)c.inline_files,
            (unsigned long long)c.symlinks, (unsigned long long)c.others,
            (unsigned long long)c.names, (unsigned long long)c.xattrs,
            (unsigned long long)c.orphans, (unsigned long long)c.destroy_queue,
            (unsigned long long)c.punch_queue, (unsigned long long)c.chunks,
            text_format_size(c.chunk_bytes, bytes, sizeof bytes),
            (unsigned long long)c.orphan_chunks, (unsigned long long)c.damage,
            (unsigned long long)c.notes);
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
    rc = dump_stream(a, feed_page, f, &records);
    if (rc == ADMIN_OK && fsck_metadata_done(f) < 0)
        rc = ADMIN_FAILED;
    if (rc == ADMIN_OK)
        rc = feed_targets(a, f, map, verify, o);
    fsck_get_counts(f, &counts);
    if (a->json || counts.damage || counts.notes)
        out_print(o);
    else
        out_drop(o);
    if (!a->quiet)
        print_counts(f);
    fsck_destroy(f);
    map_put(map);
    return rc == ADMIN_OK && counts.damage ? ADMIN_FAILED : rc;
}
