/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aifs-mds: the metadata server. Reads its configuration, makes a file system if told to, serves
 * until a signal. Exit status: 0 stopped as told; 1 could not start or had to end; 2 bad
 * configuration.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/standard.h"
#include "common/fault/fault.h"
#include "common/net/device.h"
#include "mds/server.h"

#define DEFAULT_FILE "/etc/aifs/mds.conf"

static int load(struct conf *c, int argc, char **argv)
{
    char err[512];
    int rc = conf_load_daemon(c, DEFAULT_FILE, argc, argv, err, sizeof(err));

    if (rc < 0)
        fprintf(stderr, "aifs-mds: %s\n", err);
    return rc;
}

static int set_logging(const struct conf *c)
{
    const char *file = conf_str(c, "log.file");
    int rc = 0;

    log_set_level((enum log_level)conf_enum(c, "log.level"));
    if (conf_bool(c, "log.syslog"))
        log_open_syslog();
    else if (file && *file)
        rc = log_open_file(file);
    if (rc < 0)
        fprintf(stderr, "aifs-mds: log.file = %s: %s\n", file, err_text(rc));
    return rc;
}

/* Before anything starts a thread (RocksDB keeps those that formatting has started): a signal is
 * taken from the signalfd, never by its default action in some thread. */
static int block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int limit_devices(const struct conf *c)
{
    char why[400];
    int rc = net_limit_devices(conf_str(c, "net.devices"), why, sizeof(why));

    if (rc < 0)
        fprintf(stderr, "aifs-mds: net.devices: %s\n", why);
    if (rc == 0 && conf_enum(c, "net.transport") == NET_WANT_RDMA) {
        rc = net_need_rdma(why, sizeof(why));
        if (rc < 0)
            fprintf(stderr, "aifs-mds: net.transport = rdma: %s\n", why);
    }
    return rc;
}

static int serve(const struct conf *c)
{
    struct mds_server *s;
    int rc = block_signals();

    if (rc == 0 && conf_bool(c, "mds.format"))
        rc = mds_server_format(c);
    if (rc == 0)
        rc = mds_server_create(c, &s);
    if (rc < 0)
        return 1;
    rc = mds_server_run(s);
    mds_server_destroy(s);
    return rc < 0 ? 1 : 0;
}

/*
 * Each batch takes up to some MiB and gives them back; by itself the allocator returns them to the
 * kernel, and the next batch waits while it clears them anew. So each of its arenas keeps this
 * much. The main one, in which the overlay, the caches and mostly RocksDB's memtables are, grows in
 * steps that are large enough for huge pages.
 */
static void keep_memory(void)
{
    mem_heap_huge();
    (void)mallopt(M_MMAP_THRESHOLD, 4 * MIB);
    (void)mallopt(M_TRIM_THRESHOLD, 48 * MIB);
    (void)mallopt(M_TOP_PAD, 32 * MIB);
    mem_free(mem_alloc(1 * MIB));
    mem_heap_grown();
}

int main(int argc, char **argv)
{
    const struct conf_option *const tables[] = {mds_options, conf_common_options, NULL};
    struct conf *c;
    int rc;

    standard_open();
    keep_memory();
    log_set_program("aifs-mds");
    if (fault_arm_from_env() < 0) {
        fprintf(stderr, "aifs-mds: AIFS_FAULT: cannot understand it\n");
        return 2;
    }
    if (conf_create(tables, &c) < 0) {
        fprintf(stderr, "aifs-mds: out of memory\n");
        return 1;
    }
    if (conf_is_asked(argc, argv, "--version")) {
        printf("aifs-mds %s\n", AIFS_VERSION);
        conf_destroy(c);
        return standard_end("aifs-mds");
    }
    if (conf_is_asked(argc, argv, "--help")) {
        printf("Usage: aifs-mds [--config FILE] [--OPTION=VALUE ...]\n"
               "The metadata server of an aifs file system. Its configuration file, unless told, "
               "is\n" DEFAULT_FILE ", which need not exist.\n\n");
        conf_print_help(c, stdout);
        conf_destroy(c);
        return standard_end("aifs-mds");
    }
    if (load(c, argc, argv) < 0 || limit_devices(c) < 0 || set_logging(c) < 0) {
        conf_destroy(c);
        return 2;
    }
    rc = serve(c);
    conf_destroy(c);
    return rc;
}
