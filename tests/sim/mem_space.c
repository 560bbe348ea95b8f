/* SPDX-License-Identifier: Apache-2.0 */
/* Space in the simulated chunk store: there is always enough. */
#include "oss/chunk/store.h"

void chunk_store_promise(struct chunk_store *s, uint64_t *promise, uint64_t more_bytes)
{
    (void)s;
    *promise += more_bytes;
}

void chunk_store_unpromise(struct chunk_store *s, uint64_t *promise)
{
    (void)s;
    *promise = 0;
}

void chunk_store_stat(struct chunk_store *s, struct chunk_stat *ret_stat)
{
    (void)s;
    *ret_stat = (struct chunk_stat){.total_bytes = GIB, .free_bytes = GIB};
}
