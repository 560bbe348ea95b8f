// SPDX-License-Identifier: Apache-2.0
/*
 * All sources of a daemon's configuration in their order: file, environment, command line. --config
 * says which file; one that is named has to be there, the default one need not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/conf/conf_int.h"

/* Takes "--config FILE" or "--config=FILE" out of argv; the last one counts. */
static int take_config(int *argc, char **argv, const char **ret_path, char *err, size_t err_len)
{
    int left = 1;

    for (int i = 1; i < *argc; i++) {
        if (!strcmp(argv[i], "--config") && i + 1 < *argc) {
            *ret_path = argv[++i];
        } else if (!strncmp(argv[i], "--config=", 9) || !strcmp(argv[i], "--config")) {
            *ret_path = argv[i][8] ? argv[i] + 9 : argv[i] + 8;
        } else {
            argv[left++] = argv[i];
            continue;
        }
        if (!**ret_path || !strncmp(*ret_path, "--", 2)) {
            snprintf(err, err_len, "--config needs the name of a file");
            return -AIFS_ECONFIG;
        }
    }
    *argc = left;
    argv[left] = NULL;
    return 0;
}

static int load_file(struct conf *c, const char *path, const char *default_path, char *err,
                     size_t err_len)
{
    int rc = conf_load_file(c, path ? path : default_path, err, err_len);

    if (rc == -ENOENT && !path)
        return 0;
    if (rc == -ENOENT) /* else it is said what is wrong in which file */
        snprintf(err, err_len, "--config %s: %s", path, err_text(rc));
    return rc;
}

bool conf_is_asked(int argc, char *const *argv, const char *option)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], option))
            return true;
    }
    return false;
}

int conf_load_daemon(struct conf *c, const char *default_path, int argc, char **argv, char *err,
                     size_t err_len)
{
    const char *path = NULL;
    int rc = take_config(&argc, argv, &path, err, err_len);

    if (rc == 0)
        rc = load_file(c, path, default_path, err, err_len);
    if (rc == 0)
        rc = conf_load_env(c, err, err_len);
    if (rc == 0)
        rc = conf_load_args(c, &argc, argv, err, err_len);
    if (rc == 0)
        rc = conf_check_rest(c, argc, argv, err, err_len);
    if (rc == 0 && argc > 1) {
        snprintf(err, err_len, "%s: not an option; see --help", argv[1]);
        rc = -AIFS_ECONFIG;
    }
    return rc ? rc : conf_freeze(c, err, err_len);
}
