/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UCX as a guest in our process: loading it, contexts, configuration, log, signals.
 *
 * What is set here wins over the user's environment; in the rest UCX may be told by it. UCX's tcp
 * transport and its listeners are never enabled: their ports abort the process on bytes from
 * anyone. The handlers
 * that libucs installs for SIGSEGV and the like when it is loaded are taken back, and its log goes
 * through ours, which also keeps a message of level "fatal" from aborting the process: a dead peer
 * is not fatal to us.
 *
 * Failure: a library that is not there, or has not one of the functions, makes the connection stay
 * on its socket. Nothing is remembered of it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/net/device.h"
#include "common/net/ucx_int.h"

#define PORTS_TEXT_BYTES (NET_DEVICES_MAX * (NET_DEVICE_NAME_BYTES + 8u))
#define LOOK_AGAIN_NS    (10 * NS_PER_S) /* for a port that has become active */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ucp_context_h contexts[CHOICE_RDMA + 1];
static const char *fake_rdma_tls;
static bool loaded, inherited;
static struct net_device_list allowed;
static bool rdma_found;
static uint64_t rdma_asked_ns; /* 0: never */
struct ucx_api ucx_api;

#ifdef __SANITIZE_ADDRESS__ /* LeakSanitizer breaks down over thread-local memory of what comes    \
                               late */
__attribute__((used)) static void (*const linked)(unsigned *, unsigned *,
                                                  unsigned *) = ucp_get_version;
#endif

static ucs_log_func_rc_t on_log(const char *file, unsigned line, const char *function UNUSED,
                                ucs_log_level_t level,
                                const ucs_log_component_config_t *conf UNUSED, const char *message,
                                va_list ap)
{
    char text[512];

    if (level > UCS_LOG_LEVEL_WARN)
        return UCS_LOG_FUNC_RC_STOP;
    vsnprintf(text, sizeof text, message, ap);
    LOG_INFO("ucx", "%s:%u: %s", file ? file : "?", line, text);
    return UCS_LOG_FUNC_RC_STOP;
}

/* Runs after the constructor of libucs, which has read the environment and installed its
 * handlers. */
static void tame(void)
{
    static const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};

    for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
        ucx_api.ucs_debug_disable_signal(signals[i]);
    ucx_api.ucs_global_opts_set_value("LOG_LEVEL", "warn");
    ucx_api.ucs_global_opts_set_value("HANDLE_ERRORS", "none");
    ucx_api.ucs_global_opts_set_value("ERROR_SIGNALS", "");
    ucx_api.ucs_global_opts_set_value("WARN_UNUSED_ENV_VARS", "n");
    ucx_api.ucs_log_push_handler(on_log);
}

static bool find(void *library, const char *name, void *ret_function)
{
    void *f = dlsym(library, name);

    if (f)
        memcpy(ret_function, &f, sizeof f);
    return f != NULL;
}

/* For good: the library does not like to be unloaded. Functions of libucs come with it. */
static int load(void)
{
    void *library;
    bool all = true;

    if (loaded)
        return 0;
    library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        LOG_INFO("ucx", "not used: %s", dlerror());
        return -ENOTSUP;
    }
#define UCX_FUNCTION(name) all = all && find(library, #name, &ucx_api.name);
    UCX_FUNCTIONS(UCX_FUNCTION)
#undef UCX_FUNCTION
    if (!all) {
        LOG_WARN("ucx", "not used: libucp.so.0 is not the version this was built for");
        return -ENOTSUP;
    }
    tame();
    loaded = true;
    return 0;
}

void net_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    lookup_after_fork();
    inherited |= loaded;
}

int ucx_err(ucs_status_t s)
{
    switch (s) {
    case UCS_OK:
        return 0;
    case UCS_ERR_NO_MEMORY:
        return -ENOMEM;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NO_DEVICE:
    case UCS_ERR_UNSUPPORTED:
        return -ENOTSUP;
    case UCS_ERR_IO_ERROR:
        return -EIO;
    default:
        return -AIFS_ECONN;
    }
}

struct setting {
    const char *name, *value;
};

static int open_context(const struct setting *settings, unsigned n, ucp_context_h *ret_context)
{
    ucp_params_t params = {.field_mask =
                               UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                           .mt_workers_shared = 1};
    ucp_config_t *config;
    ucs_status_t s = ucx_api.ucp_config_read(NULL, NULL, &config);

    for (unsigned i = 0; i < n && s == UCS_OK; i++)
        s = ucx_api.ucp_config_modify(config, settings[i].name, settings[i].value);
    if (s == UCS_OK) {
        s = ucx_api.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, ret_context);
        ucx_api.ucp_config_release(config);
    }
    if (s != UCS_OK)
        LOG_WARN("ucx", "cannot start UCX with %s: %s", settings[0].value,
                 ucx_api.ucs_status_string(s));
    return ucx_err(s);
}

static int open_shm(ucp_context_h *ret_context)
{
    /* No cma: reading a dead peer's memory aborts the process (ADR 0001). Everything is sent
     * eagerly. A worker of a connection writes all of its first receive buffers once, 8 KiB each:
     * UCX's own 512 of them cost more than all else in connecting. */
    static const struct setting settings[] = {{"TLS", "posix,self"},
                                              {"RNDV_THRESH", "inf"},
                                              {"NET_DEVICES", "all"},
                                              {"MM_RX_BUFS_GROW", "128"}};

    return open_context(settings, ARRAY_LEN(settings), ret_context);
}

