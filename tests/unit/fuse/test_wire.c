// SPDX-License-Identifier: Apache-2.0
/* Messages of the kernel, and what becomes of them; the layout beside the installed header's. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/fuse/channel_mount.h"
#include "client/fuse/wire_decode.h"
#include "tests/support/suite.h"

#define SAME(ours, theirs)                                                                         \
    static_assert(sizeof(struct wire_##ours) == sizeof(struct fuse_##theirs), "layout")
#define SAME_FIELD(ours, theirs, field)                                                            \
    static_assert(offsetof(struct wire_##ours, field) == offsetof(struct fuse_##theirs, field),    \
                  "layout")
SAME(in_header, in_header);
SAME(out_header, out_header);
SAME(attr, attr);
SAME(init_in, init_in);
SAME(init_out, init_out);
SAME(entry_out, entry_out);
SAME(attr_out, attr_out);
SAME(setattr_in, setattr_in);
SAME(statfs_out, statfs_out);
SAME(lk_in, lk_in);
SAME(dirent, dirent);
SAME_FIELD(in_header, in_header, total_extlen);
SAME_FIELD(init_out, init_out, max_pages);
SAME_FIELD(init_out, init_out, flags2);
SAME_FIELD(attr, attr, mode);
SAME_FIELD(attr, attr, blksize);
SAME_FIELD(setattr_in, setattr_in, gid);
SAME_FIELD(entry_out, entry_out, attr);

static struct channel_req q;
static struct {
    struct wire_in_header h;
    _Alignas(8) uint8_t body[4096];
    size_t len;
} m;

static void message(uint32_t opcode, const void *args, size_t args_len)
{
    memset(&m, 0, sizeof m);
    memset(&q, 0x55, sizeof q);
    m.h.opcode = opcode;
    m.h.nodeid = q.node = 7;
    memcpy(m.body, args, args_len);
    m.len = args_len;
}

static void text(const char *s)
{
    memcpy(m.body + m.len, s, strlen(s) + 1);
    m.len += strlen(s) + 1;
}

static int decode(void)
{
    q.op = wire_op(m.h.opcode);
    return wire_decode(&m.h, m.body, m.len, true, &q);
}

START_TEST(names_are_taken_and_must_end)
{
    message(WIRE_LOOKUP, "", 0);
    text("a name");
    ck_assert_int_eq(decode(), 0);
    ck_assert_int_eq(q.op, CHANNEL_LOOKUP);
    ck_assert_str_eq(q.name.name, "a name");
    m.len--; /* without its NUL */
    ck_assert_int_eq(decode(), -EIO);
    m.len = 0;
    ck_assert_int_eq(decode(), -EIO);
}
END_TEST

START_TEST(a_name_of_more_than_255_bytes_is_too_long)
{
    char name[300];

    memset(name, 'x', sizeof name);
    name[255] = '\0';
    message(WIRE_UNLINK, "", 0);
    text(name);
    ck_assert_int_eq(decode(), 0);
    name[255] = 'x';
    name[256] = '\0';
    message(WIRE_UNLINK, "", 0);
    text(name);
    ck_assert_int_eq(decode(), -ENAMETOOLONG);
}
END_TEST

START_TEST(both_names_of_a_rename_are_needed)
{
    struct wire_rename2_in in = {.newdir = 9, .flags = 1};

    message(WIRE_RENAME2, &in, sizeof in);
    text("old");
    ck_assert_int_eq(decode(), -EIO);
    text("new");
    ck_assert_int_eq(decode(), 0);
    ck_assert_str_eq(q.rename.name, "old");
    ck_assert_str_eq(q.rename.new_name, "new");
    ck_assert_uint_eq(q.rename.new_parent, 9);
    ck_assert_uint_eq(q.rename.flags, 1);
}
END_TEST

