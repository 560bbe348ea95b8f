// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/fuse/fake.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

struct fake fake;
static struct channel_req request;
static struct clock_virtual passing;

void fake_pass(uint64_t ns)
{
    if (!fake.passed)
        clock_virtual_init(&passing, clock_mono_ns(clock_real()), 0);
    fake.passed = true;
    clock_virtual_advance(&passing, ns);
}

void fake_reset(struct fs *fs)
{
    struct core_events events;

    memset(&fake, 0, sizeof fake);
    memset(fs, 0, sizeof *fs);
    fs->root = 100;
    fs_events(fs, &events);
    fake.dir_room = FAKE_ENTRIES;
    fake.dir_memory = 16 * MIB;
}

struct channel_req *fake_request(struct fs *fs, enum channel_op op, uint64_t node)
{
    memset(&request, 0, sizeof request);
    request.user = fs;
    request.op = op;
    request.node = node;
    request.uid = 1000;
    request.gid = 1000;
    return &request;
}

struct channel_req *fake_named(struct fs *fs, enum channel_op op, const char *name)
{
    struct channel_req *q = fake_request(fs, op, 1);

    q->name.name = name;
    return q;
}

void fake_complete(int status)
{
    struct core_req *q = fake.waiting;

    fake.waiting = NULL;
    q->done(q, status);
}

static void PRINTF_LIKE(2, 3) call(struct core_req *q, const char *fmt, ...)
{
    size_t n = strlen(fake.calls);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fake.calls + n, sizeof fake.calls - n, fmt, ap);
    va_end(ap);
    if (q->cred.n_groups)
        snprintf(fake.calls + strlen(fake.calls), sizeof fake.calls - strlen(fake.calls),
                 " with %u groups", q->cred.n_groups);
    strncat(fake.calls, ";", sizeof fake.calls - strlen(fake.calls) - 1);
    fake.waiting = q;
    if (fake.at_once || fake.complete_next) {
        fake.complete_next = false;
        fake_complete(fake.at_once_status);
    }
}

static void PRINTF_LIKE(1, 2) reply(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fake.reply, sizeof fake.reply, fmt, ap);
    va_end(ap);
    fake.replies++;
}

#define U(x) ((unsigned long long)(x))

/* ---- the core ---- */

void core_lookup(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n, uint32_t len)
{
    call(q, "lookup %llu %.*s", U(p), (int)len, n);
}

struct msg_bytes core_link_target(const struct core *c UNUSED, uint64_t ino UNUSED)
{
    return fake.target;
}

void core_getattr(struct core *c UNUSED, struct core_req *q, uint64_t ino)
{
    call(q, "getattr %llu", U(ino));
}

void core_setattr(struct core *c UNUSED, struct core_req *q, const struct msg_setattr_req *s,
                  struct core_file *f)
{
    call(q, "setattr %llu %#x%s", U(s->ino), s->set, f ? " open" : "");
}

void core_create_file(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n,
                      uint32_t len, uint32_t mode, int flags UNUSED,
                      const struct msg_stripe *s UNUSED)
{
    call(q, "create %llu %.*s %o", U(p), (int)len, n, mode);
}

void core_mkdir(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n, uint32_t len,
                uint32_t mode, const struct msg_stripe *s UNUSED)
{
    call(q, "mkdir %llu %.*s %o", U(p), (int)len, n, mode);
}

void core_mknod(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n, uint32_t len,
                uint32_t mode, uint32_t rdev, const struct msg_stripe *s UNUSED)
{
    call(q, "mknod %llu %.*s %o %u", U(p), (int)len, n, mode, rdev);
}

void core_symlink(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n,
                  uint32_t len, const char *t, uint32_t t_len)
{
    call(q, "symlink %llu %.*s %.*s", U(p), (int)len, n, (int)t_len, t);
}

void core_unlink(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n, uint32_t len)
{
    call(q, "unlink %llu %.*s", U(p), (int)len, n);
}

void core_rmdir(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n, uint32_t len)
{
    call(q, "rmdir %llu %.*s", U(p), (int)len, n);
}

void core_rename(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n, uint32_t len,
                 uint64_t p2, const char *n2, uint32_t len2, uint32_t flags)
{
    call(q, "rename %llu %.*s %llu %.*s %u", U(p), (int)len, n, U(p2), (int)len2, n2, flags);
}

