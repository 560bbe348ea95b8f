/* SPDX-License-Identifier: Apache-2.0 */
/* Does a tree agree with itself? Counts everything in one snapshot and compares. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/hmap.h"
#include "tests/component/mds/bed.h"

struct node {
    struct hmap_node hash;
    struct mds_inode in;
    uint64_t names, dirs, entries, parent;
    bool has_inode, has_parent;
    bool removed; /* its name was taken away, its content is going: it is below the root */
};

struct tree {
    struct hmap map;
    uint64_t inodes;
};

static struct node *tree_node(struct tree *t, uint64_t ino)
{
    struct node *n;

    for (struct hmap_node *h = hmap_first(&t->map, hash_u64(ino)); h; h = hmap_next(h)) {
        n = container_of(h, struct node, hash);
        if (n->in.ino == ino)
            return n;
    }
    n = calloc(1, sizeof(*n));
    n->in.ino = ino;
    hmap_insert(&t->map, &n->hash, hash_u64(ino));
    return n;
}

static int add_inode(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct tree *t = arg;
    struct node *n = tree_node(t, key_number_of(key));

    ck_assert_uint_eq(key_len, 9);
    ck_ok(rec_inode_decode(key_number_of(key), value, len, &n->in));
    n->has_inode = true;
    t->inodes++;
    return 0;
}

static int add_dirent(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct tree *t = arg;
    struct node *dir = tree_node(t, key_number_of(key)), *n;
    struct mds_dirent d;

    ck_assert_uint_gt(key_len, 15);
    ck_ok(rec_dirent_decode(value, len, &d));
    n = tree_node(t, d.ino);
    n->names++;
    dir->entries++;
    if (d.type == DT_DIR) {
        dir->dirs++;
        ck_assert_msg(!n->has_parent || n->parent == dir->in.ino, "directory with two names");
        n->has_parent = true;
        n->parent = dir->in.ino;
    }
    return 0;
}

static int add_removed(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct node *n = tree_node(arg, key_number_of(key));
    uint64_t tree;

    (void)key_len;
    ck_ok(rec_trash_decode(value, len, &tree));
    ck_assert(!n->has_parent);
    n->removed = n->has_parent = true;
    n->parent = KEY_ROOT_INO;
    return 0;
}

static int check_parent(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct node *n = tree_node(arg, key_number_of(key));

    (void)key_len;
    ck_assert_uint_ge(len, 8);
    ck_assert_msg(n->has_parent, "parent record of %lu, which has no name",
                  (unsigned long)n->in.ino);
    ck_assert_uint_eq(n->parent, le64_load(value));
    return 0;
}

static void check_node(const struct node *n)
{
    unsigned long ino = n->in.ino;

    ck_assert_msg(n->has_inode, "names of inode %lu, which does not exist", ino);
    if (S_ISDIR(n->in.mode)) {
        ck_assert_msg(n->in.entries == n->entries, "directory %lu: says %lu entries, has %lu", ino,
                      (unsigned long)n->in.entries, (unsigned long)n->entries);
        ck_assert_uint_eq(n->in.nlink, n->removed ? 0 : 2 + n->dirs);
        ck_assert_uint_eq(n->names, ino == KEY_ROOT_INO || n->removed ? 0 : 1);
    } else {
        ck_assert_msg(n->in.nlink == n->names, "inode %lu: nlink %u, %lu names", ino, n->in.nlink,
                      (unsigned long)n->names);
        ck_assert_msg(n->names > 0 || (n->in.flags & INODE_ORPHAN), "inode %lu is lost", ino);
    }
}

void bed_check_tree(struct bed *b)
{
    struct tree t = {0};
    struct hmap_node *h, *next;
    struct view v;
    struct key k;
    size_t pos;

    ck_ok(hmap_init(&t.map, 64));
    view_pin(b->shard, &v);
    key_single(&k, KEY_INODE);
    ck_ok(view_scan(&v, &k, NULL, add_inode, &t));
    key_single(&k, KEY_DIRENT);
    ck_ok(view_scan(&v, &k, NULL, add_dirent, &t));
    key_single(&k, KEY_TRASH);
    ck_ok(view_scan(&v, &k, NULL, add_removed, &t));
    key_single(&k, KEY_PARENT);
    ck_ok(view_scan(&v, &k, NULL, check_parent, &t));
    ck_assert_uint_eq(view_counter(&v, COUNTER_INODES), t.inodes);
    view_unpin(&v);
    hmap_for_each (h, next, pos, &t.map) {
        struct node *n = container_of(h, struct node, hash);

        check_node(n);
        hmap_remove(&t.map, h);
        free(n);
    }
    hmap_fini(&t.map);
}
