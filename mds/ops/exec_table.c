/* SPDX-License-Identifier: Apache-2.0 */
/* What a shard can execute, by operation. */
#include "mds/cluster/exec.h"
#include "mds/locks/exec.h"
#include "mds/ops/exec.h"
#include "mds/session/exec.h"

shard_exec_fn *const mds_exec_table[SHARD_OP_LIMIT] = {
    [RPC_OP_SETATTR] = exec_setattr,
    [RPC_OP_CREATE] = exec_create,
    [RPC_OP_MKDIR] = exec_mkdir,
    [RPC_OP_MKNOD] = exec_mknod,
    [RPC_OP_SYMLINK] = exec_symlink,
    [RPC_OP_UNLINK] = exec_unlink,
    [RPC_OP_RMDIR] = exec_rmdir,
    [RPC_OP_RENAME] = exec_rename,
    [RPC_OP_LINK] = exec_link,
    [RPC_OP_OPEN] = exec_open,
    [RPC_OP_XATTR_SET] = exec_xattr_set,
    [RPC_OP_XATTR_REMOVE] = exec_xattr_remove,
    [RPC_OP_WRITE_INLINE] = exec_write_inline,
    [RPC_OP_GROW] = exec_grow,
    [RPC_OP_SIZE] = exec_size,
    [RPC_OP_APPEND_RANGE] = exec_append_range,
    [RPC_OP_BATCH] = shard_exec_batch,
    [RPC_OP_LOCK] = exec_lock,
    [SHARD_OP_FORMAT] = exec_format,
    [SHARD_OP_ORPHAN_RELEASE] = exec_orphan_release,
    [SHARD_OP_QUEUE_DONE] = exec_queue_done,
    [SHARD_OP_SIZE_RECOVERED] = exec_size_recovered,
    [SHARD_OP_SIZE_UNSURE] = exec_size_unsure,
    [SHARD_OP_TIMES] = exec_times,
    [SHARD_OP_READS] = exec_reads,
    [SHARD_OP_SESSION_CREATE] = exec_session_create,
    [SHARD_OP_SESSION_EVICT] = exec_session_evict,
    [SHARD_OP_SESSION_REMOVE] = exec_session_remove,
    [SHARD_OP_FENCE_FORGET] = exec_fence_forget,
    [SHARD_OP_BOOT] = exec_boot,
    [SHARD_OP_SESSION_UNMARK] = exec_session_unmark,
    [SHARD_OP_SESSION_ALONE] = exec_session_alone,
    [SHARD_OP_MAP_SET] = exec_map_set,
    [SHARD_OP_LOCKS_FREE] = exec_locks_free,
    [SHARD_OP_TRASH_TREE] = exec_trash_tree,
    [SHARD_OP_TRASH_NAMES] = exec_trash_names,
};
