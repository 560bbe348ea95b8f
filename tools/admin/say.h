/* SPDX-License-Identifier: Apache-2.0 */
/* What say.c and out.c share of JSON. */
#ifndef AIFS_TOOLS_ADMIN_SAY_H
#define AIFS_TOOLS_ADMIN_SAY_H

#include <jansson.h>

#include "tools/admin/admin.h"

/* Names of files may be no UTF-8: their other bytes are question marks then. */
json_t *admin_json_text(const char *text);

#endif
