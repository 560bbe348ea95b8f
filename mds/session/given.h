/* SPDX-License-Identifier: Apache-2.0 */
/* Which of its numbers a session has used up: functions of the record alone. */
#ifndef AIFS_MDS_SESSION_GIVEN_H
#define AIFS_MDS_SESSION_GIVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "mds/session/session_fmt.h"

/* -AIFS_ECORRUPT, -AIFS_EFORMAT */
int given_decode(const void *value, uint32_t len, struct given_rec *ret_rec) MUST_USE;
/* Or NUMBER_WINDOW or more below the highest: then nobody knows. */
bool given_is_used(const struct given_rec *rec, uint32_t count);
/* count up to NUMBER_COUNT_MAX. -AIFS_EPROTO: it is used; the record is as it was. */
int given_use(struct given_rec *rec, uint32_t count) MUST_USE;

#endif
