/* SPDX-License-Identifier: Apache-2.0 */
/* The options of aifs-oss: its own; those of every daemon are conf_common_options. */
#ifndef AIFS_OSS_OPTIONS_H
#define AIFS_OSS_OPTIONS_H

#include "common/conf/conf.h"

#define OSS_CAPACITY_MIN (32u * MIB) /* of target.capacity, unless it is 0 */

extern const struct conf_option oss_options[];

#endif
