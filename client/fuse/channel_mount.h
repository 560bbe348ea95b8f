/* SPDX-License-Identifier: Apache-2.0 */
/* Mounting a FUSE file system with mount(2): for root only. Any thread. */
#ifndef AIFS_CLIENT_FUSE_CHANNEL_MOUNT_H
#define AIFS_CLIENT_FUSE_CHANNEL_MOUNT_H

#include <stddef.h>

#include "common/base/compiler.h"
#include "common/base/text.h"

/* Words of mount(8), comma separated: those that are flags of mount(2) to *flags (MS_*), the rest,
 * each behind a comma, to data. Commas inside of "..." belong to the value. */
void channel_mount_flags(const char *words, unsigned long *flags, struct strbuf *data);
/* /dev/fuse, mounted on dir with flags as above (may be NULL): its descriptor in *ret_fd,
 * non-blocking. -errno, text in err. */
int channel_mount(const char *source, const char *dir, const char *words, int *ret_fd, char *err,
                  size_t err_len) MUST_USE;

#endif
