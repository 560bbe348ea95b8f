/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core and a channel that only remember: the operations of client/fuse/ops/ between them. Each
 * core_*() call is noted in fake.calls and left waiting, until the test completes it; each reply is
 * noted in fake.reply.
 */
#ifndef AIFS_TESTS_UNIT_FUSE_FAKE_H
#define AIFS_TESTS_UNIT_FUSE_FAKE_H

#include "client/fuse/fs.h"

#define FAKE_ENTRIES    64
#define FAKE_PAGE_BYTES (64u * KIB)

struct fake {
    char calls[4096]; /* "lookup 7 name;" */
    struct core_req *waiting;
    bool at_once;       /* complete inside the call */
    bool complete_next; /* the next call alone */
    int at_once_status;
    uint64_t lock_owner; /* who has record locks */
    unsigned cancelled, given_up, released, page_done, read_done;

    char reply[256]; /* "err -5", "entry 9", "open 0x5" */
    unsigned replies;
    uint64_t reply_valid_ns; /* of an entry: of name and attributes together */
    uint64_t reply_fh;
    uint32_t reply_flags; /* of an OPEN */
    bool may_give;        /* the contents of any file, to the kernel */
    bool cannot_store;    /* the kernel */
    unsigned stored;
    int store_status;
    char names[8192];  /* of a directory reply: "a@cookie " */
    unsigned dir_room; /* entries that fit */
    int dir_status;
    int n_groups; /* of the caller */
    uint32_t caps;
    bool caller_ends;  /* by a signal */
    bool caller_exits; /* and runs no more */
    void (*on_interrupt)(struct channel_req *q);
    struct msg_bytes target; /* of any symbolic link */
    unsigned notified, attrs_expired, names_expired;
    int notify_status;
    channel_notified_fn notify_done; /* of the latest */
    void *notify_arg;
    struct reactor_timer *timer; /* the one that is started */
    bool hold_work;              /* what is deferred runs when the test says, not at once */
    struct reactor_work *work;

    /* the page a READDIR gets */
    struct core_dirent page[FAKE_ENTRIES];
    unsigned page_len;
    uint32_t page_bytes; /* that the latest was to have at most */
    uint64_t dir_memory; /* what all pages may take */
    bool eof;
    bool changed; /* by others, since the page has come */
    bool passed;  /* fake_pass() */
};
extern struct fake fake;

void fake_reset(struct fs *fs);
struct channel_req *fake_request(struct fs *fs, enum channel_op op, uint64_t node);
/* By a name in the mount's root. */
struct channel_req *fake_named(struct fs *fs, enum channel_op op, const char *name);
void fake_complete(int status); /* what waits */
void fake_pass(uint64_t ns);    /* time, which stands still from then on */

#endif
