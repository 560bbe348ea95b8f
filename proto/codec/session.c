// SPDX-License-Identifier: Apache-2.0
/* Sessions. */
#include "proto/codec/codec_int.h"
#include "proto/schema/session.pb-c.h"

#define SESSION_OPEN_REQ(F)                                                                        \
    F(uuid, client)                                                                                \
    F(text, host, CODEC_TEXT_MAX)                                                                  \
    F(bytes, mount, MSG_PATH_MAX)                                                                  \
    F(text, job, CODEC_TEXT_MAX)                                                                   \
    F(num, pid)                                                                                    \
    F(flag, read_only)
CODEC_MSG(session_open_req, SessionOpenReq, SESSION_OPEN_REQ)

#define SESSION_OPEN_REP(F)                                                                        \
    F(num, session)                                                                                \
    F(num, generation)                                                                             \
    F(num, slots)                                                                                  \
    F(num, lease_ns)                                                                               \
    F(num, wall_ns)                                                                                \
    F(num, root)                                                                                   \
    F(num, map_epoch)                                                                              \
    F(num, inline_max)                                                                             \
    F(uuid, fs)                                                                                    \
    F(text, fs_name, CODEC_TEXT_MAX)                                                               \
    F(flag, reclaim)
CODEC_MSG(session_open_rep, SessionOpenRep, SESSION_OPEN_REP)

#define SERVER_WAIT(F)                                                                             \
    F(num, target) F(num, ino) F(flag, write) F(num, requests) F(num, pid) F(num, age_ns)
CODEC_MSG(server_wait, ServerWait, SERVER_WAIT)

#define RENEW_REQ(F) F(subs, server_wait, waits, MSG_SERVER_WAITS_MAX)
CODEC_MSG(renew_req, RenewReq, RENEW_REQ)

#define RENEW_REP(F) F(num, lease_ns) F(num, wall_ns) F(num, map_epoch)
CODEC_MSG(renew_rep, RenewRep, RENEW_REP)

#define RECLAIM_ITEM(F)                                                                            \
    F(num, ino)                                                                                    \
    F(num, open_id)                                                                                \
    F(num, open_flags)                                                                             \
    F(lease, lease)                                                                                \
    F(num, lease_seq)
CODEC_MSG(reclaim_item, ReclaimItem, RECLAIM_ITEM)

#define RECLAIM_REQ(F) F(subs, reclaim_item, items, MSG_ITEMS_MAX) F(flag, last) F(flag, unsettled)
CODEC_MSG(reclaim_req, ReclaimReq, RECLAIM_REQ)
