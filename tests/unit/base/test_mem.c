// SPDX-License-Identifier: Apache-2.0
/* The allocator under failure, and arenas. */
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/fault/fault.h"
#include "tests/support/suite.h"

static void teardown(void)
{
    fault_disarm_all();
}

START_TEST(an_array_whose_size_overflows_is_refused)
{
    ck_assert_ptr_null(mem_array(SIZE_MAX / 2, 3));
}
END_TEST

START_TEST(an_array_is_zeroed)
{
    AUTO_FREE unsigned char *p = mem_array(100, 3);

    for (size_t i = 0; i < 300; i++)
        ck_assert_uint_eq(p[i], 0);
}
END_TEST

START_TEST(asking_for_nothing_gives_something_to_free)
{
    AUTO_FREE void *a = mem_alloc(0);
    AUTO_FREE void *b = mem_array(0, 8);
    AUTO_FREE void *c = mem_dup(NULL, 0);

    ck_assert(a && b && c);
}
END_TEST

START_TEST(copies_are_equal_and_separate)
{
    AUTO_FREE char *s = mem_strdup("abc");
    AUTO_FREE char *f = mem_printf("%s-%d", s, 7);

    ck_assert_str_eq(s, "abc");
    ck_assert_str_eq(f, "abc-7");
}
END_TEST

/* One call of each kind; NULL or not. */
static bool call_fails(int kind)
{
    void *old = kind == 2 ? mem_alloc(8) : NULL, *p;

    ck_assert_int_eq(fault_arm("mem.alloc=error@1"), 0);
    switch (kind) {
    case 0:
        p = mem_alloc(8);
        break;
    case 1:
        p = mem_zalloc(8);
        break;
    case 2:
        p = mem_realloc(old, 16);
        break;
    case 3:
        p = mem_array(2, 8);
        break;
    case 4:
        p = mem_dup("x", 1);
        break;
    case 5:
        p = mem_strdup("x");
        break;
    default:
        p = mem_printf("x");
        break;
    }
    mem_free(p);
    if (kind == 2 && !p)
        mem_free(old); /* a failed realloc leaves the old block */
    fault_disarm_all();
    return !p;
}

START_TEST(every_way_to_allocate_fails_when_the_fault_point_says_so)
{
    for (int kind = 0; kind < 7; kind++)
        ck_assert_msg(call_fails(kind), "kind %d", kind);
}
END_TEST

START_TEST(only_the_nth_allocation_fails)
{
    ck_assert_int_eq(fault_arm("mem.alloc=error@3"), 0);
    for (int i = 1; i <= 5; i++) {
        void *p = mem_alloc(1);

        ck_assert_int_eq(p == NULL, i == 3);
        mem_free(p);
    }
}
END_TEST

START_TEST(a_document_built_while_any_one_allocation_fails_is_whole_or_failed)
{
    for (int nth = 1; nth < 20; nth++) {
        struct strbuf b;
        char spec[64];

        snprintf(spec, sizeof spec, "mem.alloc=error@%d", nth);
        ck_assert_int_eq(fault_arm(spec), 0);
        strbuf_init(&b);
        for (int i = 0; i < 10000; i++)
            strbuf_append(&b, "0123456789", 10);
        ck_assert(strbuf_failed(&b) || b.len == 100000);
        ck_assert(!strbuf_failed(&b) || (b.data == NULL && b.len == 0));
        if (!strbuf_failed(&b))
            ck_assert_uint_lt(fault_count("mem.alloc"), nth);
        strbuf_fini(&b);
        fault_disarm_all();
    }
}
END_TEST

START_TEST(arena_memory_is_aligned_and_does_not_overlap)
{
    struct arena a;
    unsigned char *p[200];

    arena_init(&a, 0);
    for (size_t i = 0; i < 200; i++) {
        p[i] = arena_alloc(&a, i);
        ck_assert_uint_eq((uintptr_t)p[i] % 16, 0);
        memset(p[i], (int)i, i);
    }
    for (size_t i = 0; i < 200; i++) {
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_eq(p[i][j], i);
    }
    arena_reset(&a);
}
END_TEST

