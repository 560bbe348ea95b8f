/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the shard share. */
#ifndef AIFS_MDS_SHARD_SHARD_INT_H
#define AIFS_MDS_SHARD_SHARD_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/err.h"
#include "mds/shard/overlay.h"
#include "mds/shard/shard.h"
#include "mds/shard/view_cache.h"

struct txn {
    struct shard *shard;
    struct overlay *overlay;
    struct arena *arena;
    struct shard_entry *entry;
};

struct shard {
    struct shard_options o;
    struct store *store;
    struct format_rec format;
    struct view_cache view;
    pthread_t thread;

    pthread_mutex_t lock; /* what is below, up to the blank line */
    pthread_cond_t wake;
    struct list queue;
    uint32_t queued; /* the weight of what is on it */
    bool closing;
    bool waiting;             /* the writer sleeps */
    struct reactor_work kick; /* wakes it, or does its work: runs when the reactor's turn ends */
    bool kicked;
    int64_t last_now_ns;

    pthread_mutex_t writing; /* what is below, up to the blank line; taken before lock */
    struct overlay overlay;
    struct store_batch *batch;
    uint64_t index; /* of the last entry executed */
    uint64_t checked_ns;
    uint64_t slow_until_ns, slow_ns; /* commits take long: not on a reactor until then */

    atomic_bool failed;
    atomic_int flow;        /* enum store_flow, as last seen */
    atomic_bool disk_low;   /* less than reserve_bytes free */
    atomic_bool disk_tight; /* less than SHARD_TIGHT times that */
    _Atomic uint64_t n_entries, n_commits, n_duplicates, n_retries, n_refused, n_rolled, exec_ns,
        commit_ns;
};

/* How much of the queue it takes. */
static inline uint32_t shard_weight(const struct shard_entry *e)
{
    return MAX(e->n_items, 1u);
}

void *shard_writer(void *arg);           /* struct shard * */
void shard_kick(struct reactor_work *w); /* shard.kick */
void shard_write_here(struct shard *s);  /* all that waits, on this thread */
/* Executes one entry against the overlay: slots, operation, reply; sets everything of the
 * outcome. */
void shard_execute(struct shard *s, struct shard_entry *e);
void shard_check_space(struct shard *s); /* any thread */
void shard_answer(struct shard_entry *e);

#endif
