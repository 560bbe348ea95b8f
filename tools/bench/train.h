/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulated training: the shapes of the MLPerf Storage training workloads (file and sample sizes,
 * batches, reader threads, compute time of a step), the arithmetic of accelerator utilisation, and
 * the data set. Source: MLCommons Storage rules and configurations, v1.0 to v3.0.
 */
#ifndef AIFS_TOOLS_BENCH_TRAIN_H
#define AIFS_TOOLS_BENCH_TRAIN_H

#include "tools/bench/place.h"

#define TRAIN_THREADS_MAX 64u
#define TRAIN_STEPS_MAX   100000u

enum train_accelerator { TRAIN_A100, TRAIN_H100, TRAIN_B200, TRAIN_N_ACCELERATORS };

struct train_shape {
    const char *name;
    enum {
        TRAIN_NPZ,     /* one sample a file: the tail, the head, then all of it in pieces */
        TRAIN_RECORDS, /* many a file, read from its beginning to its end */
        TRAIN_WHOLE    /* one a file, read in one call */
    } format;
    bool by_batch; /* a reader makes whole batches, which are used in order (PyTorch); else samples
                      of all readers fill the next batch (TensorFlow) */
    uint32_t samples_per_file;
    double record_bytes, record_stdev;
    uint32_t batch, threads;
    uint32_t piece;                         /* bytes per read */
    double compute_s[TRAIN_N_ACCELERATORS]; /* of a step; 0: not known */
    double au_min;                          /* what MLPerf asks for, percent */
};
const struct train_shape *train_shape_named(const char *name); /* NULL */
int train_accelerator_named(const char *name);                 /* -1 */
const char *train_accelerator_name(unsigned accelerator);
/* Bytes of a record of file i; records are scale times as small. At least 4096, a multiple of 8;
 * the same at each call. */
uint64_t train_record_bytes(const struct train_shape *s, uint64_t file, unsigned scale);
uint64_t train_file_bytes(const struct train_shape *s, uint64_t file, unsigned scale);
/* What an accelerator asks for while it never waits, of a data set of so many files. */
double train_bytes_per_second(const struct train_shape *s, unsigned files, unsigned scale,
                              unsigned batch, double compute_s);

/* One accelerator's run. As MLPerf counts: the first step fills the queues and does not count. */
struct train_times {
    unsigned steps;
    double compute_s;        /* of one step */
    double first_s, total_s; /* until the end of the first step, of all */
};
double train_utilisation(const struct train_times *t); /* percent */
double train_samples_per_second(const struct train_times *t, unsigned batch);
double
train_wait_seconds(const struct train_times *t); /* without computing, after the first step */

/* ---- the data set ---- */

struct train_data {
    const struct train_shape *shape;
    unsigned scale, files;
    struct place *place;
    char dir[3700];
};
void train_data_path(const struct train_data *d, uint64_t file, char out[PLACE_PATH_BYTES]);
bool train_data_exists(const struct train_data *d);
/* Writes all files, as a row that is called name; -errno, printed. */
int train_data_prepare(struct bench *b, const struct train_data *d, unsigned jobs,
                       const char *name) MUST_USE;
void train_data_remove(const struct train_data *d);

/* One reader's place in a file of records, or nothing between samples. */
struct train_reader {
    const struct train_data *data;
    uint8_t *memory; /* shape->piece or one record, the larger; page aligned */
    struct io_file *file;
    uint64_t file_number, offset, sample;
};
size_t train_reader_bytes(const struct train_data *d);
/* Reads one sample. With records: the next one of the reader's file, or of file `next` when it has
 * none or is at its end (*ret_used: next was opened). Otherwise file `next`. -errno. */
int train_reader_sample(struct train_reader *r, uint64_t next, bool *ret_used,
                        uint64_t *ret_bytes) MUST_USE;
void train_reader_close(struct train_reader *r);

#endif