START_TEST(ranges_lie_within_the_largest_file)
{
    struct wire_fallocate_in f = {.fh = 3, .offset = INT64_MAX, .length = INT64_MAX, .mode = 1};
    struct wire_lseek_in l = {.fh = 3, .offset = 9, .whence = SEEK_HOLE};
    struct wire_copy_file_range_in c = {
        .fh_in = 1, .off_in = 2, .fh_out = 4, .off_out = 5, .len = 6};

    message(WIRE_FALLOCATE, &f, sizeof f);
    ck_assert_int_eq(decode(), 0); /* it is the core that adds them up */
    ck_assert(q.range.fh == 3 && q.range.len == INT64_MAX && q.range.mode == 1);
    f.length = 0;
    message(WIRE_FALLOCATE, &f, sizeof f);
    ck_assert_int_eq(decode(), -EINVAL);
    message(WIRE_FALLOCATE, &f, sizeof f - 1);
    ck_assert_int_eq(decode(), -EIO);
    message(WIRE_LSEEK, &l, sizeof l);
    ck_assert_int_eq(decode(), 0);
    ck_assert(q.range.hole && q.range.offset == 9);
    l.offset = 1ull << 63;
    message(WIRE_LSEEK, &l, sizeof l);
    ck_assert_int_eq(decode(), -ENXIO);
    l.whence = SEEK_SET;
    message(WIRE_LSEEK, &l, sizeof l);
    ck_assert_int_eq(decode(), -EINVAL);
    message(WIRE_COPY_FILE_RANGE, &c, sizeof c);
    ck_assert_int_eq(decode(), 0);
    ck_assert(q.transfer.fh == 1 && q.transfer.offset == 2 && q.transfer.to_fh == 4);
    ck_assert(q.transfer.to_offset == 5 && q.transfer.len == 6);
    c.flags = 1;
    message(WIRE_COPY_FILE_RANGE, &c, sizeof c);
    ck_assert_int_eq(decode(), -EINVAL);
}
END_TEST

START_TEST(a_link_is_of_the_file_into_the_directory)
{
    struct wire_link_in in = {.oldnodeid = 12};

    message(WIRE_LINK, &in, sizeof in);
    text("l");
    ck_assert_int_eq(decode(), 0);
    ck_assert_uint_eq(q.node, 12);
    ck_assert_uint_eq(q.link_to.new_parent, 7);
}
END_TEST

START_TEST(a_write_has_the_bytes_it_says)
{
    struct wire_write_in in = {
        .fh = 3, .offset = 4096, .size = 5, .write_flags = WIRE_WRITE_KILL_SUIDGID};

    message(WIRE_WRITE, &in, sizeof in);
    text("data");
    ck_assert_int_eq(decode(), 0);
    ck_assert_uint_eq(q.io.len, 5);
    ck_assert_str_eq(q.io.data, "data");
    ck_assert(q.io.kill_priv);
    m.len--;
    ck_assert_int_eq(decode(), -EIO);
}
END_TEST

START_TEST(offsets_beyond_the_largest_file_are_refused)
{
    struct wire_read_in in = {.fh = 3, .offset = 1ull << 63, .size = 1};

    message(WIRE_READ, &in, sizeof in);
    ck_assert_int_eq(decode(), -EINVAL);
    m.h.opcode = WIRE_READDIRPLUS; /* there it is a cookie */
    ck_assert_int_eq(decode(), 0);
    ck_assert_uint_eq(q.io.offset, 1ull << 63);
    ck_assert(q.io.plus);
}
END_TEST

START_TEST(the_umask_applies_to_what_is_made)
{
    struct wire_create_in in = {.flags = O_CREAT | O_WRONLY, .mode = 0100666, .umask = 022};

    message(WIRE_CREATE, &in, sizeof in);
    text("f");
    ck_assert_int_eq(decode(), 0);
    ck_assert_uint_eq(q.make.mode, S_IFREG | 0644);
    ck_assert_uint_eq(q.make.flags, O_CREAT | O_WRONLY);
}
END_TEST

START_TEST(a_file_without_a_name_needs_none)
{
    struct wire_create_in in = {.flags = O_TMPFILE | O_RDWR | O_EXCL, .mode = 0666, .umask = 027};

    message(WIRE_TMPFILE, &in, sizeof in);
    ck_assert_int_eq(decode(), 0);
    ck_assert_int_eq(q.op, CHANNEL_TMPFILE);
    ck_assert_uint_eq(q.make.mode, S_IFREG | 0640);
    ck_assert_uint_eq(q.make.flags, O_TMPFILE | O_RDWR | O_EXCL);
    ck_assert_ptr_null(q.make.name);
    m.len--;
    ck_assert_int_eq(decode(), -EIO);
}
END_TEST

START_TEST(now_wins_over_a_time_that_is_given)
{
    struct wire_setattr_in in = {.valid = WIRE_FATTR_ATIME | WIRE_FATTR_ATIME_NOW |
                                          WIRE_FATTR_MTIME | WIRE_FATTR_FH |
                                          WIRE_FATTR_KILL_SUIDGID,
                                 .fh = 8,
                                 .mtime = 5};

    message(WIRE_SETATTR, &in, sizeof in);
    ck_assert_int_eq(decode(), 0);
    ck_assert_uint_eq(q.attr.set, MSG_SET_ATIME_NOW | MSG_SET_MTIME | MSG_SET_KILL_PRIV);
    ck_assert(q.attr.has_fh && !q.attr.statx);
    ck_assert_int_eq(q.attr.mtime.sec, 5);
}
END_TEST

