/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data set of emulated training: made once, by all jobs at a time, in one directory, named as
 * MLPerf's generator names them; a file "complete" says that all of it is there. And how a sample
 * is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tools/bench/train.h"

#define NPZ_TAIL_BYTES (64 * KIB) /* the directory of the archive is looked for there */
#define NPZ_HEAD_BYTES 4096u
#define WRITE_BYTES    MIB

struct preparing {
    const struct train_data *data;
    uint8_t *memory;
};

void train_data_path(const struct train_data *d, uint64_t file, char out[PLACE_PATH_BYTES])
{
    static const char *const suffixes[] = {"npz", "tfrecord", "jpeg"};

    snprintf(out, PLACE_PATH_BYTES, "%s/img_%07llu_of_%u.%s", d->dir, (unsigned long long)file,
             d->files, suffixes[d->shape->format]);
}

static void complete_path(const struct train_data *d, char out[PLACE_PATH_BYTES])
{
    snprintf(out, PLACE_PATH_BYTES, "%s/complete", d->dir);
}

bool train_data_exists(const struct train_data *d)
{
    char path[PLACE_PATH_BYTES];
    struct io_file *f;

    complete_path(d, path);
    if (d->place->backend->open(d->place->fs, path, O_RDONLY, 1, &f) < 0)
        return false;
    return d->place->backend->close(f) == 0;
}

static void write_files(struct bench_job *j)
{
    const struct preparing *p = j->arg;
    const struct train_data *d = p->data;
    uint64_t before = bench_now_ns(), now;

    for (uint64_t i = j->index; i < d->files; i += j->n_jobs) {
        char path[PLACE_PATH_BYTES];
        struct place_file f = {.path = path,
                               .len = train_file_bytes(d->shape, i, d->scale),
                               .piece = WRITE_BYTES,
                               .memory = p->memory + j->index * WRITE_BYTES};
        int rc;

        train_data_path(d, i, path);
        rc = place_write(d->place, &f);
        if (rc < 0) {
            place_failed(j, rc, path);
            return;
        }
        now = bench_now_ns();
        stat_record(&j->latency, now - before);
        before = now;
        j->operations++;
        j->bytes += f.len;
    }
}

int train_data_prepare(struct bench *b, const struct train_data *d, unsigned jobs, const char *name)
{
    struct preparing p = {d, place_memory("train", (size_t)jobs * WRITE_BYTES)};
    char path[PLACE_PATH_BYTES];
    struct place_file done = {.path = path, .len = 8, .piece = 8, .sync = true, .memory = p.memory};
    int rc = p.memory ? d->place->backend->mkdir(d->place->fs, d->dir) : -ENOMEM;

    if (rc == -EEXIST) /* one that was interrupted */
        rc = 0;
    if (rc < 0)
        bench_error("%s: %s", d->dir, err_text(rc));
    if (rc == 0)
        rc = bench_run(b, name, "MB/s", jobs, 0, write_files, &p);
    complete_path(d, path);
    if (rc == 0)
        rc = place_write(d->place, &done);
    place_memory_free(p.memory, (size_t)jobs * WRITE_BYTES);
    return rc;
}

void train_data_remove(const struct train_data *d)
{
    char path[PLACE_PATH_BYTES];

    complete_path(d, path);
    d->place->backend->unlink(d->place->fs, path);
    for (uint64_t i = 0; i < d->files; i++) {
        train_data_path(d, i, path);
        d->place->backend->unlink(d->place->fs, path);
    }
    d->place->backend->rmdir(d->place->fs, d->dir);
}

/* ---- reading ---- */

size_t train_reader_bytes(const struct train_data *d)
{
    return MAX(d->shape->piece, NPZ_TAIL_BYTES);
}

static int open_file(struct train_reader *r, uint64_t number)
{
    const struct train_data *d = r->data;
    char path[PLACE_PATH_BYTES];
    int rc;

    train_data_path(d, number, path);
    rc = d->place->backend->open(d->place->fs, path, O_RDONLY, 1, &r->file);
    if (rc < 0) {
        r->file = NULL;
        return rc;
    }
    r->file_number = number;
    r->offset = r->sample = 0;
    return 0;
}

static int close_file(struct train_reader *r)
{
    int rc = r->file ? r->data->place->backend->close(r->file) : 0;

    r->file = NULL;
    return rc;
}

/* Reads on until the file's first `end` bytes have been read. */
static int read_until(struct train_reader *r, uint64_t end, uint64_t size)
{
    int rc = 0;

    while (r->offset < end && rc == 0) {
        uint32_t len = (uint32_t)MIN(r->data->shape->piece, size - r->offset);

        rc = place_io(r->data->place, r->file, false, r->memory, len, r->offset);
        r->offset += len;
    }
    return rc;
}

static int npz_directory(struct train_reader *r, uint64_t size)
{
    uint32_t tail = (uint32_t)MIN(NPZ_TAIL_BYTES, size), head = MIN(NPZ_HEAD_BYTES, tail);
    int rc = place_io(r->data->place, r->file, false, r->memory, tail, size - tail);

    return rc ? rc : place_io(r->data->place, r->file, false, r->memory, head, 0);
}

int train_reader_sample(struct train_reader *r, uint64_t next, bool *ret_used, uint64_t *ret_bytes)
{
    const struct train_shape *s = r->data->shape;
    uint64_t size, record;
    int rc = 0;

    *ret_used = !r->file;
    if (!r->file)
        rc = open_file(r, next);
    if (rc < 0)
        return rc;
    size = train_file_bytes(s, r->file_number, r->data->scale);
    record = train_record_bytes(s, r->file_number, r->data->scale);
    if (s->format == TRAIN_NPZ)
        rc = npz_directory(r, size);
    r->sample++;
    if (rc == 0)
        rc = read_until(r, MIN(size, r->sample * (size / s->samples_per_file)), size);
    if (rc == 0 && r->sample >= s->samples_per_file)
        rc = close_file(r);
    *ret_bytes = record;
    return rc;
}

void train_reader_close(struct train_reader *r)
{
    if (close_file(r) < 0)
        bench_error("train: closing a file that was only read failed");
}
