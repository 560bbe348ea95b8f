/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about data and holes on a target; part of msg.h. */
#ifndef AIFS_PROTO_MSG_SEEK_H
#define AIFS_PROTO_MSG_SEEK_H

#include <stdbool.h>
#include <stdint.h>

/* OSS_SEEK: in the chunks c of the file that start lies in, c + stride, c + 2 stride, ..., the
 * first byte from start on, and before end, that is data, or (hole) that is none. */
struct msg_seek_req {
    uint32_t target;
    uint64_t ino, truncate_gen;
    uint32_t chunk_bytes, stride;
    uint64_t start, end; /* in the file */
    bool hole;
};

struct msg_seek_rep {
    bool found;
    uint64_t
        offset; /* of it; or up to where there is none: ask again from there, unless it is end */
};

#endif
