/* The cheapest correct responder: it shows the harness's own floor, what a
   client sees of a server that does next to nothing.

   null-server EXPERIMENT ADDRESS PORT BACKLOG WORKERS

   Each worker is a thread with its own listening socket (SO_REUSEPORT) and
   its own epoll loop.  A connection costs memory only while part of a request
   has come. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
  DESCRIPTORS = 1 << 20,
  REQUESTS_SIZE = 16384, /* a longer request is refused */
  /* The shortest request has 18 bytes and gets under 150; a value grows less. */
  ANSWERS_SIZE = 16 * REQUESTS_SIZE
};

/* What came of a request that is not whole yet. */
struct part
{
  size_t size;
  char bytes[];
};

static struct part *parts[DESCRIPTORS]; /* by descriptor */

/* Appends the answer to TARGET, which is not terminated, and returns its end. */
typedef char *answerer (char *end, const char *target, size_t size, bool closes);
static answerer *answer;

static _Noreturn void
fail (const char *what)
{
  perror (what);
  exit (1);
}

static char *
append (char *end, const char *status, const char *type, const char *body,
        size_t size, bool closes)
{
  end += sprintf (end,
                  "HTTP/1.1 %s\r\nContent-Length: %zu\r\nContent-Type: %s\r\n%s\r\n",
                  status, size, type, closes ? "Connection: close\r\n" : "");
  return mempcpy (end, body, size);
}

#define CONSTANT(end, status, type, body, closes)                              \
  append (end, status, type, body, sizeof (body) - 1, closes)

static char *
hello (char *end, const char *target, size_t size, bool closes)
{
  (void) target, (void) size;
  return CONSTANT (end, "200 OK", "text/html", "Hello, world", closes);
}

static char *
file (char *end, const char *target, size_t size, bool closes)
{
  if (size == 11 && memcmp (target, "/robots.txt", 11) == 0)
    return CONSTANT (end, "200 OK", "text/plain",
                     "User-agent: *\nDisallow: /\n", closes);
  return CONSTANT (end, "404 Not Found", "text/plain", "Not found", closes);
}

