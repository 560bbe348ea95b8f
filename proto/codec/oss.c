// SPDX-License-Identifier: Apache-2.0
/* Object storage. */
#include "proto/codec/codec_int.h"
#include "proto/layout.h"
#include "proto/schema/oss.pb-c.h"

/* By hand: a range stays within the largest chunk there can be, so that nobody's arithmetic
 * overflows. */
static bool range_enc(struct enc *e UNUSED, const void *msg, void *pb)
{
    const struct msg_range *m = msg;
    Aifs__Range *p = pb;

    p->chunk = m->chunk;
    p->offset = m->offset;
    p->len = m->len;
    return true;
}

static bool range_dec(struct dec *d UNUSED, const void *pb, void *msg)
{
    const Aifs__Range *p = pb;
    struct msg_range *m = msg;

    m->chunk = p->chunk;
    m->offset = p->offset;
    m->len = p->len;
    return p->len <= MSG_BULK_MAX && p->offset <= LAYOUT_CHUNK_MAX - p->len;
}
static const struct codec codec_range = {&aifs__range__descriptor, sizeof(struct msg_range),
                                         range_enc, range_dec};

#define READ_REQ(F)                                                                                \
    F(num, target) F(num, ino) F(num, truncate_gen) F(subs, range, ranges, MSG_RANGES_MAX)
CODEC_MSG(read_req, ReadReq, READ_REQ)

#define READ_REP(F) F(u32s, lens, MSG_RANGES_MAX) F(u32s, crcs, CODEC_CRCS_MAX)
CODEC_MSG(read_rep, ReadRep, READ_REP)

#define WRITE_REQ(F)                                                                               \
    F(num, target)                                                                                 \
    F(num, ino)                                                                                    \
    F(num, truncate_gen)                                                                           \
    F(flag, stable)                                                                                \
    F(subs, range, ranges, MSG_RANGES_MAX)                                                         \
    F(u32s, crcs, CODEC_CRCS_MAX)                                                                  \
    F(num, op_id)                                                                                  \
    F(num, want_grant)                                                                             \
    F(num, keep_grant)                                                                             \
    F(num, once)
CODEC_MSG(write_req, WriteReq, WRITE_REQ)

#define WRITE_REP(F) F(num, verifier) F(num, grant) F(flag, committed)
CODEC_MSG(write_rep, WriteRep, WRITE_REP)

#define COMMIT_REQ(F) F(num, target) F(u64s, inos, MSG_ITEMS_MAX)
CODEC_MSG(commit_req, CommitReq, COMMIT_REQ)

#define COMMIT_REP(F) F(num, verifier)
CODEC_MSG(commit_rep, CommitRep, COMMIT_REP)

#define CUT_REQ(F)                                                                                 \
    F(num, target)                                                                                 \
    F(num, ino)                                                                                    \
    F(num, truncate_gen) F(num, chunk_bytes) F(num, start) F(num, end) F(num, once)
CODEC_MSG(cut_req, CutReq, CUT_REQ)

#define DESTROY_REQ(F) F(num, target) F(u64s, inos, MSG_ITEMS_MAX)
CODEC_MSG(destroy_req, DestroyReq, DESTROY_REQ)

#define SEAL_REQ(F) F(num, target) F(num, ino) F(num, truncate_gen) F(num, chunk_bytes)
CODEC_MSG(seal_req, SealReq, SEAL_REQ)

#define SEAL_REP(F) F(num, high_water)
CODEC_MSG(seal_rep, SealRep, SEAL_REP)

#define SEEK_REQ(F)                                                                                \
    F(num, target)                                                                                 \
    F(num, ino)                                                                                    \
    F(num, truncate_gen)                                                                           \
    F(num, chunk_bytes)                                                                            \
    F(num, stride)                                                                                 \
    F(num, start)                                                                                  \
    F(num, end)                                                                                    \
    F(flag, hole)
CODEC_MSG(seek_req, SeekReq, SEEK_REQ)

#define SEEK_REP(F) F(flag, found) F(num, offset)
CODEC_MSG(seek_rep, SeekRep, SEEK_REP)

#define CHUNK_INFO(F) F(num, ino) F(num, chunk) F(num, len) F(num, truncate_gen) F(flag, bad)
CODEC_MSG(chunk_info, ChunkInfo, CHUNK_INFO)

#define CHUNK_LIST_REQ(F)                                                                          \
    F(num, target)                                                                                 \
    F(num, after_ino)                                                                              \
    F(num, after_chunk)                                                                            \
    F(flag, first)                                                                                 \
    F(num, only_ino)                                                                               \
    F(num, max)                                                                                    \
    F(flag, verify)
CODEC_MSG(chunk_list_req, ChunkListReq, CHUNK_LIST_REQ)

#define CHUNK_LIST_REP(F) F(subs, chunk_info, chunks, MSG_ITEMS_MAX) F(flag, eof)
CODEC_MSG(chunk_list_rep, ChunkListRep, CHUNK_LIST_REP)

#define TARGET_REQ(F) F(num, target)
CODEC_MSG(target_req, TargetReq, TARGET_REQ)
