/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of a directory as bulk payload: records one after the other, little-endian, each padded to
 * 8 bytes. With plus a struct dirent_attr_wire stands between head and name. Cookies are stable:
 * h48(name) << 16 | ordinal among equal hashes; they survive restarts and are valid for any server.
 */
#ifndef AIFS_PROTO_DIRENT_FMT_H
#define AIFS_PROTO_DIRENT_FMT_H

#include <assert.h>
#include <stdint.h>

struct dirent_wire {
    uint64_t ino;
    uint64_t cookie;
    uint16_t record_len; /* of the whole record, padding included */
    uint8_t type;        /* DT_* */
    uint8_t name_len;
    uint8_t has_attr; /* with plus, 0: the space is there, but its writer alone knows them */
    uint8_t zero[3];
};
static_assert(sizeof(struct dirent_wire) == 24, "dirent");

struct dirent_attr_wire {
    uint64_t size, change, truncate_gen;
    int64_t atime_sec, mtime_sec, ctime_sec, btime_sec;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec, btime_nsec;
    uint32_t mode, nlink, uid, gid, rdev, flags;
};
static_assert(sizeof(struct dirent_attr_wire) == 96, "dirent attributes");

#endif