START_TEST(statx_is_a_getattr_that_wants_more)
{
    struct wire_statx_in in = {.flags = WIRE_GETATTR_FH, .fh = 8};

    message(WIRE_STATX, &in, sizeof in);
    ck_assert_int_eq(decode(), 0);
    ck_assert_int_eq(q.op, CHANNEL_GETATTR);
    ck_assert(q.attr.statx && q.attr.has_fh && q.attr.fh == 8);
}
END_TEST

START_TEST(a_lock_of_a_file_covers_all_of_it)
{
    struct wire_lk_in in = {
        .owner = 5, .lk = {.start = 3, .end = 9, .type = F_WRLCK}, .lk_flags = WIRE_LK_FLOCK};

    message(WIRE_SETLKW, &in, sizeof in);
    ck_assert_int_eq(decode(), 0);
    ck_assert(q.lock.wait);
    ck_assert_uint_eq(q.lock.lock.kind, MSG_LOCK_FLOCK);
    ck_assert_uint_eq(q.lock.lock.end, MSG_LOCK_END);
    in.lk_flags = 0;
    in.lk.end = 2;
    message(WIRE_SETLK, &in, sizeof in);
    ck_assert_int_eq(decode(), -EINVAL);
    in.lk.end = MSG_LOCK_END;
    message(WIRE_SETLK, &in, sizeof in);
    ck_assert_int_eq(decode(), 0);
    ck_assert_uint_eq(q.lock.lock.start, 3);
    ck_assert(!q.lock.wait);
}
END_TEST

START_TEST(the_value_of_an_attribute_must_be_there)
{
    struct wire_xattr_in in = {.size = 3, .flags = 1};

    message(WIRE_SETXATTR, &in, sizeof in);
    text("user.x");
    ck_assert_int_eq(decode(), -EIO);
    text("abc");
    ck_assert_int_eq(decode(), 0);
    ck_assert_int_eq(memcmp(q.xattr.value, "abc", 3), 0);
    in.size = MSG_XATTR_MAX + 1;
    message(WIRE_SETXATTR, &in, sizeof in);
    text("user.x");
    ck_assert_int_eq(decode(), -E2BIG);
}
END_TEST

START_TEST(what_follows_the_arguments_is_cut_off)
{
    message(WIRE_LOOKUP, "", 0);
    text("1234567");
    memset(m.body + m.len, 0xff, 8);
    m.len += 8;
    m.h.total_extlen = 1;
    ck_assert_int_eq(decode(), 0);
    m.h.total_extlen = 2; /* the name, too */
    ck_assert_int_eq(decode(), -EIO);
    m.h.total_extlen = 3;
    ck_assert_int_eq(decode(), -EIO);
}
END_TEST

START_TEST(operations_that_are_none_have_no_number)
{
    ck_assert_int_eq(wire_op(0), CHANNEL_N_OPS);
    ck_assert_int_eq(wire_op(4096), CHANNEL_N_OPS);
    ck_assert_int_eq(wire_op(WIRE_FORGET), CHANNEL_N_OPS);
    ck_assert_int_eq(wire_op(WIRE_READDIRPLUS), CHANNEL_READDIR);
}
END_TEST

