/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the server in the order of their start. */
#include "mds/server.h"

const struct mds_module *const mds_modules[] = {&mds_dispatch_module, NULL};
