/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes and the arithmetic of emulated training; nothing here touches a file. */
#include <math.h>
#include <string.h>

#include "tools/bench/train.h"

#define FRAME_BYTES 16u /* of a TFRecord: length, two checksums */

/* Order of compute_s: A100, H100, B200. */
static const struct train_shape shapes[] = {
    {"unet3d", TRAIN_NPZ, true, 1, 146600628, 68341808, 7, 4, 256 * KIB, {0.636, 0.323, 0.162}, 90},
    {"resnet50",
     TRAIN_RECORDS,
     false,
     1251,
     114660.07,
     0,
     400,
     8,
     256 * KIB,
     {0.435, 0.224, 0},
     90},
    {"cosmoflow",
     TRAIN_RECORDS,
     false,
     1,
     2828486,
     71311,
     1,
     4,
     256 * KIB,
     {0.00551, 0.0035, 0},
     70},
    {"retinanet", TRAIN_WHOLE, true, 1, 322957, 0, 24, 4, 512 * KIB, {0, 0, 0.04755}, 85},
};

static const char *const accelerators[] = {"a100", "h100", "b200"};

const struct train_shape *train_shape_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        if (!strcmp(shapes[i].name, name))
            return &shapes[i];
    return NULL;
}

int train_accelerator_named(const char *name)
{
    for (int i = 0; i < TRAIN_N_ACCELERATORS; i++)
        if (!strcmp(accelerators[i], name))
            return i;
    return -1;
}

const char *train_accelerator_name(unsigned accelerator)
{
    return accelerators[accelerator];
}

static double uniform(uint64_t *state)
{
    return ((double)(bench_random(state) >> 11) + 1) / 9007199254740993.0;
}

/* Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958. */
uint64_t train_record_bytes(const struct train_shape *s, uint64_t file, unsigned scale)
{
    uint64_t state = (file + 1) * 0x9E3779B97F4A7C15ull;
    double u = uniform(&state), v = uniform(&state), bytes = s->record_bytes;

    if (s->record_stdev > 0)
        bytes += s->record_stdev * sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
    bytes /= scale;
    return bytes < 4096 ? 4096 : (uint64_t)bytes & ~7ull;
}

uint64_t train_file_bytes(const struct train_shape *s, uint64_t file, unsigned scale)
{
    uint64_t record = train_record_bytes(s, file, scale);

    return s->format == TRAIN_RECORDS ? s->samples_per_file * (record + FRAME_BYTES) : record;
}

double train_bytes_per_second(const struct train_shape *s, unsigned files, unsigned scale,
                              unsigned batch, double compute_s)
{
    double bytes = 0;

    for (uint64_t i = 0; i < files; i++)
        bytes += (double)train_file_bytes(s, i, scale);
    return bytes / files / s->samples_per_file * batch / compute_s;
}

static double counted_s(const struct train_times *t)
{
    return t->total_s - t->first_s;
}

double train_utilisation(const struct train_times *t)
{
    return t->steps < 2 || counted_s(t) <= 0 ? 0
                                             : 100 * (t->steps - 1) * t->compute_s / counted_s(t);
}

double train_samples_per_second(const struct train_times *t, unsigned batch)
{
    return t->steps < 2 || counted_s(t) <= 0 ? 0 : (double)(t->steps - 1) * batch / counted_s(t);
}

double train_wait_seconds(const struct train_times *t)
{
    double wait = t->steps < 2 ? 0 : counted_s(t) - (t->steps - 1) * t->compute_s;

    return wait > 0 ? wait : 0;
}