START_TEST(no_more_is_forgotten_than_the_message_holds)
{
    struct {
        struct wire_batch_forget_in in;
        struct wire_forget_one one[3];
    } b = {.in = {.count = 1000}, .one = {{7, 1}, {8, 2}, {9, 3}}};
    size_t n;

    ck_assert_ptr_eq(wire_forgets(&b, sizeof b, &n), b.one);
    ck_assert_uint_eq(n, 3);
    (void)wire_forgets(&b, sizeof b - 1, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_ptr_null(wire_forgets(&b, 4, &n));
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* ---- by the ring: headers apart from what follows them ---- */

static struct wire_ring_header ring;
static _Alignas(8) uint8_t memory[WIRE_RING_OP_BYTES + 64];
#define PAYLOAD (memory + WIRE_RING_OP_BYTES)

static int join(uint32_t op_len, uint32_t payload_len, const void **ret_body, size_t *ret_len)
{
    ring.in.len = (uint32_t)sizeof ring.in + op_len + payload_len;
    ring.payload_len = payload_len;
    return wire_ring_join(&ring, PAYLOAD, 64, ret_body, ret_len);
}

START_TEST(a_request_by_the_ring_is_joined_and_decoded)
{
    struct wire_create_in args = {.flags = O_RDWR, .mode = S_IFREG | 0640, .umask = 022};
    const void *body;
    size_t len;

    memcpy(ring.op_in, &args, sizeof args);
    memcpy(PAYLOAD, "name", 5);
    ck_assert_int_eq(join(sizeof args, 5, &body, &len), 0);
    ck_assert_uint_eq(len, sizeof args + 5);
    ring.in.opcode = WIRE_CREATE;
    q.op = CHANNEL_CREATE;
    ck_assert_int_eq(wire_decode(&ring.in, body, len, false, &q), 0);
    ck_assert_str_eq(q.make.name, "name");
    ck_assert_uint_eq(q.make.flags, O_RDWR);
    ck_assert_int_eq(join(0, 5, &body, &len), 0); /* without arguments but a name */
    ck_assert_ptr_eq(body, PAYLOAD);
    ck_assert_uint_eq(len, 5);
    ck_assert_int_eq(join(WIRE_RING_OP_BYTES, 64, &body, &len), 0); /* the most */
    ck_assert_ptr_eq(body, memory);
}
END_TEST

START_TEST(a_request_by_the_ring_has_the_bytes_it_says)
{
    const void *body;
    size_t len;

    ck_assert_int_eq(join(0, 65, &body, &len), -EIO); /* more than the entry has */
    ck_assert_int_eq(join(0, UINT32_MAX - 40, &body, &len), -EIO);
    ck_assert_int_eq(join(WIRE_RING_OP_BYTES + 8, 0, &body, &len), -EIO);
    ck_assert_int_eq(join(12, 0, &body, &len), -EIO); /* arguments are of 8 bytes each */
    ring.in.len = sizeof ring.in + 4;
    ring.payload_len = 5;
    ck_assert_int_eq(wire_ring_join(&ring, PAYLOAD, 64, &body, &len), -EIO);
}
END_TEST

START_TEST(words_of_mount_become_flags_and_the_rest_goes_to_the_kernel)
{
    unsigned long flags = MS_NOSUID | MS_NODEV;
    struct strbuf data;

    strbuf_init(&data);
    channel_mount_flags("suid,dev,ro,noatime,context=\"a:b:c1,c2\",x=1", &flags, &data);
    ck_assert_uint_eq(flags, MS_RDONLY | MS_NOATIME);
    ck_assert_str_eq(data.data, ",context=\"a:b:c1,c2\",x=1");
    channel_mount_flags("rw,nodev", &flags, &data);
    ck_assert_uint_eq(flags, MS_NODEV | MS_NOATIME);
    strbuf_fini(&data);
}
END_TEST

/* The kernel cuts them, wherever that is. */
START_TEST(more_options_than_the_kernel_takes_are_refused)
{
    char words[4200], err[300] = "";
    int fd;

    if (access("/dev/fuse", R_OK | W_OK) != 0)
        return;
    memset(words, 'x', sizeof words);
    words[sizeof words - 1] = '\0';
    ck_assert_int_eq(channel_mount("nowhere", "/dev/null", words, &fd, err, sizeof err), -E2BIG);
    ck_assert_str_eq(err, "cannot mount /dev/null: the options for the kernel are too long");
}
END_TEST

START_TEST(the_groups_of_a_process_are_those_it_has)
{
    uint32_t groups[256], caps;
    gid_t own[256];
    int n = getgroups(256, own);

    q.pid = (uint32_t)getpid();
    ck_assert_int_ge(n, 0);
    ck_assert_int_eq(channel_req_groups(&q, groups, 256, &caps), n);
    for (int i = 0; i < n; i++)
        ck_assert_uint_eq(groups[i], own[i]);
    ck_assert_int_eq(channel_req_groups(&q, groups, 0, &caps), n);
    q.pid = 0x7fffffff;
    ck_assert_int_eq(channel_req_groups(&q, groups, 256, &caps), -ENOENT);
}
END_TEST

SUITE_MAIN("wire", NULL, NULL, names_are_taken_and_must_end,
           a_name_of_more_than_255_bytes_is_too_long, both_names_of_a_rename_are_needed,
           ranges_lie_within_the_largest_file, a_link_is_of_the_file_into_the_directory,
           a_write_has_the_bytes_it_says, offsets_beyond_the_largest_file_are_refused,
           the_umask_applies_to_what_is_made, a_file_without_a_name_needs_none,
           now_wins_over_a_time_that_is_given, statx_is_a_getattr_that_wants_more,
           a_lock_of_a_file_covers_all_of_it, the_value_of_an_attribute_must_be_there,
           what_follows_the_arguments_is_cut_off, operations_that_are_none_have_no_number,
           no_more_is_forgotten_than_the_message_holds, a_request_by_the_ring_is_joined_and_decoded,
           a_request_by_the_ring_has_the_bytes_it_says,
           words_of_mount_become_flags_and_the_rest_goes_to_the_kernel,
           more_options_than_the_kernel_takes_are_refused, the_groups_of_a_process_are_those_it_has)