void core_link(struct core *c UNUSED, struct core_req *q, uint64_t ino, uint64_t p, const char *n,
               uint32_t len)
{
    call(q, "link %llu %llu %.*s", U(ino), U(p), (int)len, n);
}

void core_readlink(struct core *c UNUSED, struct core_req *q, uint64_t ino)
{
    call(q, "readlink %llu", U(ino));
}

void core_lock(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED,
               const struct msg_lock *l, bool wait)
{
    call(q, "lock %u %u %llu-%llu of %llu%s", l->kind, l->type, U(l->start), U(l->end), U(l->owner),
         wait ? " wait" : "");
}

void core_lock_test(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED,
                    const struct msg_lock *l)
{
    call(q, "test %u %llu-%llu", l->type, U(l->start), U(l->end));
}

bool core_owns_locks(const struct core_file *f UNUSED, uint64_t owner)
{
    return owner == fake.lock_owner && owner != 0;
}

void core_unlock_owner(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED,
                       uint64_t owner)
{
    call(q, "unlock %llu", U(owner));
}

void core_statfs(struct core *c UNUSED, struct core_req *q, uint64_t ino)
{
    call(q, "statfs %llu", U(ino));
}

void core_getxattr(struct core *c UNUSED, struct core_req *q, uint64_t ino, const char *n,
                   uint32_t len)
{
    call(q, "getxattr %llu %.*s", U(ino), (int)len, n);
}

void core_setxattr(struct core *c UNUSED, struct core_req *q, uint64_t ino, const char *n,
                   uint32_t len, const void *v UNUSED, uint32_t v_len, uint32_t flags)
{
    call(q, "setxattr %llu %.*s %u %u", U(ino), (int)len, n, v_len, flags);
}

void core_listxattr(struct core *c UNUSED, struct core_req *q, uint64_t ino)
{
    call(q, "listxattr %llu", U(ino));
}

void core_removexattr(struct core *c UNUSED, struct core_req *q, uint64_t ino, const char *n,
                      uint32_t len)
{
    call(q, "removexattr %llu %.*s", U(ino), (int)len, n);
}

void core_readdir(struct core *c UNUSED, struct core_req *q, uint64_t ino, uint64_t cookie,
                  uint32_t max, bool plus)
{
    fake.page_bytes = max;
    q->out.dir.eof = fake.eof;
    q->out.dir.parent = 55;
    q->p.progress = 0;
    call(q, "readdir %llu %#llx%s", U(ino), U(cookie), plus ? " plus" : "");
}

int core_dirent_next(struct core_req *q, struct core_dirent *e)
{
    if (q->p.progress >= fake.page_len)
        return 0;
    *e = fake.page[q->p.progress++];
    return 1;
}

void core_dirent_again(const struct core_req *q UNUSED, struct core_dirent *e)
{
    e->has_entry = !fake.changed;
}

uint64_t core_readdir_last(const struct core_req *q UNUSED)
{
    return fake.page_len ? fake.page[fake.page_len - 1].cookie : 0;
}

uint32_t core_readdir_bytes(const struct core_req *q UNUSED)
{
    return FAKE_PAGE_BYTES;
}

uint64_t core_readdir_memory(const struct core *c UNUSED)
{
    return fake.dir_memory;
}

void core_readdir_done(struct core_req *q UNUSED)
{
    fake.page_done++;
}

void core_open(struct core *c UNUSED, struct core_req *q, uint64_t ino, int flags)
{
    q->out.opened.file = (struct core_file *)(void *)&fake;
    call(q, "open %llu %#o", U(ino), (unsigned)flags);
}

void core_open_name(struct core *c UNUSED, struct core_req *q, uint64_t p, const char *n,
                    uint32_t len, int flags)
{
    q->out.opened.file = (struct core_file *)(void *)&fake;
    call(q, "open_name %llu %.*s %#o", U(p), (int)len, n, (unsigned)flags);
}

void core_flush(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED)
{
    call(q, "flush");
}

void core_fsync(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED, bool data)
{
    call(q, "fsync%s", data ? " data" : "");
}

