/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of operations: number on the wire, name, request and reply struct (struct msg_...), who
 * may call, and how it behaves. Numbers are never reused. See docs/adding-an-operation.md.
 */
#ifndef AIFS_PROTO_OPS_H
#define AIFS_PROTO_OPS_H

#include <stdint.h>

#define OP_SLOT     0x01u /* changes metadata: needs a session and an exactly-once slot */
#define OP_SESSION  0x02u /* needs a session */
#define OP_BULK_IN  0x04u /* the request may carry a payload */
#define OP_BULK_OUT 0x08u /* the reply may */
#define OP_SERVER   0x10u /* roles that may call */
#define OP_ADMIN    0x20u
#define OP_CLIENT   0x40u
#define OP_ANY      (OP_SERVER | OP_ADMIN | OP_CLIENT)
#define OP_URGENT                                                                                  \
    0x80u /* others may be waiting for it: sent although the peer has max_calls in flight */
#define OP_NEXT                                                                                    \
    0x100u /* needs nothing of the session that it was meant for: when that is over before it was  \
              executed, it goes on in the next one (of SETATTR: not by an open file) */

/* clang-format off */
/*  name            number request           reply             flags */
#define RPC_OP_TABLE(X)                                                                    \
    X(PING,             1, empty,            empty,            OP_ANY | OP_URGENT)                     \
    X(HELLO,            2, hello_req,        hello_rep,        OP_ANY)                     \
    X(AUTH,             3, auth_req,         auth_rep,         OP_ANY)                     \
    X(LOAD,             4, empty,            load_rep,         OP_SERVER | OP_ADMIN | OP_URGENT) \
    /* metadata server: sessions */                                                        \
    X(SESSION_OPEN,    16, session_open_req, session_open_rep, OP_ANY)                     \
    X(SESSION_RENEW,   17, renew_req,        renew_rep,        OP_ANY | OP_SESSION | OP_URGENT)        \
    X(SESSION_CLOSE,   18, empty,            empty,            OP_ANY | OP_SESSION)        \
    X(RECLAIM,         19, reclaim_req,      empty,            OP_ANY | OP_SESSION | OP_URGENT)        \
    /* metadata server: name space */                                                      \
    X(LOOKUP,          32, name_req,         inode_rep,        OP_ANY | OP_SESSION | OP_NEXT) \
    X(GETATTR,         33, ino_req,          inode_rep,        OP_ANY | OP_SESSION | OP_NEXT) \
    X(SETATTR,         34, setattr_req,      inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(CREATE,          35, create_req,       inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(MKDIR,           36, create_req,       inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(MKNOD,           37, create_req,       inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(SYMLINK,         38, create_req,       inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(UNLINK,          39, name_req,         inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(RMDIR,           40, name_req,         inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(RENAME,          41, rename_req,       inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(LINK,            42, link_req,         inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(READLINK,        43, ino_req,          bytes_rep,        OP_ANY | OP_SESSION | OP_NEXT) \
    X(READDIR,         44, readdir_req,      readdir_rep,      OP_ANY | OP_SESSION | OP_NEXT | OP_BULK_OUT) \
    X(OPEN,            45, open_req,         inode_rep,        OP_ANY | OP_SLOT | OP_NEXT) \
    X(CLOSE,           46, close_req,        empty,            OP_ANY | OP_SESSION | OP_URGENT)        \
    X(STATFS,          47, ino_req,          statfs_rep,       OP_ANY | OP_SESSION | OP_NEXT) \
    X(XATTR_GET,       48, xattr_req,        bytes_rep,        OP_ANY | OP_SESSION | OP_NEXT) \
    X(XATTR_SET,       49, xattr_req,        empty,            OP_ANY | OP_SLOT | OP_NEXT) \
    X(XATTR_LIST,      50, ino_req,          bytes_rep,        OP_ANY | OP_SESSION | OP_NEXT) \
    X(XATTR_REMOVE,    51, xattr_req,        empty,            OP_ANY | OP_SLOT | OP_NEXT) \
    X(FSYNC,           52, ino_req,          empty,            OP_ANY | OP_SESSION)        \
    X(WRITE_INLINE,    53, write_inline_req, inode_rep,        OP_ANY | OP_SLOT | OP_BULK_IN) \
    X(GROW,            54, size_req,         inode_rep,        OP_ANY | OP_SLOT)           \
    X(SIZE,            55, size_req,         inode_rep,        OP_ANY | OP_SLOT | OP_URGENT)           \
    X(APPEND_RANGE,    56, append_req,       append_rep,       OP_ANY | OP_SLOT)           \
    X(LEASE_GET,       57, lease_req,        inode_rep,        OP_ANY | OP_SESSION)        \
    X(LEASE_RELEASE,   58, lease_req,        empty,            OP_ANY | OP_SESSION | OP_URGENT)        \
    X(BATCH,           59, batch_req,        batch_rep,        OP_ANY | OP_SLOT)           \
    /* metadata server to client */                                                        \
    X(RECALL,          64, recall_req,       empty,            OP_SERVER | OP_URGENT)                  \
    X(GLIMPSE,         65, ino_req,          glimpse_rep,      OP_SERVER | OP_URGENT)                  \
    X(MAP_CHANGED,     66, map_req,          empty,            OP_SERVER | OP_URGENT)                  \
    X(INVALIDATE,      67, invalidate_req,   empty,            OP_SERVER | OP_URGENT)                  \
    /* metadata server: cluster */                                                         \
    X(MAP_GET,         80, map_req,          map_rep,          OP_ANY)                     \
    X(NODE_REGISTER,   81, register_req,     register_rep,     OP_SERVER)                  \
    X(HEARTBEAT,       82, heartbeat_req,    heartbeat_rep,    OP_SERVER | OP_URGENT)                  \
    X(STATUS,          83, empty,            status_rep,       OP_SERVER | OP_ADMIN)       \
    X(POOL_CREATE,     84, pool_req,         text_rep,         OP_SERVER | OP_ADMIN)       \
    X(POOL_ADD,        85, pool_req,         text_rep,         OP_SERVER | OP_ADMIN)       \
    X(POOL_REMOVE,     86, pool_req,         text_rep,         OP_SERVER | OP_ADMIN)       \
    X(TARGET_REPLACE,  89, pool_req,         text_rep,         OP_SERVER | OP_ADMIN)       \
    X(NODE_REMOVE,     90, node_req,         text_rep,         OP_SERVER | OP_ADMIN)       \
    X(RMTREE,          88, rmtree_req,       empty,            OP_SERVER | OP_ADMIN)       \
    X(DUMP,            87, dump_req,         dump_rep,         OP_SERVER | OP_ADMIN | OP_BULK_OUT) \
    /* metadata server: locks of files; LOCK_WAKE goes to the client */                    \
    X(LOCK,            96, lock_req,         lock_rep,         OP_ANY | OP_SLOT | OP_URGENT)           \
    X(LOCK_TEST,       97, lock_req,         lock_rep,         OP_ANY | OP_SESSION | OP_URGENT)        \
    X(LOCK_CANCEL,     98, lock_wait,        empty,            OP_ANY | OP_SESSION | OP_URGENT)        \
    X(LOCK_WAKE,       99, lock_wait,        empty,            OP_SERVER | OP_URGENT)                  \
    X(LOCK_LIST,      100, ino_req,          lock_list_rep,    OP_SERVER | OP_ADMIN)       \
    X(WAITS,          101, empty,            waits_rep,        OP_SERVER | OP_ADMIN)       \
    /* object storage server */                                                            \
    X(OSS_READ,       112, read_req,         read_rep,         OP_ANY | OP_SESSION | OP_BULK_OUT) \
    X(OSS_WRITE,      113, write_req,        write_rep,        OP_ANY | OP_SESSION | OP_BULK_IN) \
    X(OSS_COMMIT,     114, commit_req,       commit_rep,       OP_ANY | OP_SESSION)        \
    X(OSS_TRUNCATE,   115, cut_req,          empty,            OP_SERVER)                  \
    X(OSS_PUNCH,      116, cut_req,          empty,            OP_ANY | OP_SESSION)        \
    X(OSS_DESTROY,    117, destroy_req,      empty,            OP_SERVER)                  \
    X(OSS_SEAL,       118, seal_req,         seal_rep,         OP_SERVER)                  \
    X(OSS_FENCE,      119, fence_req,        empty,            OP_SERVER | OP_URGENT)                  \
    X(OSS_CHUNK_LIST, 120, chunk_list_req,   chunk_list_rep,   OP_SERVER | OP_ADMIN)       \
    X(OSS_STAT,       121, target_req,       status_rep,       OP_SERVER | OP_ADMIN)       \
    X(OSS_TARGET_ADD, 122, target_add_req,   target_add_rep,   OP_SERVER | OP_ADMIN)       \
    X(OSS_SEEK,       123, seek_req,         seek_rep,         OP_ANY | OP_SESSION)
/* clang-format on */

#define RPC_OP_ENUM(name, number, req, rep, flags) RPC_OP_##name = number,
enum rpc_op { RPC_OP_TABLE(RPC_OP_ENUM) RPC_OP_LIMIT = 128 };
#undef RPC_OP_ENUM

const char *rpc_op_name(unsigned op); /* "CREATE"; "op 77" style for unknown ones: never NULL */
uint32_t rpc_op_flags(unsigned op);   /* 0 for unknown */

#endif
