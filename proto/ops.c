// SPDX-License-Identifier: Apache-2.0
/* Names and flags of operations, from the table. An unknown number has a name too ("op 77"), for
 * logs. */
#include "proto/ops.h"

#include <stdio.h>

#define OPS_ROW(name, number, req, rep, flags) [number] = {#name, flags},
static const struct {
    const char *name;
    uint32_t flags;
} ops_table[RPC_OP_LIMIT] = {RPC_OP_TABLE(OPS_ROW)};
#undef OPS_ROW

const char *rpc_op_name(unsigned op)
{
    static _Thread_local char unknown[24];

    if (op < RPC_OP_LIMIT && ops_table[op].name)
        return ops_table[op].name;
    snprintf(unknown, sizeof unknown, "op %u", op);
    return unknown;
}

uint32_t rpc_op_flags(unsigned op)
{
    return op < RPC_OP_LIMIT ? ops_table[op].flags : 0;
}
