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
    X(SIM_WRITE_STABLE, "data: stable write")                                                      \
    X(SIM_WRITE_UNSTABLE, "data: unstable write")                                                  \
    X(SIM_COMMIT, "data: commit")                                                                  \
    X(SIM_UNSTABLE_LOST, "data: unstable write lost with its server")                              \
    X(SIM_STALE_TRUNC, "data: request of an older truncate generation")                            \
    X(SIM_PUNCH_PENDING, "data: read while a cut is on its way to the targets")                    \
    X(SIM_SEAL, "data: seal")                                                                      \
    X(SIM_FENCE_STORED, "fence: stored by a target")

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
