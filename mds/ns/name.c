/* SPDX-License-Identifier: Apache-2.0 */
/* Names of directory entries and the type that stands beside them. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "mds/ns/ns.h"

int ns_name_check(const struct msg_bytes *name)
{
    const char *p = name->data;

    if (name->len == 0)
        return -EINVAL;
    if (name->len > MSG_NAME_MAX)
        return -ENAMETOOLONG;
    if (memchr(p, '/', name->len) || memchr(p, '\0', name->len))
        return -EINVAL;
    if (p[0] == '.' && (name->len == 1 || (name->len == 2 && p[1] == '.')))
        return -EINVAL;
    return 0;
}

uint8_t ns_type_of(uint32_t mode)
{
    return (uint8_t)IFTODT(mode & S_IFMT);
}
