/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying to memory that is not looked at again soon, past the processor's caches: a line that is
 * written as a whole is not read first, and does not drive others out. To memory that is in no
 * cache that takes half the time of memcpy(); to what is, more, and who reads it next waits for the
 * memory. Any thread.
 */
#ifndef AIFS_COMMON_BASE_STREAM_H
#define AIFS_COMMON_BASE_STREAM_H

#include <stddef.h>

/* As memcpy(); past the caches if to is on a line (64 bytes) and len is whole lines. Other threads
 * see it no earlier than stream_end(). */
void stream_copy(void *to, const void *from, size_t len);
void stream_end(void);

#endif
