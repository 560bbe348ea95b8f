/* SPDX-License-Identifier: Apache-2.0 */
/* `file locks`: who holds locks of a file, and who waits for one, on all clients. The inode number
 * comes through the mount, the rest from the metadata server. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/base/err.h"
#include "tools/admin/admin.h"

static const struct out_column columns[] = {
    {"KIND", OUT_TEXT, NULL},     {"TYPE", OUT_TEXT, NULL},   {"START", OUT_COUNT, NULL},
    {"END", OUT_COUNT, NULL},     {"STATE", OUT_TEXT, NULL},  {"HOST", OUT_TEXT, NULL},
    {"MOUNT", OUT_TEXT, NULL},    {"PID", OUT_COUNT, NULL},   {"OWNER", OUT_TEXT, NULL},
    {"SESSION", OUT_COUNT, NULL}, {"AGE", OUT_AGE, "age_ns"},
};

static void out_bytes(struct out *o, const struct msg_bytes *b)
{
    char text[1024];

    snprintf(text, sizeof text, "%.*s", (int)b->len, (const char *)b->data);
    out_text(o, b->len ? text : NULL);
}

static void lock_row(struct out *o, const struct msg_lock_info *i)
{
    const struct msg_lock *l = &i->lock;
    char owner[32];

    snprintf(owner, sizeof owner, "%llx", (unsigned long long)l->owner);
    out_text(o, l->kind == MSG_LOCK_FLOCK ? "flock" : "record");
    out_text(o, l->type == MSG_LOCK_WRITE ? "write" : "read");
    out_number(o, l->start);
    l->end == MSG_LOCK_END ? out_none(o) : out_number(o, l->end);
    out_text(o, i->waits ? "waits" : "held");
    out_bytes(o, &i->host);
    out_bytes(o, &i->mount);
    out_number(o, l->pid);
    out_text(o, owner);
    out_number(o, l->session);
    out_number(o, i->age_ns);
}

int cmd_file_locks(struct admin *a, int argc, char **argv)
{
    const struct msg_lock_list_rep *rep;
    struct msg_ino_req req = {0};
    const void *answer;
    struct stat st;
    struct out *o;
    int rc;

    if (argc != 1)
        return admin_usage("file", "locks", "say of which file");
    admin_watch(a, argv[0]);
    if (stat(argv[0], &st) != 0)
        return admin_fail(-errno, "%s", argv[0]);
    if (getxattr(argv[0], "aifs.fid", NULL, 0) < 0)
        return admin_fail_path(-errno, argv[0]);
    admin_watch(a, NULL);
    admin_connect_by(a, argv[0]);
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = admin_check_mount(a, argv[0]);
    req.ino = st.st_ino;
    if (rc == ADMIN_OK)
        rc = admin_call_mds(a, RPC_OP_LOCK_LIST, &req, &answer);
    if (rc != ADMIN_OK)
        return rc;
    rep = answer;
    o = out_table(a, "aifs.file.locks/1", columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < rep->n_locks; i++)
        lock_row(o, &rep->locks[i]);
    if (rep->more)
        out_warning(o, "there are more than the %u shown", rep->n_locks);
    out_print(o);
    return ADMIN_OK;
}
