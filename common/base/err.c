// SPDX-License-Identifier: Apache-2.0
/*
 * Names, texts and numbers of errors. The table of errno names carries Linux's generic numbers,
 * which are what travels on the wire; on most hosts they are the host's own. Unknown numbers become
 * AIFS_EUNKNOWN, never an assertion: they may come from a newer peer.
 */
#include "common/base/err.h"

#include <stddef.h>
#include <string.h>

#include "common/base/compiler.h"

/* clang-format off */
#define ERRNO_TABLE(X) \
    X(EPERM, 1) X(ENOENT, 2) X(ESRCH, 3) X(EINTR, 4) X(EIO, 5) X(ENXIO, 6) X(E2BIG, 7) \
    X(ENOEXEC, 8) X(EBADF, 9) X(ECHILD, 10) X(EAGAIN, 11) X(ENOMEM, 12) X(EACCES, 13) \
    X(EFAULT, 14) X(ENOTBLK, 15) X(EBUSY, 16) X(EEXIST, 17) X(EXDEV, 18) X(ENODEV, 19) \
    X(ENOTDIR, 20) X(EISDIR, 21) X(EINVAL, 22) X(ENFILE, 23) X(EMFILE, 24) X(ENOTTY, 25) \
    X(ETXTBSY, 26) X(EFBIG, 27) X(ENOSPC, 28) X(ESPIPE, 29) X(EROFS, 30) X(EMLINK, 31) \
    X(EPIPE, 32) X(EDOM, 33) X(ERANGE, 34) X(EDEADLK, 35) X(ENAMETOOLONG, 36) X(ENOLCK, 37) \
    X(ENOSYS, 38) X(ENOTEMPTY, 39) X(ELOOP, 40) X(ENOMSG, 42) X(EIDRM, 43) X(ECHRNG, 44) \
    X(EL2NSYNC, 45) X(EL3HLT, 46) X(EL3RST, 47) X(ELNRNG, 48) X(EUNATCH, 49) X(ENOCSI, 50) \
    X(EL2HLT, 51) X(EBADE, 52) X(EBADR, 53) X(EXFULL, 54) X(ENOANO, 55) X(EBADRQC, 56) \
    X(EBADSLT, 57) X(EBFONT, 59) X(ENOSTR, 60) X(ENODATA, 61) X(ETIME, 62) X(ENOSR, 63) \
    X(ENONET, 64) X(ENOPKG, 65) X(EREMOTE, 66) X(ENOLINK, 67) X(EADV, 68) X(ESRMNT, 69) \
    X(ECOMM, 70) X(EPROTO, 71) X(EMULTIHOP, 72) X(EDOTDOT, 73) X(EBADMSG, 74) X(EOVERFLOW, 75) \
    X(ENOTUNIQ, 76) X(EBADFD, 77) X(EREMCHG, 78) X(ELIBACC, 79) X(ELIBBAD, 80) X(ELIBSCN, 81) \
    X(ELIBMAX, 82) X(ELIBEXEC, 83) X(EILSEQ, 84) X(ERESTART, 85) X(ESTRPIPE, 86) \
    X(EUSERS, 87) X(ENOTSOCK, 88) X(EDESTADDRREQ, 89) X(EMSGSIZE, 90) X(EPROTOTYPE, 91) \
    X(ENOPROTOOPT, 92) X(EPROTONOSUPPORT, 93) X(ESOCKTNOSUPPORT, 94) X(EOPNOTSUPP, 95) \
    X(EPFNOSUPPORT, 96) X(EAFNOSUPPORT, 97) X(EADDRINUSE, 98) X(EADDRNOTAVAIL, 99) \
    X(ENETDOWN, 100) X(ENETUNREACH, 101) X(ENETRESET, 102) X(ECONNABORTED, 103) \
    X(ECONNRESET, 104) X(ENOBUFS, 105) X(EISCONN, 106) X(ENOTCONN, 107) X(ESHUTDOWN, 108) \
    X(ETOOMANYREFS, 109) X(ETIMEDOUT, 110) X(ECONNREFUSED, 111) X(EHOSTDOWN, 112) \
    X(EHOSTUNREACH, 113) X(EALREADY, 114) X(EINPROGRESS, 115) X(ESTALE, 116) X(EUCLEAN, 117) \
    X(ENOTNAM, 118) X(ENAVAIL, 119) X(EISNAM, 120) X(EREMOTEIO, 121) X(EDQUOT, 122) \
    X(ENOMEDIUM, 123) X(EMEDIUMTYPE, 124) X(ECANCELED, 125) X(ENOKEY, 126) X(EKEYEXPIRED, 127) \
    X(EKEYREVOKED, 128) X(EKEYREJECTED, 129) X(EOWNERDEAD, 130) X(ENOTRECOVERABLE, 131) \
    X(ERFKILL, 132) X(EHWPOISON, 133)
/* clang-format on */

struct err_row {
    int host, wire, parent;
    const char *name, *text;
};

#define ERRNO_ROW(name, number)              {name, number, name, #name, NULL},
#define AIFS_ROW(name, number, parent, text) {number, number, parent, #name, text},
static const struct err_row rows[] = {ERRNO_TABLE(ERRNO_ROW) AIFS_ERR_TABLE(AIFS_ROW)};

static const struct err_row *find_host(int err)
{
    size_t i;

    if (err < 0)
        err = err < -AIFS_EUNKNOWN ? 0 : -err; /* also keeps clear of -INT_MIN */
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].host == err)
            return &rows[i];
    }
    return NULL;
}

const char *err_name(int err)
{
    const struct err_row *r = find_host(err);

    if (r)
        return r->name;
    return err ? "EUNKNOWN" : "OK";
}

const char *err_text(int err)
{
    const struct err_row *r = find_host(err);
    const char *text = r && !r->text ? strerrordesc_np(r->host) : NULL;

    if (r && r->text)
        return r->text;
    if (text)
        return text;
    return err ? "unknown error" : "success";
}

int err_to_errno(int err)
{
    const struct err_row *r = find_host(err);

    if (!err)
        return 0;
    return r ? r->parent : EIO;
}

uint32_t err_to_wire(int err)
{
    const struct err_row *r;

    if (!err)
        return 0; /* in every header of a message: no search */
    r = find_host(err);
    return r ? (uint32_t)r->wire : (uint32_t)AIFS_EUNKNOWN;
}

int err_from_wire(uint32_t wire)
{
    size_t i;

    if (!wire)
        return 0;
    for (i = 0; i < ARRAY_LEN(rows); i++) {
        if ((uint32_t)rows[i].wire == wire)
            return -rows[i].host;
    }
    return -AIFS_EUNKNOWN;
}
