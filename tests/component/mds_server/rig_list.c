// SPDX-License-Identifier: Apache-2.0
/* What a page of a directory says of being alone. */
#include <string.h>

#include "proto/dirent_fmt.h"
#include "tests/component/mds_server/rig_int.h"

struct rig_page rig_page;

int rig_list(struct rig *r, unsigned client, uint64_t ino, bool alone)
{
    struct msg_readdir_req req = {.ino = ino, .max_bytes = 65536, .plus = true, .alone = alone};
    const struct msg_readdir_rep *rep;
    const void *any = NULL;
    int status = rig_do(r, client, RPC_OP_READDIR, &req, &any);

    rig_page.dir = false;
    rig_page.n = rig_page.n_alone = rig_page.n_attributes = 0;
    if (status)
        return status;
    rep = any;
    rig_page.dir = rep->alone;
    for (uint32_t at = 0; rep->count && at < r->bulk_len;) {
        struct dirent_attr_wire a;
        struct dirent_wire w;

        memcpy(&w, r->bulk + at, sizeof w);
        memcpy(&a, r->bulk + at + sizeof w, sizeof a);
        rig_page.n++;
        rig_page.n_attributes += w.has_attr;
        rig_page.n_alone += (le32toh(a.flags) & MSG_ATTR_ALONE) != 0;
        at += le16toh(w.record_len);
    }
    return 0;
}