/* The ports that may be used and are active now. The lock is held. */
static unsigned usable_ports(char *text, size_t text_len)
{
    struct net_device_port ports[NET_DEVICES_MAX];
    unsigned n = net_devices(ports, ARRAY_LEN(ports));

    return net_device_list_active(&allowed, ports, n, text, text_len);
}

/*
 * Peers: whether they live is our own business, and UCX's keep-alive makes of UD a lane of its own
 * next to RC; UCX 1.13 then aborts on an endpoint that is closed before its first message has found
 * the other end. RC's time-out, seven times, is for a path that is gone while the control channel
 * is not; soft-RoCE takes 7 repetitions, UCX's own choice, for endless ones. UD drops what comes
 * over IPv4 by devices other than mlx5 when it checks the address (UCX 1.13), and a queue pair's
 * number and key tell as much.
 *
 * Memory: a connection has a worker of its own (ADR 0001), so it must be a small one. With UCX's
 * own lengths the receive buffers are 32 MiB per connection and device for RC, and as much for UD,
 * which carries nothing but the few messages that connect RC.
 */
static int open_rdma(ucp_context_h *ret_context)
{
    char ports[PORTS_TEXT_BYTES] = "";
    unsigned n = allowed.n ? usable_ports(ports, sizeof ports) : 0;
    const struct setting verbs[] = {
        {"TLS", "rc,ud,self"},         {"NET_DEVICES", n ? ports : "all"},
        {"RNDV_THRESH", "64k"},        {"RNDV_SCHEME", "get_zcopy"},
        {"KEEPALIVE_INTERVAL", "inf"}, {"RC_TIMEOUT", "500ms"},
        {"RC_RETRY_COUNT", "6"},       {"UD_ETH_DGID_CHECK", "n"},
        {"RC_RX_QUEUE_LEN", "512"},    {"RC_FC_WND_SIZE", "256"},
        {"RC_RX_BUFS_GROW", "512"},    {"RC_TX_BUFS_GROW", "128"},
        {"UD_RX_QUEUE_LEN", "64"},     {"UD_RX_BUFS_GROW", "64"},
        {"UD_TX_BUFS_GROW", "64"}};
    const struct setting fake[] = {{"TLS", fake_rdma_tls},
                                   {"RNDV_THRESH", "64k"},
                                   {"RNDV_SCHEME", "get_zcopy"},
                                   {"NET_DEVICES", "all"}};

    if (fake_rdma_tls)
        return open_context(fake, ARRAY_LEN(fake), ret_context);
    return allowed.n && n == 0 ? -ENOTSUP : open_context(verbs, ARRAY_LEN(verbs), ret_context);
}

int ucx_lib_context(enum offer_choice choice, ucp_context_h *ret_context)
{
    AUTO_LOCK(&lock);
    int rc = inherited ? -ENOTSUP : load();

    if (rc == 0 && !contexts[choice])
        rc = choice == CHOICE_SHM ? open_shm(&contexts[choice]) : open_rdma(&contexts[choice]);
    if (rc == 0)
        *ret_context = contexts[choice];
    return rc;
}

bool ucx_lib_has_shm(void)
{
    AUTO_LOCK(&lock);

    return !inherited;
}

bool ucx_lib_has_rdma(void)
{
    char ports[PORTS_TEXT_BYTES];
    uint64_t now = clock_mono_ns(clock_real());
    AUTO_LOCK(&lock);

    if (fake_rdma_tls)
        return true;
    if (!rdma_found && (rdma_asked_ns == 0 || now - rdma_asked_ns > LOOK_AGAIN_NS)) {
        rdma_found = usable_ports(ports, sizeof ports) > 0;
        rdma_asked_ns = now;
    }
    return rdma_found;
}

int net_limit_devices(const char *text, char *err, size_t err_len)
{
    struct net_device_port ports[NET_DEVICES_MAX];
    struct net_device_list l;
    int rc = net_device_list_parse(text, &l, err, err_len);

    if (rc < 0 || l.n == 0)
        return rc;
    rc = net_device_list_check(&l, ports, net_devices(ports, ARRAY_LEN(ports)), err, err_len);
    if (rc < 0)
        return rc;
    AUTO_LOCK(&lock);
    if (memcmp(&allowed, &l, sizeof l) == 0)
        return 0;
    if (contexts[CHOICE_RDMA] || allowed.n) {
        snprintf(err, err_len, "this process uses other RDMA devices already");
        return -EBUSY;
    }
    allowed = l;
    rdma_found = false;
    rdma_asked_ns = 0;
    return 0;
}

int net_need_rdma(char *err, size_t err_len)
{
    struct net_device_port ports[NET_DEVICES_MAX];
    struct net_device_list l;

    pthread_mutex_lock(&lock);
    l = allowed;
    pthread_mutex_unlock(&lock);
    return fake_rdma_tls ? 0
                         : net_device_list_usable(&l, ports, net_devices(ports, ARRAY_LEN(ports)),
                                                  err, err_len);
}

void ucx_lib_fake_rdma(const char *tls)
{
    fake_rdma_tls = tls;
}

bool ucx_lib_rdma_is_fake(void)
{
    return fake_rdma_tls != NULL;
}
