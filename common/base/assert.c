// SPDX-License-Identifier: Apache-2.0
/*
 * What happens when an assertion does not hold: one line in the log that says which and where, then
 * abort(), so that the core dump shows the stack. There is no other path.
 */
#include "common/base/assert.h"

#include <stdlib.h>

#include "common/base/log.h"

void assert_fail(const char *expr, const char *file, int line, const char *func)
{
    static struct log_site site;

    log_write(&site, LOG_LEVEL_ERROR, "assert", "%s:%d: %s: \"%s\" does not hold", file, line, func,
              expr);
    abort();
}
