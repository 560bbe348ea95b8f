/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-bound cleanup by attribute: AUTO_FREE char *p = ...; AUTO_CLOSE int fd = ...;
 * AUTO_UNLOCK(&mutex); */
#ifndef AIFS_COMMON_BASE_CLEANUP_H
#define AIFS_COMMON_BASE_CLEANUP_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/mem.h"

static inline void cleanup_free(void *p)
{
    mem_free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_unlock(pthread_mutex_t **m)
{
    if (*m)
        pthread_mutex_unlock(*m);
}

static inline pthread_mutex_t *cleanup_lock(pthread_mutex_t *m)
{
    pthread_mutex_lock(m);
    return m;
}

#define AUTO_FREE  __attribute__((cleanup(cleanup_free)))
#define AUTO_CLOSE __attribute__((cleanup(cleanup_close)))
#define AUTO_LOCK(mutex)                                                                           \
    pthread_mutex_t *auto_lock_ __attribute__((cleanup(cleanup_unlock), unused)) =                 \
        cleanup_lock(mutex)

#endif
