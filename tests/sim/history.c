/* SPDX-License-Identifier: Apache-2.0 */
/* A history for people to read: a line per call and answer, in order. */
#include "tests/sim/history.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/compiler.h"

static const char *const kinds[] = {
    "lookup",   "create",   "mkdir", "symlink", "tmpfile",  "unlink",  "rmdir",
    "rename",   "link",     "stat",  "chmod",   "truncate", "readdir", "setxattr",
    "getxattr", "readlink", "open",  "read",    "write",    "append",  "allocate",
    "flush",    "fsync",    "lock",  "unlock",  "locktest", "close",   "LOSE",
    "RESTORE",  "UNMAKE",   "UNSET", "UNMOVE",  "SPOIL"};

/* Two inline, two of the first chunk, one each of the next two. */
uint32_t history_cell_offset(unsigned cell)
{
    static const uint32_t offsets[SIM_CELLS] = {0, 256, 5000, 60000, 70000, 140000};

    return offsets[cell];
}

void op_print(const struct op *o, FILE *to)
{
    fprintf(to, "client%u %-8s ino %" PRIx64, o->client + 1u, kinds[o->kind], o->ino);
    if (o->ino2)
        fprintf(to, " %" PRIx64, o->ino2);
    if ((o->kind <= OP_LINK || o->kind >= OP_RESTORE) && o->kind != OP_GETATTR)
        fprintf(to, " '%c' '%c'", 'a' + o->name, 'a' + o->name2);
    if (o->kind == OP_READ || o->kind == OP_WRITE || o->kind == OP_ALLOCATE || o->kind == OP_LOCK ||
        o->kind == OP_UNLOCK || o->kind == OP_LOCK_TEST)
        fprintf(to, " cell %u (%u)", o->cell, history_cell_offset(o->cell));
    fprintf(to, " flags %x value %u", o->flags, o->value);
    if (o->unknown)
        fprintf(to, " -> ?");
    if (!o->answer) {
        fprintf(to, "\n");
        return;
    }
    fprintf(to, " -> %d", o->status);
    if (o->status == 0 && !o->unknown)
        fprintf(to, " ino %" PRIx64 " size %u value %u nlink %u mode %o", o->ret_ino, o->ret_size,
                o->ret_value, o->ret_nlink, o->ret_mode);
    for (unsigned k = 0; o->kind == OP_READDIR && k < SIM_NAMES; k++)
        if (o->ret_names[k])
            fprintf(to, " %c=%" PRIx64, 'a' + k, o->ret_names[k]);
    fprintf(to, "\n");
}

void history_print(const struct history *h, FILE *to)
{
    for (uint32_t e = 1; e < h->next; e++) {
        for (unsigned i = 0; i < h->n; i++) {
            const struct op *o = &h->ops[i];

            if (o->call != e && o->answer != e)
                continue;
            fprintf(to, "%4u %10.3f ms %s %3u ", e,
                    (double)(o->call == e ? o->call_ns : o->answer_ns) / 1e6,
                    o->call == e ? "call  " : "answer", i);
            op_print(o, to);
        }
    }
}
