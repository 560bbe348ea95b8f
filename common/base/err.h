/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of errors.
 *
 * Every function that can fail returns int: 0 (or a count) on success, a negative number on
 * failure. The number is either -errno, with Linux's generic numbering (it travels on the wire, so
 * the numbers are those of asm-generic whatever the host), or -AIFS_E..., an outcome POSIX has no
 * word for, numbered from 1000. Every AIFS_E... has a parent errno; only an edge (FUSE reply,
 * libaifs) maps it with err_to_errno().
 *
 * Any thread may call any function here; nothing here allocates or fails.
 */
#ifndef AIFS_COMMON_BASE_ERR_H
#define AIFS_COMMON_BASE_ERR_H

#include <errno.h>
#include <stdint.h>

/*  name            number  parent errno  text */
#define AIFS_ERR_TABLE(X)                                                                          \
    X(AIFS_EPROTO, 1000, EPROTO, "malformed message")                                              \
    X(AIFS_EVERSION, 1001, EPROTONOSUPPORT, "no common protocol version")                          \
    X(AIFS_EAUTH, 1002, EACCES, "authentication failed: the keys differ")                          \
    X(AIFS_ECLUSTER, 1003, EREMCHG, "the peer belongs to another cluster")                         \
    X(AIFS_EROLE, 1004, EPERM, "this role may not do that")                                        \
    X(AIFS_ECONN, 1005, EIO, "connection lost")                                                    \
    X(AIFS_ETIMEOUT, 1006, ETIMEDOUT, "deadline passed")                                           \
    X(AIFS_ECANCELLED, 1007, EINTR, "cancelled")                                                   \
    X(AIFS_ESESSION, 1008, EIO, "session lost: evicted or unknown to the server")                  \
    X(AIFS_EFENCED, 1009, EIO, "session fenced")                                                   \
    X(AIFS_ESTALE_LAYOUT, 1010, EIO, "layout generation is old")                                   \
    X(AIFS_ESTALE_MAP, 1011, EIO, "cluster map is old")                                            \
    X(AIFS_ESTALE_TRUNC, 1012, EIO, "truncate generation is old")                                  \
    X(AIFS_ERETRY, 1013, EAGAIN, "try again")                                                      \
    X(AIFS_EBUSY_SERVER, 1014, EBUSY, "server is out of resources, try again")                     \
    X(AIFS_ECHECKSUM, 1015, EIO, "checksum mismatch")                                              \
    X(AIFS_ECORRUPT, 1016, EIO, "stored data is damaged")                                          \
    X(AIFS_EFORMAT, 1017, EINVAL, "unknown format version")                                        \
    X(AIFS_ENOTARGET, 1018, EIO, "no such target on this server")                                  \
    X(AIFS_EDOWN, 1019, EIO, "target or server is down")                                           \
    X(AIFS_ELEASE, 1020, EIO, "the lease needed for this is not held")                             \
    X(AIFS_EINLINE_FULL, 1021, EFBIG, "larger than the inline limit: grow the file first")         \
    X(AIFS_ECONFIG, 1022, EINVAL, "bad configuration")                                             \
    X(AIFS_ELOST, 1023, EIO, "its target was given up: what it held is lost")                      \
    X(AIFS_EUNKNOWN, 1999, EIO, "error number unknown to this version")

#define AIFS_ERR_ENUM(name, number, parent, text) name = number,
enum aifs_err { AIFS_ERR_TABLE(AIFS_ERR_ENUM) };
#undef AIFS_ERR_ENUM

/* Short name ("ENOENT", "AIFS_ECONN") of a negative or positive error number; never NULL. */
const char *err_name(int err);
/* One clause for people; never NULL. */
const char *err_text(int err);
/* Positive errno for the edge: the number itself, or the parent of an AIFS_E...; 0 for 0. */
int err_to_errno(int err);
/* Wire form of a result (0 or -err) and back; a number this version does not know becomes
 * -AIFS_EUNKNOWN. */
uint32_t err_to_wire(int err);
int err_from_wire(uint32_t wire);

#endif