void core_fallocate(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED, int mode,
                    uint64_t offset, uint64_t len)
{
    call(q, "fallocate %#x %llu %llu", (unsigned)mode, U(offset), U(len));
}

void core_seek(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED,
               uint64_t offset, bool hole)
{
    q->out.offset = offset + 7;
    call(q, "seek %s %llu", hole ? "hole" : "data", U(offset));
}

void core_copy(struct core *c UNUSED, struct core_req *q, struct core_file *from UNUSED,
               uint64_t from_offset, struct core_file *to UNUSED, uint64_t to_offset, uint64_t len)
{
    q->out.copied = len / 2;
    call(q, "copy %llu %llu %llu", U(from_offset), U(to_offset), U(len));
}

void core_fsync_ino(struct core *c UNUSED, struct core_req *q, uint64_t ino)
{
    call(q, "fsync_ino %llu", U(ino));
}

void core_release(struct core *c UNUSED, struct core_file *f UNUSED)
{
    fake.released++;
}

void core_forget(struct core *c UNUSED, uint64_t ino)
{
    snprintf(fake.calls, sizeof fake.calls, "forget %llu;", U(ino));
}

void core_read(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED, uint64_t at,
               uint32_t len, void *dst UNUSED)
{
    call(q, "read %llu %u", U(at), len);
}

void core_read_done(struct core_req *q UNUSED)
{
    fake.read_done++;
}

bool core_give_whole(struct core_file *f UNUSED)
{
    return fake.may_give;
}

void core_write_from(struct core *c UNUSED, struct core_req *q, struct core_file *f UNUSED,
                     uint64_t at, const struct iovec *iov, struct buf *room UNUSED)
{
    call(q, "write %llu %zu %.*s", U(at), iov->iov_len, (int)iov->iov_len,
         (const char *)iov->iov_base);
}

struct buf *core_write_room(struct core *c UNUSED)
{
    return NULL;
}

void core_write_room_put(struct core *c UNUSED, struct buf *room UNUSED)
{
}

void core_cancel(struct core_req *q)
{
    fake.cancelled += q == fake.waiting;
}

void core_give_up(struct core_req *q)
{
    fake.given_up += q == fake.waiting;
}

void core_inval_entry_done(struct core *c UNUSED, void *token UNUSED)
{
}

void core_limit_names(struct core *c UNUSED, uint64_t ns UNUSED)
{
}

void core_inval_done(struct core *c UNUSED, struct core_inval *v)
{
    snprintf(fake.calls, sizeof fake.calls, "inval_done %llu;", U(v->ino));
}

const struct clock *reactor_clock(const struct reactor *r UNUSED)
{
    return fake.passed ? &passing.clock : clock_real();
}

void reactor_defer(struct reactor *r UNUSED, struct reactor_work *w)
{
    if (fake.hold_work)
        fake.work = w;
    else
        w->fn(w);
}

void reactor_timer_init(struct reactor_timer *t, void (*fn)(struct reactor_timer *t))
{
    t->fn = fn;
}

void reactor_timer_start(struct reactor *r UNUSED, struct reactor_timer *t,
                         uint64_t deadline_ns UNUSED)
{
    fake.timer = t;
}

void reactor_timer_cancel(struct reactor *r UNUSED, struct reactor_timer *t UNUSED)
{
    fake.timer = NULL;
}

/* ---- the channel ---- */

void channel_on_interrupt(struct channel_req *q UNUSED, void (*fn)(struct channel_req *q))
{
    fake.on_interrupt = fn;
}

void channel_reply_err(struct channel_req *q UNUSED, int err)
{
    reply("err %d", err);
}

void channel_reply_entry(struct channel_req *q UNUSED, const struct channel_entry *e)
{
    fake.reply_valid_ns = e->entry_timeout_ns + e->attr_timeout_ns;
    reply("entry %llu", U(e->attr->ino));
}

void channel_reply_no_entry(struct channel_req *q UNUSED, uint64_t ns)
{
    reply("no entry %llu", U(ns));
}

void channel_reply_attr(struct channel_req *q UNUSED, const struct msg_attr *a, uint64_t ns)
{
    reply("attr %llu %llu", U(a->ino), U(ns));
}

void channel_reply_open(struct channel_req *q UNUSED, uint64_t fh, uint32_t flags)
{
    fake.reply_fh = fh;
    fake.reply_flags = flags;
    reply("open %#x", flags);
}

