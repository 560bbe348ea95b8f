/* SPDX-License-Identifier: Apache-2.0 */
/* See name_service.h. */
#include "tests/support/name_service.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define NAMES_MAX     8u
#define ADDRESS_BYTES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
    char name[64], address[ADDRESS_BYTES];
} names[NAMES_MAX];
static unsigned n_names, asked, asking;
static bool held;
static pthread_t forbidden;

void name_service_init(void)
{
    AUTO_LOCK(&lock);
    n_names = asked = 0;
    held = false;
    forbidden = pthread_self();
}

/* Under the lock. */
static unsigned find(const char *name)
{
    unsigned i = 0;

    while (i < n_names && strcmp(names[i].name, name) != 0)
        i++;
    return i;
}

void name_service_set(const char *name, const char *address)
{
    unsigned i;

    AUTO_LOCK(&lock);
    i = find(name);
    if (i == NAMES_MAX)
        abort();
    n_names += i == n_names;
    snprintf(names[i].name, sizeof names[i].name, "%s", name);
    snprintf(names[i].address, sizeof names[i].address, "%s", address ? address : "");
}

void name_service_hold(bool hold)
{
    AUTO_LOCK(&lock);
    held = hold;
    pthread_cond_broadcast(&changed);
}

unsigned name_service_asked(void)
{
    AUTO_LOCK(&lock);
    return asked;
}

unsigned name_service_asking(void)
{
    AUTO_LOCK(&lock);
    return asking;
}

static int ask(const char *name, char address[ADDRESS_BYTES])
{
    unsigned i;

    if (pthread_equal(pthread_self(), forbidden)) {
        fprintf(stderr, "%s is looked up by a thread that may not wait\n", name);
        abort();
    }
    AUTO_LOCK(&lock);
    asked++;
    asking++;
    while (held)
        pthread_cond_wait(&changed, &lock);
    asking--;
    i = find(name);
    snprintf(address, ADDRESS_BYTES, "%s", i < n_names ? names[i].address : "");
    return i == n_names ? EAI_NONAME : address[0] ? 0 : EAI_AGAIN;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *f = dlsym(RTLD_NEXT, "getaddrinfo");
    size_t len = name ? strlen(name) : 0;
    char address[ADDRESS_BYTES];
    int rc;

    memcpy(&real, &f, sizeof f);
    if (len < 5 || strcmp(name + len - 5, ".test") != 0)
        return real(name, service, hints, ret_list);
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    rc = ask(name, address);
    return rc ? rc : real(address, service, hints, ret_list);
}
