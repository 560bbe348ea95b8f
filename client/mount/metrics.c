/* SPDX-License-Identifier: Apache-2.0 */
/* The core's counters belong to the reactor; once a second they are copied to where the metrics
 * thread may read them. */
#include <assert.h>
#include <stddef.h>

#include "client/mount/daemon.h"

#define FIELD(name, field, text)                                                                   \
    {                                                                                              \
        "aifs_client_" name, text, offsetof(struct core_stats, field)                              \
    }

static const struct {
    const char *name, *help;
    size_t offset;
} fields[] = {
    FIELD("requests_total", requests, "Requests to the client core"),
    FIELD("reads_total", reads, "Read requests"),
    FIELD("writes_total", writes, "Write requests"),
    FIELD("read_bytes_total", read_bytes, "Bytes read by applications"),
    FIELD("write_bytes_total", write_bytes, "Bytes written by applications"),
    FIELD("read_hits_total", read_hits, "Reads answered from memory"),
    FIELD("read_misses_total", read_misses, "Reads that waited for servers"),
    FIELD("readahead_bytes_total", readahead_bytes, "Bytes read ahead"),
    FIELD("readahead_unread_bytes", ahead_bytes, "Bytes read ahead that nobody has asked for yet"),
    FIELD("mds_calls_total", mds_calls, "Calls to the metadata server"),
    FIELD("mds_batched_total", mds_batched, "Changes of names that shared a call"),
    FIELD("oss_calls_total", oss_calls, "Calls to object storage servers"),
    FIELD("oss_shared_total", oss_shared, "Transfers that shared a call with others"),
    FIELD("retries_total", retries, "Calls sent again"),
    FIELD("replays_total", replays, "Uncommitted writes sent again after a server restart"),
    FIELD("recalls_total", recalls, "Leases recalled"),
    FIELD("invalidations_total", invalidations, "Changes by others the server has told of"),
    FIELD("glimpses_total", glimpses, "Sizes asked for by the metadata server"),
    FIELD("checksum_errors_total", checksum_errors, "Blocks received with a wrong checksum"),
    FIELD("sessions_lost_total", sessions_lost, "Sessions lost"),
    FIELD("hung_total", hung, "Requests that were logged as hung"),
    FIELD("memory_limit_bytes", memory_limit, "Memory budget"),
    FIELD("memory_used_bytes", memory_used, "Memory used of the budget"),
    FIELD("dirty_bytes", dirty_bytes, "Bytes written and not yet sent"),
    FIELD("uncommitted_bytes", uncommitted_bytes, "Bytes sent and not yet durable"),
    FIELD("open_files", open_files, "Open files"),
    FIELD("in_flight", in_flight, "Requests in flight"),
    FIELD("memory_waits_total", memory_waits, "Requests that waited for memory"),
    FIELD("paced_writes_total", paced_writes, "Writes that waited for memory under way"),
    FIELD("prelists_total", prelists, "Pages of directories fetched because names were looked up"),
    FIELD("relists_total", relists, "Listings answered by the page that was listed last"),
    FIELD("removed_ahead_total", removed_ahead, "Removals answered before the server had them"),
    FIELD("removals_under_way", removals_under_way, "Of these, what the server has not answered"),
    FIELD("removal_waits_total", removal_waits, "Operations that waited for such an answer"),
    FIELD("removals_refused_total", removals_refused, "Removals answered ahead that failed"),
    FIELD("renamed_ahead_total", renamed_ahead, "Renames answered before the server had them"),
    FIELD("renames_refused_total", renames_refused, "Renames answered ahead that failed"),
    FIELD("created_ahead_total", created_ahead,
          "Files and directories made before the server had them"),
    FIELD("creations_under_way", creations_under_way, "Of these, what the server has not answered"),
    FIELD("created_large_total", created_large,
          "Files not made ahead since those before them became large"),
    FIELD("set_ahead_total", set_ahead,
          "Attributes set that went along with a creation, or behind"),
    FIELD("sets_refused_total", sets_refused, "Attributes set ahead that were not"),
    FIELD("creations_refused_total", creations_refused, "Creations answered ahead that failed"),
    FIELD("prereads_total", prereads, "Files asked for when they were opened"),
};
static_assert(ARRAY_LEN(fields) == MOUNT_CORE_GAUGES, "one gauge per field");

static void copy(struct mount_daemon *d)
{
    struct core_stats s;

    core_get_stats(d->fs.core, &s);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const void *field = (const char *)&s + fields[i].offset;

        stat_gauge_set(&d->gauges[i], (int64_t) * (const uint64_t *)field);
    }
}

static void on_timer(struct reactor_timer *t)
{
    struct mount_daemon *d = container_of(t, struct mount_daemon, gauge_timer);

    copy(d);
    reactor_timer_start(d->fs.reactor, t, reactor_now_ns(d->fs.reactor) + NS_PER_S);
}

void mount_metrics_start(struct mount_daemon *d)
{
    fs_stats_register(&d->fs);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        stat_gauge_register(&d->gauges[i], fields[i].name, NULL, fields[i].help);
    reactor_timer_init(&d->gauge_timer, on_timer);
    on_timer(&d->gauge_timer);
}

void mount_metrics_stop(struct mount_daemon *d)
{
    if (!d->gauge_timer.fn)
        return;
    reactor_timer_cancel(d->fs.reactor, &d->gauge_timer);
    fs_stats_unregister(&d->fs);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        stat_unregister(&d->gauges[i].stat);
}