void channel_reply_create(struct channel_req *q UNUSED, const struct channel_entry *e, uint64_t fh,
                          uint32_t flags)
{
    fake.reply_fh = fh;
    reply("create %llu %#x", U(e->attr->ino), flags);
}

void channel_reply_write(struct channel_req *q UNUSED, uint32_t len)
{
    reply("write %u", len);
}

void channel_reply_offset(struct channel_req *q UNUSED, uint64_t offset)
{
    reply("offset %llu", U(offset));
}

void *channel_reply_room(struct channel_req *q UNUSED)
{
    return NULL;
}

void channel_reply_data(struct channel_req *q, const struct iovec *iov, int n,
                        void (*sent)(struct channel_req *q))
{
    reply("data %d %.*s", n, (int)iov->iov_len, (const char *)iov->iov_base);
    sent(q);
}

void channel_reply_readlink(struct channel_req *q UNUSED, const void *t, uint32_t len)
{
    reply("link %.*s", (int)len, (const char *)t);
}

void channel_reply_lock(struct channel_req *q UNUSED, const struct msg_lock *l)
{
    reply("lock %u %llu-%llu by %u", l->type, U(l->start), U(l->end), l->pid);
}

void channel_reply_statfs(struct channel_req *q UNUSED, const struct msg_statfs_rep *s)
{
    reply("statfs %llu", U(s->total_bytes));
}

void channel_reply_xattr(struct channel_req *q UNUSED, const void *v, uint32_t len)
{
    reply("xattr %.*s", (int)len, (const char *)v);
}

int channel_dir_begin(struct channel_req *q UNUSED)
{
    fake.names[0] = '\0';
    return fake.dir_status;
}

bool channel_dir_add(struct channel_req *q UNUSED, const char *name, uint64_t ino UNUSED,
                     uint32_t type UNUSED, uint64_t cookie, const struct channel_entry *e)
{
    size_t n = strlen(fake.names);

    if (!fake.dir_room)
        return false;
    fake.dir_room--;
    snprintf(fake.names + n, sizeof fake.names - n, "%s@%#llx%s ", name, U(cookie), e ? "+" : "");
    return true;
}

void channel_reply_dir(struct channel_req *q UNUSED)
{
    reply("dir");
}

int channel_req_groups(const struct channel_req *q UNUSED, uint32_t *groups, unsigned max,
                       uint32_t *ret_caps)
{
    *ret_caps = fake.caps;
    for (unsigned i = 0; i < max && (int)i < fake.n_groups; i++)
        groups[i] = 7000 + i;
    return fake.n_groups;
}

uint32_t *channel_req_caps(const struct channel_req *q UNUSED, uint32_t caps, struct msg_cred *c)
{
    c->caps = caps;
    return NULL;
}

bool channel_req_ends(const struct channel_req *q UNUSED)
{
    return fake.caller_ends;
}

bool channel_req_exits(const struct channel_req *q UNUSED)
{
    return fake.caller_exits;
}

int channel_notify_inode(struct channel *c UNUSED, uint64_t node UNUSED, int64_t offset UNUSED,
                         int64_t len UNUSED, channel_notified_fn done, void *arg)
{
    fake.notified++;
    fake.notify_done = done;
    fake.notify_arg = arg;
    return fake.notify_status;
}

bool channel_can_store(const struct channel *c UNUSED)
{
    return !fake.cannot_store;
}

int channel_store(struct channel *c UNUSED, uint64_t node UNUSED, const struct iovec *data UNUSED,
                  int n UNUSED)
{
    fake.stored += fake.store_status == 0;
    return fake.store_status;
}

void channel_expire_attr(struct channel *c UNUSED, uint64_t node UNUSED)
{
    fake.attrs_expired++;
}

int channel_notify_entry(struct channel *c UNUSED, uint64_t parent UNUSED, const char *name UNUSED,
                         uint32_t len UNUSED, channel_notified_fn done UNUSED, void *arg UNUSED)
{
    fake.notified++;
    return fake.notify_status;
}

bool channel_can_expire_names(const struct channel *c UNUSED)
{
    return true;
}

void channel_expire_names(struct channel *c UNUSED)
{
    fake.names_expired++;
}
