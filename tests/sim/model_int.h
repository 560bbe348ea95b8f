/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the model share. */
#ifndef AIFS_TESTS_SIM_MODEL_INT_H
#define AIFS_TESTS_SIM_MODEL_INT_H

#include "tests/sim/model.h"

struct model_inode *model_by_ino(struct model *m, uint64_t ino); /* NULL: there is none */
/* Is this what the operation was answered, if that is known? */
bool model_status_is(const struct op *o, int status);
/* As model_do(), of operations that read or change what is in a file. */
bool model_do_contents(struct model *m, const struct op *o);

#endif