static int
digit (int c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes the form value at VALUE and escapes it for XML. */
static char *
escape (char *end, const char *value, const char *stop)
{
  for (; value < stop && *value != '&'; value++)
    {
      char c = *value == '+' ? ' ' : *value;
      if (c == '%' && stop - value > 2 && digit (value[1]) >= 0
          && digit (value[2]) >= 0)
        {
          c = digit (value[1]) << 4 | digit (value[2]);
          value += 2;
        }
      switch (c)
        {
        case '&': end = stpcpy (end, "&amp;"); break;
        case '<': end = stpcpy (end, "&lt;"); break;
        case '>': end = stpcpy (end, "&gt;"); break;
        default: *end++ = c;
        }
    }
  return end;
}

/* Returns where the value of the query's "value" begins, NULL if it has none. */
static const char *
value (const char *target, const char *stop)
{
  static const char name[] = "value=";
  const size_t size = sizeof (name) - 1;
  const char *at = memchr (target, '?', stop - target);
  for (; at; at = memchr (at, '&', stop - at))
    if ((size_t) (stop - ++at) > size && memcmp (at, name, size) == 0)
      return at[size] == '&' ? NULL : at + size;
  return NULL;
}

static char *
echo (char *end, const char *target, size_t size, bool closes)
{
  const char *stop = target + size, *given = value (target, stop);
  if (!given)
    return CONSTANT (end, "200 OK", "text/xml",
                     "<http_test><error>no value specified</error></http_test>", closes);
  char body[5 * REQUESTS_SIZE], *body_end = stpcpy (body, "<http_test><value>");
  body_end = escape (body_end, given, stop);
  body_end = stpcpy (body_end, "</value></http_test>");
  return append (end, "200 OK", "text/xml", body, body_end - body, closes);
}

/* Whether the connection ends after this request: with HTTP/1.0, or if it says so. */
static bool
last (const char *version, const char *stop)
{
  if (version[7] == '0')
    return true;
  for (const char *line = version; (line = memmem (line, stop - line, "\r\n", 2)); )
    {
      line += 2;
      if (stop - line > 11 && strncasecmp (line, "Connection:", 11) == 0)
        {
          const char *value = line + 11 + strspn (line + 11, " ");
          return strncasecmp (value, "close", 5) == 0;
        }
    }
  return false;
}

/* Answers the whole requests in BUFFER at once; returns how many bytes are
   left of one that is not whole, -1 if the connection is done. */
static ssize_t
serve (int sd, char *buffer, size_t size)
{
  static __thread char answers[ANSWERS_SIZE];
  char *at = buffer, *stop = buffer + size, *end = answers, *blank;
  bool closes = false;
  while (!closes && (blank = memmem (at, stop - at, "\r\n\r\n", 4)))
    {
      char *line_end = memmem (at, blank + 2 - at, "\r\n", 2);
      char *version = line_end - 8, *target = at + 4;
      if (version <= target || memcmp (at, "GET /", 5) || memcmp (version - 1, " HTTP/1.", 8))
        {
          closes = true;
          end = CONSTANT (end, "400 Bad Request", "text/plain", "Bad request", true);
          break;
        }
      closes = last (version, blank + 2);
      end = answer (end, target, version - 1 - target, closes);
      at = blank + 4;
    }
  /* A client that does not read what it asked for is dropped. */
  if (end > answers && send (sd, answers, end - answers, MSG_NOSIGNAL) != end - answers)
    return -1;
  memmove (buffer, at, stop - at);
  return closes || stop - at == REQUESTS_SIZE ? -1 : stop - at;
}

static void
readable (int sd)
{
  char buffer[REQUESTS_SIZE];
  size_t size = 0;
  if (parts[sd])
    memcpy (buffer, parts[sd]->bytes, size = parts[sd]->size);
  ssize_t n = recv (sd, buffer + size, sizeof (buffer) - size, 0);
  if (n < 0 && errno == EAGAIN)
    return;
  ssize_t left = n > 0 ? serve (sd, buffer, size + n) : -1;
  if (left > 0 || parts[sd])
    {
      free (parts[sd]);
      parts[sd] = NULL;
    }
  if (left > 0)
    {
      parts[sd] = malloc (sizeof (struct part) + left);
      if (!parts[sd])
        fail ("malloc");
      parts[sd]->size = left;
      memcpy (parts[sd]->bytes, buffer, left);
    }
  if (left < 0)
    close (sd);
}

static _Noreturn void *
work (void *listening)
{
  int listener = *(int *) listening, epoll = epoll_create1 (0);
  struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };
  epoll_ctl (epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;)
    {
      struct epoll_event ready[256];
      int n = epoll_wait (epoll, ready, 256, -1);
      for (int i = 0; i < n; i++)
        {
          if (ready[i].data.fd != listener)
            {
              readable (ready[i].data.fd);
              continue;
            }
          int sd;
          while ((sd = accept4 (listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
            {
              event.data.fd = sd;
              if (sd >= DESCRIPTORS || epoll_ctl (epoll, EPOLL_CTL_ADD, sd, &event) < 0)
                close (sd);
            }
          if (errno != EAGAIN && errno != ECONNABORTED && errno != EMFILE)
            fail ("accept");
        }
    }
}

static int
listen_on (const struct sockaddr_in *address, int backlog, bool shared)
{
  int on = 1, listener = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt (listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof (on));
  if (shared)
    setsockopt (listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof (on));
  if (bind (listener, (const struct sockaddr *) address, sizeof (*address)) < 0)
    fail ("bind");
  if (listen (listener, backlog) < 0)
    fail ("listen");
  return listener;
}

int
main (int argc, char **argv)
{
  int workers = argc == 6 ? atoi (argv[5]) : 0;
  if (workers < 1)
    {
      fprintf (stderr, "usage: null-server EXPERIMENT ADDRESS PORT BACKLOG WORKERS\n");
      return 2;
    }
  answer = strcmp (argv[1], "dynamic") == 0  ? echo
           : strcmp (argv[1], "static") == 0 ? file
                                             : hello;
  struct sockaddr_in address = { .sin_family = AF_INET,
                                 .sin_port = htons (atoi (argv[3])) };
  if (inet_pton (AF_INET, argv[2], &address.sin_addr) != 1)
    fail (argv[2]);
  int listeners[workers];
  for (int i = 0; i < workers; i++)
    listeners[i] = listen_on (&address, atoi (argv[4]), workers > 1);
  for (int i = 1; i < workers; i++)
    {
      pthread_t thread;
      if ((errno = pthread_create (&thread, NULL, work, &listeners[i])))
        fail ("pthread_create");
    }
  work (&listeners[0]);
}
