/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for reads and writes: page-aligned, touched once, and recycled last in first out, because
 * fresh pages cost more than the network. Sizes are rounded up to powers of two, a list for each.
 * Failure: the bound is reached even without what is kept for later (-ENOMEM).
 */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/base/cleanup.h"
#include "common/net/buf.h"

#define CLASS_MIN_SHIFT 12u
#define CLASSES         20u /* 4 KiB to 2 GiB */

struct aifs_buffer {
    struct aifs *fs;
    struct list link;
    unsigned class;
    void *data;
};

struct lib_buffers {
    pthread_mutex_t lock;
    struct list idle[CLASSES]; /* struct aifs_buffer */
    uint64_t bytes, idle_bytes, limit_bytes;
};

static size_t class_bytes(unsigned class)
{
    return (size_t)1 << (class + CLASS_MIN_SHIFT);
}

int lib_buffers_create(uint64_t limit_bytes, struct lib_buffers **ret_buffers)
{
    struct lib_buffers *b = mem_zalloc(sizeof *b);

    if (!b)
        return -ENOMEM;
    pthread_mutex_init(&b->lock, NULL);
    b->limit_bytes = limit_bytes;
    for (unsigned k = 0; k < CLASSES; k++)
        list_init(&b->idle[k]);
    *ret_buffers = b;
    return 0;
}

static void buffer_free(struct lib_buffers *b, struct aifs_buffer *buffer)
{
    b->bytes -= class_bytes(buffer->class);
    munmap(buffer->data, class_bytes(buffer->class));
    mem_free(buffer);
}

static void drop_idle(struct lib_buffers *b)
{
    for (unsigned k = 0; k < CLASSES; k++)
        while (!list_empty(&b->idle[k]))
            buffer_free(b, list_entry(list_pop_front(&b->idle[k]), struct aifs_buffer, link));
    b->idle_bytes = 0;
}

static struct aifs_buffer *idle_take(struct lib_buffers *b, unsigned class)
{
    struct list *l = list_pop_front(&b->idle[class]);

    if (l)
        b->idle_bytes -= class_bytes(class);
    return l ? list_entry(l, struct aifs_buffer, link) : NULL;
}

void lib_buffers_destroy(struct lib_buffers *b)
{
    if (!b)
        return;
    drop_idle(b);
    pthread_mutex_destroy(&b->lock);
    mem_free(b);
}

/* Another thread of the parent may have been in here: what is kept for later stays where it is, and
 * does not count here. */
void lib_buffers_after_fork(struct lib_buffers *b)
{
    pthread_mutex_init(&b->lock, NULL);
    for (unsigned k = 0; k < CLASSES; k++)
        list_init(&b->idle[k]);
    b->bytes -= MIN(b->bytes, b->idle_bytes);
    b->idle_bytes = 0;
}

static struct aifs_buffer *buffer_new(struct lib_buffers *b, unsigned class)
{
    struct aifs_buffer *buffer;

    if (b->bytes + class_bytes(class) > b->limit_bytes)
        drop_idle(b);
    if (b->bytes + class_bytes(class) > b->limit_bytes)
        return NULL;
    buffer = mem_zalloc(sizeof *buffer);
    if (!buffer)
        return NULL;
    buffer->class = class;
    buffer->data = buf_memory_map(class_bytes(class));
    if (!buffer->data) {
        mem_free(buffer);
        return NULL;
    }
    b->bytes += class_bytes(class);
    return buffer;
}

struct aifs_buffer *aifs_buffer_get(struct aifs *fs, size_t bytes, int memory)
{
    struct lib_buffers *b = fs->buffers;
    struct aifs_buffer *buffer;
    unsigned class = 0;

    if (memory != AIFS_MEMORY_HOST) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    while (class < CLASSES && class_bytes(class) < bytes)
        class ++;
    if (!bytes || class == CLASSES) {
        errno = EINVAL;
        return NULL;
    }
    pthread_mutex_lock(&b->lock);
    buffer = idle_take(b, class);
    if (!buffer)
        buffer = buffer_new(b, class);
    pthread_mutex_unlock(&b->lock);
    if (buffer)
        buffer->fs = fs;
    else
        errno = ENOMEM;
    return buffer;
}

void *aifs_buffer_data(const struct aifs_buffer *buffer)
{
    return buffer->data;
}

void aifs_buffer_put(struct aifs_buffer *buffer)
{
    struct lib_buffers *b;

    if (!buffer)
        return;
    b = buffer->fs->buffers;
    pthread_mutex_lock(&b->lock);
    list_push_front(&b->idle[buffer->class], &buffer->link);
    b->idle_bytes += class_bytes(buffer->class);
    pthread_mutex_unlock(&b->lock);
}
