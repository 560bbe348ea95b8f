/* SPDX-License-Identifier: Apache-2.0 */
/* `mds dump` and `mds load`: the backup of a metadata server. A dump is taken online from one
 * snapshot; loading makes an empty directory into that state. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "mds/store/dump_fmt.h"
#include "tools/admin/admin.h"
#include "tools/admin/dump_stream.h"

static int dump_identity(struct admin *a, struct uuid *ret_fs)
{
    static const struct msg_empty none;
    const void *rep;
    int rc = admin_call_mds(a, RPC_OP_STATUS, &none, &rep);

    if (rc == ADMIN_OK)
        *ret_fs = ((const struct msg_status_rep *)rep)->fs;
    return rc;
}

int dump_stream(struct admin *a, dump_page_fn *page, void *arg, uint64_t *ret_records)
{
    uint8_t last_key[DUMP_KEY_MAX];
    struct msg_dump_req req = {0};
    void *buf = malloc(MSG_BULK_MAX);
    int rc = buf ? admin_connect(a) : ADMIN_FAILED;
    const void *rep;

    *ret_records = 0;
    while (rc == ADMIN_OK) {
        const struct msg_dump_rep *r;
        struct dump_item item;
        uint32_t len;
        int err = rpc_sync_call_bulk(a->sync, a->mds_peer, RPC_OP_DUMP, &req, buf, MSG_BULK_MAX,
                                     &len, a->timeout_ns * 4, &rep);

        if (err < 0) {
            rc = admin_fail(err, "dump of the metadata server");
            break;
        }
        r = rep;
        req.dump = r->dump;
        for (size_t at = 0; at < len; at += item.size) {
            err = dump_parse((uint8_t *)buf + at, len - at, &item);
            if (err < 0) {
                rc = admin_fail(-AIFS_ECHECKSUM, "dump: a page arrived damaged");
                break;
            }
            memcpy(last_key, item.key, item.key_len);
            req.after = (struct msg_bytes){last_key, item.key_len};
            ++*ret_records;
        }
        if (rc == ADMIN_OK && len)
            rc = page(arg, buf, len);
        if (rc == ADMIN_OK && r->eof)
            break;
    }
    if (req.dump && a->mds_peer) { /* give the snapshot back, whatever happened */
        req.end = true;
        if (rpc_sync_call(a->sync, a->mds_peer, RPC_OP_DUMP, &req, a->timeout_ns, &rep) < 0 &&
            rc == ADMIN_OK)
            admin_error("dump: the server keeps its snapshot until it times out");
    }
    free(buf);
    return rc;
}

static int to_file(void *arg, const void *page, uint32_t len)
{
    int rc = file_write_all(*(int *)arg, page, len);

    return rc < 0 ? admin_fail(rc, "dump: cannot write") : ADMIN_OK;
}

static int told(int rc, bool to_stdout, const char *name)
{
    return rc < 0 ? admin_fail(rc, "cannot write %s", to_stdout ? "the dump" : name) : ADMIN_OK;
}

static int write_header(int fd, const struct uuid *fs)
{
    struct dump_header h = {.magic = DUMP_MAGIC, .version = htole32(DUMP_VERSION)};

    memcpy(h.fs, fs->b, sizeof h.fs);
    h.created_ns = (int64_t)htole64((uint64_t)clock_wall_ns(clock_real()));
    h.crc = htole32(crc32c(&h, sizeof h));
    return file_write_all(fd, &h, sizeof h);
}

static int write_trailer(int fd, uint64_t records)
{
    uint8_t t[sizeof(struct dump_trailer)];

    le32_store(t, DUMP_END);
    le64_store(t + 8, records);
    le32_store(t + 4, crc32c(t + 8, 8));
    return file_write_all(fd, t, sizeof t);
}

int cmd_mds_dump(struct admin *a, int argc, char **argv)
{
    bool force = false;
    const struct admin_option options[] = {{"force", 0, NULL, &force}};
    char temporary[4096];
    uint64_t records = 0;
    struct uuid fs = {0};
    int fd, rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);
    bool to_stdout = n == 1 && !strcmp(argv[0], "-");

    if (n != 1)
        return n < 0 ? ADMIN_USAGE : admin_usage("mds", "dump", "say into which file, or -");
    if (to_stdout && a->json)
        return admin_usage("mds", "dump", "standard output takes the dump or --json, not both");
    if (!to_stdout && !force && access(argv[0], F_OK) == 0) {
        admin_error("%s is there already, perhaps an older backup: take another name, or --force",
                    argv[0]);
        return ADMIN_CONFLICT;
    }
    snprintf(temporary, sizeof temporary, "%s.part", argv[0]);
    fd = to_stdout ? 1 : open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return admin_fail(-errno, "cannot make %s", argv[0]);
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = dump_identity(a, &fs);
    if (rc == ADMIN_OK)
        rc = told(write_header(fd, &fs), to_stdout, argv[0]);
    if (rc == ADMIN_OK)
        rc = dump_stream(a, to_file, &fd, &records);
    if (rc == ADMIN_OK)
        rc = told(write_trailer(fd, records), to_stdout, argv[0]);
    if (rc == ADMIN_OK && !to_stdout && (fsync(fd) != 0 || rename(temporary, argv[0]) != 0))
        rc = admin_fail(-errno, "%s", argv[0]);
    if (rc == ADMIN_OK && !to_stdout) {
        int synced = file_sync_parent(argv[0]);

        if (synced < 0)
            rc = admin_fail(synced, "cannot sync the directory of %s", argv[0]);
    }
    if (!to_stdout) {
        close(fd);
        if (rc != ADMIN_OK)
            unlink(temporary);
        else if (!a->quiet && !a->json)
            printf("%llu records in %s\n", (unsigned long long)records, argv[0]);
        if (rc == ADMIN_OK)
            out_fields(a, "aifs.mds.dump/1",
                       (struct out_field[]){{"file", argv[0], 0}, {"records", NULL, records}}, 2);
    }
    return rc;
}

int cmd_mds_load(struct admin *a, int argc, char **argv)
{
    const char *dir = NULL;
    const struct admin_option options[] = {{"dir", 0, &dir, NULL}};
    char err[512];
    struct stat st;
    uint64_t records;
    int n = admin_options(options, ARRAY_LEN(options), argc, argv), fd, rc;

    if (n != 1 || !dir)
        return n < 0 ? ADMIN_USAGE
                     : admin_usage("mds", "load", "say from which file, and into which --dir");
    fd = !strcmp(argv[0], "-") ? 0 : open(argv[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return admin_fail(-errno, "%s", argv[0]);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return admin_fail(-EISDIR, "%s", argv[0]);
    }
    rc = dump_load(fd, dir, &records, err, sizeof err);
    if (fd > 0)
        close(fd);
    if (rc == -EEXIST) {
        admin_error("%s is not empty: load makes a new metadata directory, it never overwrites one",
                    dir);
        return ADMIN_CONFLICT;
    }
    if (rc < 0 && err[0]) {
        admin_error("%s: %s", argv[0], err);
        return ADMIN_FAILED;
    }
    if (rc < 0)
        return admin_fail(rc, "%s", dir);
    if (!a->quiet && !a->json)
        printf("%llu records loaded into %s\n", (unsigned long long)records, dir);
    out_fields(a, "aifs.mds.load/1",
               (struct out_field[]){{"dir", dir, 0}, {"records", NULL, records}}, 2);
    return ADMIN_OK;
}
