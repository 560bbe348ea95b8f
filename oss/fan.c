// SPDX-License-Identifier: Apache-2.0
/*
 * One request over many chunks: OSS_FAN_WIDTH operations of the chunk store at a time. Completions
 * may come inside the submission (plain I/O), hence the pump. After a failure nothing more is
 * started; the first failure is the result.
 */
#include <string.h>

#include "common/base/err.h"
#include "oss/oss.h"

struct oss_fan *oss_fan_create(struct oss_request *r, uint32_t n)
{
    uint32_t n_slots = MIN(n, r->oss->fan_width ? r->oss->fan_width : OSS_FAN_WIDTH);
    struct oss_fan *f = oss_alloc(r, sizeof *f + n_slots * sizeof f->slots[0]);

    if (!f)
        return NULL;
    f->request = r;
    f->store = r->target->store;
    f->n = n;
    f->n_slots = n_slots;
    for (uint32_t i = 0; i < n_slots; i++)
        f->slots[i].fan = f;
    return f;
}

static struct oss_fan_slot *fan_free_slot(struct oss_fan *f)
{
    for (uint32_t i = 0; i < f->n_slots; i++)
        if (!f->slots[i].busy)
            return &f->slots[i];
    return NULL;
}

static void fan_done(struct chunk_op *op, int status);

static void fan_start(struct oss_fan *f, struct oss_fan_slot *slot)
{
    memset(&slot->op, 0, sizeof slot->op);
    slot->i = f->next++;
    slot->busy = true;
    slot->op.done = fan_done;
    slot->op.arg = slot;
    f->running++;
    f->fill(f, slot->i, &slot->op);
    chunk_store_submit(f->store, &slot->op);
}

void oss_fan_run(struct oss_fan *f)
{
    struct oss_fan_slot *slot;

    if (f->pumping)
        return;
    f->pumping = true;
    while (!f->status && f->next < f->n && (slot = fan_free_slot(f)))
        fan_start(f, slot);
    f->pumping = false;
    if (!f->running && (f->status || f->next == f->n))
        f->done(f->request, f->status);
}

static void fan_done(struct chunk_op *op, int status)
{
    struct oss_fan_slot *slot = op->arg;
    struct oss_fan *f = slot->fan;

    slot->busy = false;
    f->running--;
    if (!status && f->each)
        f->each(f, slot->i, op);
    if (status && !f->status)
        f->status = status;
    oss_fan_run(f);
}
