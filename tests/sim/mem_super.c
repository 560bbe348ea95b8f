/* SPDX-License-Identifier: Apache-2.0 */
/* Superblocks of simulated disks; see oss/chunk/super.h. */
#include <errno.h>

#include "oss/chunk/super.h"
#include "tests/sim/sim.h"

int super_load(const char *dir, struct super *ret_super, char *err, size_t err_len)
{
    (void)err, (void)err_len;
    *ret_super = *sim_chunks_super(dir);
    return uuid_is_zero(&ret_super->target) ? -ENOENT : 0;
}

int super_check_new(const char *dir, const char *pool, char *err, size_t err_len)
{
    (void)dir, (void)pool, (void)err, (void)err_len;
    return 0;
}

int super_format(const char *dir, const struct uuid *cluster, const struct uuid *node,
                 const char *pool, char *err, size_t err_len)
{
    struct super *s = sim_chunks_super(dir);

    (void)err, (void)err_len, (void)pool;
    *s = (struct super){.cluster = *cluster, .node = *node, .pool = "default"};
    return uuid_random(&s->target);
}
