// SPDX-License-Identifier: Apache-2.0
/* The counters of a target under their public names. Labelled by the target's uuid, which never
 * changes. */
#include <stdio.h>

#include "oss/chunk/store_int.h"

void chunk_metrics_start(struct chunk_store *s)
{
    char id[UUID_TEXT_BYTES];

    uuid_format(&s->super.target, id);
    snprintf(s->labels, sizeof s->labels, "target=\"%s\"", id);
    stat_counter_register(&s->n_commits, "aifs_oss_commits_total", s->labels, "group commits");
    stat_counter_register(&s->n_here, "aifs_oss_commits_on_reactor_total", s->labels,
                          "group commits without the committer, on targets in memory");
    stat_counter_register(&s->n_syncs, "aifs_oss_data_syncs_total", s->labels,
                          "fdatasync calls on segment files");
    stat_counter_register(&s->n_errors, "aifs_oss_errors_total", s->labels,
                          "checksum mismatches and I/O errors");
    stat_counter_register(&s->n_logged, "aifs_oss_logged_blocks_total", s->labels,
                          "blocks of small overwrites put into the log");
    stat_counter_register(&s->n_folded, "aifs_oss_folded_blocks_total", s->labels,
                          "logged blocks brought home");
    stat_counter_register(&s->n_moves, "aifs_oss_moves_total", s->labels,
                          "chunks that went to another slot");
    stat_counter_register(&s->n_copied, "aifs_oss_copied_blocks_total", s->labels,
                          "blocks copied along when chunks moved");
    stat_counter_register(&s->n_placed, "aifs_oss_placed_total", s->labels,
                          "writes received straight into their slot");
    stat_counter_register(&s->n_mapped, "aifs_oss_mapped_writes_total", s->labels,
                          "writes copied into a mapped slot");
    stat_counter_register(&s->n_map_looks, "aifs_oss_mapping_looks_total", s->labels,
                          "slots looked at to let go of their mapping");
    stat_counter_register(&s->n_loads, "aifs_oss_index_reads_total", s->labels,
                          "chunks looked for in the index");
    stat_gauge_register(&s->g_used, "aifs_oss_used_bytes", s->labels, "slots in use");
    stat_gauge_register(&s->g_free, "aifs_oss_free_bytes", s->labels, "room for new data");
    stat_gauge_register(&s->g_dirty, "aifs_oss_dirty_bytes", s->labels, "unstable data");
    stat_gauge_register(&s->g_log, "aifs_oss_log_bytes", s->labels, "logged blocks in memory");
    stat_gauge_register(&s->g_ready, "aifs_oss_ready_bytes", s->labels,
                        "space kept without data for the next writes");
    stat_gauge_register(&s->g_mapped, "aifs_oss_mapped_bytes", s->labels,
                        "slots mapped to receive into");
    s->counted = true;
    chunk_metrics_update(s);
}

void chunk_metrics_update(struct chunk_store *s)
{
    stat_gauge_set(&s->g_used, (int64_t)s->slots.used_bytes);
    stat_gauge_set(&s->g_free, (int64_t)slots_free_bytes(&s->slots));
    stat_gauge_set(&s->g_dirty, (int64_t)s->dirty_bytes);
    stat_gauge_set(&s->g_log, (int64_t)(s->log_blocks * CHUNK_BLOCK));
    stat_gauge_set(&s->g_ready, (int64_t)s->slots.empty_bytes);
    stat_gauge_set(&s->g_mapped, (int64_t)s->mapped_bytes);
}

void chunk_metrics_stop(struct chunk_store *s)
{
    struct stat_item *all[] = {&s->n_commits.stat, &s->n_syncs.stat,     &s->n_errors.stat,
                               &s->n_logged.stat,  &s->n_folded.stat,    &s->n_moves.stat,
                               &s->n_copied.stat,  &s->g_used.stat,      &s->g_free.stat,
                               &s->g_dirty.stat,   &s->g_log.stat,       &s->n_placed.stat,
                               &s->g_ready.stat,   &s->g_mapped.stat,    &s->n_here.stat,
                               &s->n_mapped.stat,  &s->n_map_looks.stat, &s->n_loads.stat};

    for (unsigned i = 0; s->counted && i < ARRAY_LEN(all); i++)
        stat_unregister(all[i]);
    s->counted = false;
}