START_TEST(an_arena_gives_its_limit_and_not_a_byte_more)
{
    struct arena a;

    arena_init(&a, 4096);
    ck_assert_ptr_nonnull(arena_alloc(&a, 4080));
    ck_assert_ptr_nonnull(arena_alloc(&a, 16));
    ck_assert_ptr_null(arena_alloc(&a, 1));
    ck_assert_uint_eq(a.used_bytes, 4096);
    arena_reset(&a);
    ck_assert_ptr_nonnull(arena_zalloc(&a, 4096));
    ck_assert_ptr_null(arena_dup(&a, "x", 1));
    arena_reset(&a);
}
END_TEST

START_TEST(hostile_sizes_do_not_wrap_around)
{
    struct arena a;

    arena_init(&a, 1000);
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX));
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 15));
    ck_assert_ptr_null(arena_alloc(&a, 1001));
    ck_assert_uint_eq(a.used_bytes, 0);
    arena_init(&a, 0);
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 15));
    arena_reset(&a);
}
END_TEST

START_TEST(a_recycled_arena_keeps_one_small_block)
{
    struct arena a;

    arena_init(&a, 1 * MIB);
    for (unsigned use = 0; use < 3; use++) {
        ck_assert_ptr_nonnull(arena_alloc(&a, 3000));
        ck_assert_ptr_nonnull(arena_alloc(&a, 9000));
        arena_recycle(&a);
        ck_assert_uint_eq(a.used_bytes, 0);
        ck_assert_uint_eq(a.limit_bytes, 1 * MIB);
    }
    ck_assert_int_eq(fault_arm("mem.alloc=error"), 0);
    ck_assert_ptr_nonnull(arena_alloc(&a, 3000));
    ck_assert_ptr_null(arena_alloc(&a, 9000));
    arena_recycle(&a);
    ck_assert_ptr_nonnull(arena_alloc(&a, 3000));
    arena_reset(&a);
    ck_assert_ptr_null(arena_alloc(&a, 3000));
    fault_disarm_all();
    arena_recycle(&a);                            /* of nothing: nothing */
    ck_assert_ptr_nonnull(arena_alloc(&a, 9000)); /* too large to be kept */
    arena_recycle(&a);
    ck_assert_ptr_null(a.head);
}
END_TEST

START_TEST(small_requests_never_touch_the_allocator)
{
    struct arena a;

    ck_assert_int_eq(fault_arm("mem.alloc=error"), 0);
    arena_init(&a, 0);
    ck_assert_ptr_nonnull(arena_alloc(&a, sizeof a.first));
    ck_assert_uint_eq(fault_count("mem.alloc"), 0);
    ck_assert_ptr_null(arena_alloc(&a, 1));
    ck_assert_uint_eq(fault_count("mem.alloc"), 1);
    arena_reset(&a);
}
END_TEST

/* Whether the mapping that at is in has been advised; false, too, where that cannot be seen. */
static bool is_advised(const void *at)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    bool here = false, advised = false;
    char line[4096];

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f)) {
        uintptr_t from, to;

        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            here = (uintptr_t)at >= from && (uintptr_t)at < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            advised = strstr(line, " hg") != NULL;
    }
    fclose(f);
    return advised;
}

START_TEST(a_heap_that_has_grown_is_in_huge_pages_when_that_was_wished)
{
    const bool kernel = access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
    uint8_t *before = sbrk(4 * MIB), *after;

    mem_heap_grown();
    ck_assert(!is_advised(before + MIB));
    mem_heap_huge();
    after = sbrk(4 * MIB);
    if (before == (void *)-1 || after == (void *)-1) /* something else is behind the heap */
        return;
    mem_heap_grown();
    ck_assert(!kernel || is_advised(after + MIB));
    ck_assert(!is_advised(before + MIB));
}
END_TEST

SUITE_MAIN("mem", NULL, teardown, an_array_whose_size_overflows_is_refused, an_array_is_zeroed,
           asking_for_nothing_gives_something_to_free, copies_are_equal_and_separate,
           every_way_to_allocate_fails_when_the_fault_point_says_so, only_the_nth_allocation_fails,
           a_document_built_while_any_one_allocation_fails_is_whole_or_failed,
           arena_memory_is_aligned_and_does_not_overlap,
           an_arena_gives_its_limit_and_not_a_byte_more, hostile_sizes_do_not_wrap_around,
           small_requests_never_touch_the_allocator, a_recycled_arena_keeps_one_small_block,
           a_heap_that_has_grown_is_in_huge_pages_when_that_was_wished)
