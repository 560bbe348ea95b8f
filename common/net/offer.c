/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport offers: encoding, and the choice. Shared memory wants one kernel, one user and one pid
 * and user name space, because reading the other's memory needs all of these (ptrace(2), access
 * mode checking). That the process is the one at the other end is asked of the kernel afterwards
 * (peer_process.h); that its memory can be read in fact is proved with the cookie.
 */
#include "common/net/offer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/ids.h"

void offer_encode(const struct offer *o, uint8_t out[OFFER_BYTES])
{
    memset(out, 0, OFFER_BYTES);
    out[0] = OFFER_VERSION;
    out[1] = o->want;
    le16_store(out + 2, o->flags);
    le32_store(out + 4, o->uid);
    le32_store(out + 8, o->pid);
    memcpy(out + 16, o->boot_id, sizeof o->boot_id);
    le64_store(out + 32, o->pid_ns);
    le64_store(out + 40, o->user_ns);
    le64_store(out + 48, o->cookie_at);
    memcpy(out + 56, o->cookie, OFFER_COOKIE_BYTES);
    le64_store(out + 72, o->share.base);
    le64_store(out + 80, o->share.bytes);
    le64_store(out + 88, o->share.ino);
    le32_store(out + 96, (uint32_t)o->share.fd);
    le32_store(out + 100, (uint32_t)o->socket + 1);
}

int offer_decode(const void *data, uint32_t len, struct offer *ret_offer)
{
    const uint8_t *p = data;

    if (len < OFFER_BYTES_MIN || p[0] < OFFER_VERSION || p[1] > NET_WANT_RDMA)
        return -AIFS_EPROTO;
    ret_offer->want = p[1];
    ret_offer->flags = le16_load(p + 2);
    ret_offer->uid = le32_load(p + 4);
    ret_offer->pid = le32_load(p + 8);
    memcpy(ret_offer->boot_id, p + 16, sizeof ret_offer->boot_id);
    ret_offer->pid_ns = le64_load(p + 32);
    ret_offer->user_ns = le64_load(p + 40);
    ret_offer->cookie_at = le64_load(p + 48);
    memcpy(ret_offer->cookie, p + 56, OFFER_COOKIE_BYTES);
    ret_offer->share = (struct share){0};
    ret_offer->socket = -1;
    if (len < OFFER_BYTES)
        return 0;
    ret_offer->share = (struct share){le64_load(p + 72), le64_load(p + 80), le64_load(p + 88),
                                      (int32_t)le32_load(p + 96)};
    ret_offer->socket = (int32_t)(le32_load(p + 100) - 1);
    return 0;
}

/* NULL: shared memory can be tried; else why not. */
static const char *why_no_shm(const struct offer *a, const struct offer *b)
{
    if (memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) != 0)
        return "different hosts";
    if (a->pid_ns != b->pid_ns || a->user_ns != b->user_ns)
        return "same host, different name spaces";
    if (a->uid != b->uid)
        return "same host, different users";
    if (!(a->flags & b->flags & OFFER_SHM))
        return "shared memory is not available";
    return NULL;
}

static const char *why_no_rdma(const struct offer *a, const struct offer *b)
{
    return (a->flags & b->flags & OFFER_RDMA) ? NULL : "no RDMA device on one end or both";
}

static bool wants(const struct offer *a, const struct offer *b, enum net_want w)
{
    return a->want == w || b->want == w;
}

struct choice offer_choose(const struct offer *a, const struct offer *b)
{
    const char *no_shm = why_no_shm(a, b);
    const char *no_rdma = why_no_rdma(a, b);
    bool tcp = wants(a, b, NET_WANT_TCP);
    bool shm = wants(a, b, NET_WANT_SHM);
    bool rdma = wants(a, b, NET_WANT_RDMA);

    if ((a->flags | b->flags) & OFFER_CALLS)
        return (struct choice){CHOICE_SOCKET, "a few calls only", false};
    if (tcp + shm + rdma > 1)
        return (struct choice){CHOICE_SOCKET, "the two ends ask for different transports", true};
    if (tcp)
        return (struct choice){CHOICE_SOCKET, "asked for", false};
    if (shm)
        return no_shm ? (struct choice){CHOICE_SOCKET, no_shm, true}
                      : (struct choice){CHOICE_SHM, "asked for", false};
    if (rdma)
        return no_rdma ? (struct choice){CHOICE_SOCKET, no_rdma, true}
                       : (struct choice){CHOICE_RDMA, "asked for", false};
    if (!no_shm)
        return (struct choice){CHOICE_SHM, "same host", false};
    if (!no_rdma)
        return (struct choice){CHOICE_RDMA, "both ends have an RDMA device", false};
    return (struct choice){CHOICE_SOCKET, no_shm, false};
}

static int read_boot_id(uint8_t boot_id[16])
{
    AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    char text[UUID_TEXT_BYTES] = "";
    struct uuid u;

    if (fd < 0)
        return -errno;
    if (read(fd, text, sizeof text - 1) != sizeof text - 1 || uuid_parse(text, &u) < 0)
        return -EIO;
    memcpy(boot_id, u.b, 16);
    return 0;
}

static int name_space(const char *path, uint64_t *ret_inode)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    *ret_inode = st.st_ino;
    return 0;
}

int offer_of_this_process(struct offer *ret_offer)
{
    struct offer o = {.uid = geteuid(), .pid = (uint32_t)getpid(), .socket = -1};
    int rc = read_boot_id(o.boot_id);

    if (rc == 0)
        rc = name_space("/proc/self/ns/pid", &o.pid_ns);
    if (rc == 0)
        rc = name_space("/proc/self/ns/user", &o.user_ns);
    if (rc == 0)
        *ret_offer = o;
    return rc;
}
