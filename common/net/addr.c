/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: text to struct net_addr and back. "host:port", "[v6]:port", a bare host with the
 * default port, "*:port" for every address of this machine, "loop:name". Failure: -EINVAL, or
 * -EHOSTUNREACH for a name that is not known, with one clause for people. Only names make the
 * resolver ask anybody: net_addr_resolve() may wait for them, net_addr_parse() does not.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/err.h"
#include "common/net/net_int.h"

static_assert(sizeof(struct sockaddr_in6) == sizeof(((struct net_place *)0)->sockaddr),
              "a socket address fits");

/* Splits text into host and port text; port stays empty when there is none. */
static int split(const char *text, char *host, size_t host_len, char *port, size_t port_len)
{
    const char *colon = strrchr(text, ':');
    const char *h = text;
    size_t hl = strlen(text);

    port[0] = '\0';
    if (text[0] == '[') {
        const char *end = strchr(text, ']');

        if (!end || (end[1] != '\0' && end[1] != ':'))
            return -EINVAL;
        h = text + 1;
        hl = (size_t)(end - h);
        colon = end[1] ? end + 1 : NULL;
    } else if (colon && strchr(text, ':') != colon) {
        colon = NULL; /* several colons and no brackets: an IPv6 address alone */
    } else if (colon) {
        hl = (size_t)(colon - text);
    }
    if (colon && (colon[1] == '\0' || strlen(colon + 1) >= port_len))
        return -EINVAL;
    if (colon)
        snprintf(port, port_len, "%s", colon + 1);
    if (hl == 0 || hl >= host_len)
        return -EINVAL;
    memcpy(host, h, hl);
    host[hl] = '\0';
    return 0;
}

static bool port_ok(const char *port)
{
    char *end;
    unsigned long v = strtoul(port, &end, 10);

    return port[0] >= '0' && port[0] <= '9' && *end == '\0' && v <= 65535;
}

static bool has_place(const struct net_addr *a, const struct net_place *p)
{
    for (unsigned k = 0; k < a->n_places; k++)
        if (memcmp(&a->places[k], p, sizeof *p) == 0)
            return true;
    return false;
}

static void add_place(struct net_addr *a, const struct addrinfo *i)
{
    struct net_place p = {.len = (uint32_t)i->ai_addrlen};

    if (a->n_places == NET_ADDR_PLACES_MAX || p.len > sizeof p.sockaddr)
        return;
    memcpy(p.sockaddr, i->ai_addr, p.len);
    if (!has_place(a, &p)) /* else two lines of /etc/hosts */
        a->places[a->n_places++] = p;
}

struct parts {
    char host[NET_ADDR_BYTES], port[8];
};

/* In the order that the resolver has for them: what can be reached from here comes first. With
 * AI_NUMERICHOST nobody is asked, and a name is EAI_NONAME. */
static int find_places(const struct parts *p, int flags, struct net_addr *a)
{
    bool any = strcmp(p->host, "*") == 0;
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | (any ? AI_PASSIVE : flags)};
    struct addrinfo *list;
    int rc = getaddrinfo(any ? NULL : p->host, p->port, &hints, &list);

    if (rc != 0)
        return rc;
    for (const struct addrinfo *i = list; i; i = i->ai_next)
        add_place(a, i);
    freeaddrinfo(list);
    return 0;
}

static int unknown(const struct parts *p, int eai, char *err, size_t err_len)
{
    snprintf(err, err_len, "cannot resolve \"%s\": %s", p->host, gai_strerror(eai));
    return -EHOSTUNREACH;
}

static int parse(const char *text, uint16_t default_port, struct net_addr *a, struct parts *parts,
                 char *err, size_t err_len)
{
    char *host = parts->host, *port = parts->port;
    int rc;

    *a = (struct net_addr){.loop = strncmp(text, "loop:", 5) == 0};
    if (strlen(text) >= sizeof a->text || (a->loop && text[5] == '\0'))
        goto err_form;
    snprintf(a->text, sizeof a->text, "%s", text);
    if (a->loop)
        return 0;
    if (split(text, host, sizeof parts->host, port, sizeof parts->port) < 0)
        goto err_form;
    if (port[0] == '\0')
        snprintf(port, sizeof parts->port, "%u", default_port);
    if (!port_ok(port)) {
        if (port[strspn(port, "0123456789")] != '\0')
            goto err_form;
        snprintf(err, err_len, "\"%.100s\": the port is out of range: want 0 to 65535", text);
        return -EINVAL;
    }
    rc = find_places(parts, AI_NUMERICHOST, a);
    if (rc == EAI_NONAME)
        return -EAGAIN;
    return rc ? unknown(parts, rc, err, err_len) : 0;

err_form:
    snprintf(err, err_len, "\"%.100s\" is not an address: want HOST:PORT or [IPV6]:PORT", text);
    return -EINVAL;
}

int net_addr_parse(const char *text, uint16_t default_port, struct net_addr *ret_addr, char *err,
                   size_t err_len)
{
    struct net_addr a;
    struct parts parts;
    int rc = parse(text, default_port, &a, &parts, err, err_len);

    if (rc == 0 || rc == -EAGAIN)
        *ret_addr = a;
    return rc;
}

int net_addr_resolve(const char *text, uint16_t default_port, struct net_addr *ret_addr, char *err,
                     size_t err_len)
{
    struct net_addr a;
    struct parts parts;
    int rc = parse(text, default_port, &a, &parts, err, err_len);

    if (rc == -EAGAIN) {
        rc = find_places(&parts, 0, &a);
        rc = rc ? unknown(&parts, rc, err, err_len) : 0;
    }
    if (rc == 0)
        *ret_addr = a;
    return rc;
}

void net_addr_name(const char *text, uint16_t default_port, char *ret_name, size_t len)
{
    char host[NET_ADDR_BYTES], port[8];
    bool has_none = strncmp(text, "loop:", 5) != 0 && strlen(text) < NET_ADDR_BYTES &&
                    split(text, host, sizeof host, port, sizeof port) == 0 && !port[0];

    if (has_none && text[0] != '[' && strchr(text, ':'))
        snprintf(ret_name, len, "[%s]:%u", text, default_port);
    else if (has_none)
        snprintf(ret_name, len, "%s:%u", text, default_port);
    else
        snprintf(ret_name, len, "%s", text);
}

bool net_addr_equal(const struct net_addr *a, const struct net_addr *b)
{
    if (a->loop || b->loop)
        return a->loop == b->loop && strcmp(a->text, b->text) == 0;
    for (unsigned i = 0; i < a->n_places; i++)
        if (has_place(b, &a->places[i]))
            return true;
    return false;
}

bool net_addr_same_places(const struct net_addr *a, const struct net_addr *b)
{
    bool same = a->n_places == b->n_places;

    for (unsigned k = 0; same && k < a->n_places; k++)
        same = has_place(b, &a->places[k]);
    return same;
}

void addr_format(const void *sockaddr, char *text, size_t len)
{
    const struct sockaddr *sa = sockaddr;
    char host[INET6_ADDRSTRLEN] = "?";

    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = sockaddr;

        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(text, len, "%s:%u", host, ntohs(in->sin_port));
    } else if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = sockaddr;

        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(text, len, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        snprintf(text, len, "?");
    }
}
