/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator has been through: faults it made, states of the protocols that were seen.
 * What is zero over a long run is not tested. */
#ifndef AIFS_TESTS_SIM_COVER_H
#define AIFS_TESTS_SIM_COVER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_COVER(X)                                                                               \
    X(SIM_FAULT_LOSS, "fault: message lost, connection dies")                                      \
    X(SIM_FAULT_SEVER, "fault: connection dies behind a message")                                  \
    X(SIM_FAULT_TWICE, "fault: message twice")                                                     \
    X(SIM_FAULT_REORDER, "fault: message overtaken")                                               \
    X(SIM_FAULT_DELAY, "fault: message late")                                                      \
    X(SIM_FAULT_PARTITION, "fault: partition of two nodes")                                        \
    X(SIM_FAULT_CRASH_MDS, "fault: crash of the metadata server")                                  \
    X(SIM_FAULT_CRASH_OSS, "fault: crash of a storage server")                                     \
    X(SIM_FAULT_CRASH_CLIENT, "fault: crash of a client")                                          \
    X(SIM_FAULT_CRASH_SILENT, "fault: crash that nobody is told of")                               \
    X(SIM_FAULT_PAUSE, "fault: client stopped")                                                    \
    X(SIM_FAULT_PAUSE_LONG, "fault: client stopped for longer than its lease")                     \
    X(SIM_FAULT_PAUSE_DIRTY, "fault: client stopped with data to write, or a lock")                \
    X(SIM_FAULT_EXILE, "fault: client cut off with data to write, or a lock")                      \
    X(SIM_FAULT_EXILE_WRITING, "fault: client cut off amid a write in pieces")                     \
    X(SIM_FAULT_CUT_REPORTING, "fault: client cut off while it tells a size")                      \
    X(SIM_FAULT_CUT_STORING, "fault: client kept from the answer to a write beside others")        \
    X(SIM_FAULT_CUT_ASKING, "fault: client cut off while it asks for a lock")                      \
    X(SIM_FAULT_CUT_CHANGING, "fault: client cut off while it changes something")                  \
    X(SIM_FAULT_REMOVING, "fault: client or metadata server goes with removals answered ahead")    \
    X(SIM_FAULT_ABSENT, "fault: storage servers away while a client is evicted")                   \
    X(SIM_FAULT_LATE, "fault: client comes late to a restart of the metadata server")              \
    X(SIM_FAULT_OPENING, "fault: metadata server dies with a session not answered")                \
    X(SIM_FAULT_PAUSE_OFFERED, "fault: client stopped when a lock is kept for it")                 \
    X(SIM_FAULT_SLOW_DISK, "fault: slow disks")                                                    \
    X(SIM_FAULT_FULL, "fault: target fills up")                                                    \
    X(SIM_FAULT_FILLED, "fault: disk filled by others, also what was promised")                    \
    X(SIM_FAULT_GIVEN_UP, "fault: target given up")                                                \
    X(SIM_BATCHED, "names: change that shared a message with others")                              \
    X(SIM_REMOVED_AHEAD, "names: removal answered before the server had it")                       \
    X(SIM_DIR_REMOVED_AHEAD, "names: the same of a directory")                                     \
    X(SIM_RENAMED_AHEAD, "names: rename answered before the server had it")                        \
    X(SIM_REPLACED_AHEAD, "names: the same of one that replaces a file")                           \
    X(SIM_RENAME_LOST, "names: such a rename under way when its session ends")                     \
    X(SIM_REMOVAL_LOST, "names: such a removal under way when its session ends")                   \
    X(SIM_CREATED_AHEAD, "names: creation answered before the server had it")                      \
    X(SIM_DIR_CREATED_AHEAD, "names: directory made before the server had it")                     \
    X(SIM_SET_AHEAD, "names: attributes set before the server had the file")                       \
    X(SIM_DIR_SET_AHEAD, "names: mode of a directory set ahead of the server")                     \
    X(SIM_SETTING_LOST, "names: such a mode under way when its session ends")                      \
    X(SIM_CREATION_LOST, "names: such a creation under way when its session ends")                 \
    X(SIM_READLINK, "names: symlink read")                                                         \
    X(SIM_LINK_UNNAMED, "names: file made without a name gets one")                                \
    X(SIM_LOCK_GRANTED, "locks: granted")                                                          \
    X(SIM_LOCK_REFUSED, "locks: refused")                                                          \
    X(SIM_LOCK_WAITED, "locks: granted to who has waited")                                         \
    X(SIM_LOCK_CANCELLED, "locks: wait given up")                                                  \
    X(SIM_LOCK_DEADLOCK, "locks: deadlock")                                                        \
    X(SIM_LOCK_LOST, "locks: lost with a session")                                                 \
    X(SIM_LOCK_INHERITED, "locks: granted where one was lost")                                     \
    X(SIM_LOCK_RESTART, "locks: held over a restart of the metadata server")                       \
    X(SIM_WRITE_STABLE, "data: stable write")                                                      \
    X(SIM_WRITE_UNSTABLE, "data: unstable write")                                                  \
    X(SIM_WRITE_REFUSED, "data: write refused for want of room")                                   \
    X(SIM_WRITE_NO_ROOM, "data: write that is told so, and has changed nothing")                   \
    X(SIM_LOSS, "data: acknowledged data that could not be stored")                                \
    X(SIM_LOSS_TOLD, "data: fsync or close tells of such a loss")                                  \
    X(SIM_LOST_READ, "data: read of what a target has lost that was given up")                     \
    X(SIM_WRITE_REPEATED, "data: write of before a restart sent again")                            \
    X(SIM_COMMIT, "data: commit")                                                                  \
    X(SIM_UNSTABLE_LOST, "data: unstable write lost with its server")                              \
    X(SIM_STALE_TRUNC, "data: request of an older truncate generation")                            \
    X(SIM_PUNCH_PENDING, "data: read while a cut is on its way to the targets")                    \
    X(SIM_SEAL, "data: seal")                                                                      \
    X(SIM_FENCE_STORED, "oss: fence stored by a target")                                           \
    X(SIM_TRUNCATE, "oss: cut")                                                                    \
    X(SIM_TRUNCATE_AGAIN, "oss: cut repeated")                                                     \
    X(SIM_DESTROY, "oss: destroyed")                                                               \
    X(SIM_SEAL_STALE, "oss: seal of an older truncate generation, or of one to come")              \
    X(SIM_OSS_UNREGISTERED, "oss: up, and not registered")                                         \
    X(SIM_OSS_FENCED, "oss: knows a fenced session")                                               \
    X(SIM_OSS_FENCED_BUSY, "oss: fenced session with requests under way")                          \
    X(SIM_OSS_FENCE_DRAINS, "oss: fence waits for requests under way")                             \
    X(SIM_OSS_OLDER, "oss: newer connection waits for requests of an older one")                   \
    X(SIM_OSS_WAITS_OLDER, "oss: requests wait for those of an older connection")                  \
    X(SIM_OSS_REPEATED, "oss: write or punch sent again, and done before")                         \
    X(SIM_OSS_UNWANTED, "oss: is there again with a target that was given up")                     \
    X(SIM_OSS_GRANT, "oss: space promised")                                                        \
    X(SIM_MDS_GRACE, "mds: waits for sessions from before")                                        \
    X(SIM_MDS_GRACE_WAITS, "mds: change waits for reclaims")                                       \
    X(SIM_MDS_RECLAIMING, "mds: session has not reclaimed")                                        \
    X(SIM_MDS_SESSION_UNSEEN, "mds: session without a connection")                                 \
    X(SIM_MDS_OPENING, "mds: session opens behind an eviction")                                    \
    X(SIM_MDS_EVICT_DUE, "mds: eviction waits until others have reclaimed")                        \
    X(SIM_MDS_EVICT_ENTRY, "mds: eviction is being committed")                                     \
    X(SIM_MDS_EVICT_FENCE, "mds: eviction waits for the fence")                                    \
    X(SIM_MDS_EVICT_SAFE, "mds: eviction waits for the lease time")                                \
    X(SIM_MDS_EVICT_SEAL, "mds: eviction waits for sizes")                                         \
    X(SIM_MDS_EVICT_REMOVE, "mds: evicted session is removed")                                     \
    X(SIM_MDS_FENCE_WAITS, "mds: fence is on its way")                                             \
    X(SIM_MDS_LEASE_NONE, "mds: open without a lease")                                             \
    X(SIM_MDS_LEASE_READ, "mds: read lease")                                                       \
    X(SIM_MDS_LEASE_WRITE, "mds: write lease")                                                     \
    X(SIM_MDS_LEASE_GROWTH, "mds: lease for growth")                                               \
    X(SIM_MDS_RECALL, "mds: lease recalled")                                                       \
    X(SIM_MDS_INSIDE_TAKE, "mds: file entered by an opener")                                       \
    X(SIM_MDS_INSIDE_BREAK, "mds: file entered by a change")                                       \
    X(SIM_MDS_INSIDE_SOLE, "mds: file entered by both at once")                                    \
    X(SIM_MDS_FROZEN_QUEUE, "mds: change waits for a frozen file")                                 \
    X(SIM_MDS_BLOCKED, "mds: change waits for a lease to be given back")                           \
    X(SIM_MDS_GLIMPSE, "mds: writer is asked for its size")                                        \
    X(SIM_MDS_CREATING, "mds: file is being created open")                                         \
    X(SIM_MDS_INVALIDATE, "mds: watcher is told")                                                  \
    X(SIM_MDS_WATCH_WAITS, "mds: change waits for watchers")                                       \
    X(SIM_MDS_SHARED, "mds: inode in shared mode")                                                 \
    X(SIM_MDS_MARK, "mds: writer marked in the store")                                             \
    X(SIM_MDS_MARK_DROPPING, "mds: mark is taken away")                                            \
    X(SIM_MDS_MARK_UNCLAIMED, "mds: mark from before a restart, not reclaimed")                    \
    X(SIM_MDS_UNMARK, "mds: marks not needed any more")                                            \
    X(SIM_MDS_HELD_RECOVER, "mds: file of the dead held for its size")                             \
    X(SIM_MDS_HELD_PUNCH, "mds: file of the dead held for its cut")                                \
    X(SIM_MDS_RECOVER, "mds: size is recovered")                                                   \
    X(SIM_MDS_RECOVER_WAITS, "mds: recovery of a size must wait")                                  \
    X(SIM_MDS_PUNCH, "mds: cut on its way")                                                        \
    X(SIM_MDS_PUNCH_RESTS, "mds: cut that a target has not taken rests")                           \
    X(SIM_MDS_PUNCH_WAITED, "mds: somebody waits for a cut")                                       \
    X(SIM_MDS_LOCK_BUSY, "mds: lock is being committed")                                           \
    X(SIM_MDS_LOCK_BLOCKED, "mds: wait for a lock")                                                \
    X(SIM_MDS_LOCK_OFFERED, "mds: lock kept for who has waited")                                   \
    X(SIM_MDS_LOCK_LAPSED, "mds: lock offered and not taken")                                      \
    X(SIM_MDS_DESTROY, "mds: chunks are destroyed")                                                \
    X(SIM_MDS_ORPHAN, "mds: file open without a name")                                             \
    X(SIM_MDS_ORPHAN_SCAN, "mds: orphans looked for after a restart")                              \
    X(SIM_MDS_OSS_DOWN, "mds: storage server counts as down")                                      \
    X(SIM_CLIENT_OPENING, "client: session opens")                                                 \
    X(SIM_CLIENT_RECLAIMING, "client: reclaims")                                                   \
    X(SIM_CLIENT_UNBELIEVED, "client: lease time over")                                            \
    X(SIM_CLIENT_SESSION_WAITS, "client: call waits for the session")                              \
    X(SIM_CLIENT_DOUBTERS, "client: request waits for the lease time")                             \
    X(SIM_CLIENT_REOPENING, "client: file opens again in a new session")                           \
    X(SIM_CLIENT_RELEASED, "client: closed file with data to write")                               \
    X(SIM_CLIENT_LEASE_READ, "client: read lease")                                                 \
    X(SIM_CLIENT_LEASE_WRITE, "client: write lease")                                               \
    X(SIM_CLIENT_LEASE_GROWTH, "client: lease for growth")                                         \
    X(SIM_CLIENT_SIZE_TOLD, "client: no lease, told of cuts")                                      \
    X(SIM_CLIENT_SIZE_DOUBTED, "client: no lease, size doubted")                                   \
    X(SIM_CLIENT_RECALLED, "client: gives a lease back")                                           \
    X(SIM_CLIENT_GATE, "client: gate closed")                                                      \
    X(SIM_CLIENT_ALONE, "client: request alone on a file")                                         \
    X(SIM_CLIENT_INLINE, "client: small file")                                                     \
    X(SIM_CLIENT_GROWS, "client: small file outgrows its record")                                  \
    X(SIM_CLIENT_TRUNCATES, "client: truncation under way")                                        \
    X(SIM_CLIENT_HELD, "client: writes held back by a truncation")                                 \
    X(SIM_CLIENT_PUNCH_WAITS, "client: growth waits for a cut")                                    \
    X(SIM_CLIENT_REPORTS, "client: report of size under way")                                      \
    X(SIM_CLIENT_WRITES_BACK, "client: write-back under way")                                      \
    X(SIM_CLIENT_UNCOMMITTED, "client: uncommitted data")                                          \
    X(SIM_CLIENT_STRAIGHT, "client: write from the caller's memory")                               \
    X(SIM_CLIENT_STRAIGHT_WAITS, "client: waits for such a write")                                 \
    X(SIM_CLIENT_STRAIGHT_RECALLED, "client: gives a lease back during one")                       \
    X(SIM_CLIENT_COMMITS, "client: commit under way")                                              \
    X(SIM_CLIENT_ORPHAN, "client: file open without a name")                                       \
    X(SIM_CLIENT_LOCK_WAITS, "client: waits for a lock")                                           \
    X(SIM_CLIENT_LOCKS_LOST, "client: file whose locks were lost")                                 \
    X(SIM_CLIENT_BEHIND, "client: waits behind removals under way")                                \
    X(SIM_CLIENT_BEHIND_TOLD, "client: answer to an INVALIDATE waits for removals under way")      \
    X(SIM_CLIENT_MOVES_WAIT, "client: rename ahead behind what is under way of its file")          \
    X(SIM_CLIENT_UNSETTLED, "client: reclaimed with removals under way")                           \
    X(SIM_CLIENT_RETRIES_OSS, "client: transfer made again")

enum sim_cover {
#define SIM_COVER_ENUM(name, text) name,
    SIM_COVER(SIM_COVER_ENUM)
#undef SIM_COVER_ENUM
        SIM_COVER_LIMIT
};

void sim_hit(enum sim_cover what);
void sim_hits(enum sim_cover what, uint64_t n);
unsigned sim_cover_print(FILE *to); /* how many were never hit */

#endif
