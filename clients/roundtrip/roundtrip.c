/* Measures round trips over TCP: N connections send a fixed request and wait
   for an answer of known length, in closed loop or at a given total rate; or
   connections are opened at a given rate, each with its own requests.
   It measures a raw echo and a web server alike.  An answer of HTTP is good if
   its status and its body are, however it is framed.
   One thread, epoll, no busy waiting. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
  "usage: roundtrip --port PORT --request TEXT [OPTION...]\n"
  "\n"
  "Send a fixed request on each connection, wait for the whole answer, repeat.\n"
  "\n"
  "  --host HOST          server's name or address (127.0.0.1)\n"
  "  --port PORT          server's port\n"
  "  --request TEXT       what to send, with \\r, \\n, \\t, \\\\ and \\xHH; 16 KB at most\n"
  "  --request-file FILE  the same from a file, as it is\n"
  "  --body TEXT          what the body of each answer must be, with status 200; of an\n"
  "                       answer that is not HTTP, all of it; written as --request;\n"
  "                       without it, as in a first exchange; where two of HTTP differ,\n"
  "                       the status alone is judged\n"
  "  --bodies FILE        the same for each target; each ends with a zero byte\n"
  "  --reply-bytes N      length of an answer that is not HTTP; without it, it ends when\n"
  "                       nothing follows for the settling time in a first exchange\n"
  "  --settle SECONDS     that settling time (0.2)\n"
  "  --connections N      connections, each with one request under way (1); with\n"
  "                       --calls, the most that are open at once (as many as files)\n"
  "  --rate R             open loop: R requests per second in all, the connections'\n"
  "                       sends spread evenly; 0 is closed loop, each sends when its\n"
  "                       answer is whole (0)\n"
  "  --calls N            open loop of connections: R per second are opened, each\n"
  "                       carries N requests, one after the other, and is closed\n"
  "  --gather SECONDS     with --calls: open what is due in such a step together, for less\n"
  "                       CPU; it is late by so much at most, replies are read at once (0)\n"
  "  --targets FILE       replace {target} in the request by the file's next target;\n"
  "                       targets have one length, each ends with a zero byte\n"
  "  --duration SECONDS   how long to offer requests (10)\n"
  "  --client I/N         this is client I, from 0, of N that offer this load together:\n"
  "                       connection k, with its requests, is that of client k modulo N\n"
  "  --source ADDRESS,... connect from these addresses in turn\n"
  "  --timeout SECONDS    when an answer counts as lost; at the end, how long to wait\n"
  "                       for what is under way (5)\n"
  "  --idle N             no load: open N connections, one exchange on each, print\n"
  "                       `idle_connections: N`, hold them until standard input ends,\n"
  "                       then print how many the server ended meanwhile\n"
  "  --version            the version of the report\n"
  "  --help               this\n"
  "\n"
  "The report gives a `key: value` on each line, then each histogram bin as\n"
  "`quantity lower upper count` in us, the bin being [lower, upper), then `end`.\n"
  "service_time counts from the actual send. In open loop, latency counts from\n"
  "the intended send: a connection that still waits sends late what was due\n"
  "meanwhile. send_lag is the part of that which is the client's own: from when a\n"
  "request was due and its connection free, to its send.\n"
  "With --calls, connections, not requests, are due: latency counts from a\n"
  "connection's intended opening to its last reply, connect_time from its actual\n"
  "opening until it is established, connection_time from its actual opening to its\n"
  "end, if it had a reply, and send_lag is how late it was opened. A bin of\n"
  "replies_at counts the replies that came in that time after the start.\n"
  "An answer is an error if its status or its body is wrong, if more follows it than\n"
  "was asked for (wrong_length), or if the connection ends before it is whole;\n"
  "answers_unasked counts how often bytes came on a connection that had asked nothing,\n"
  "informational the interim answers (1xx) that were skipped.  first_wrong_answer is how\n"
  "the first of all wrong answers begins.\n"
  "Exit status: 0 measured, 1 the server did not answer, 2 wrong options.\n";

enum
{
  REPORT_VERSION = 3,
  LONGEST_REQUEST = 16384,
  BEGINNING = 12, /* of the first answer, which the report has: "HTTP/1.1 200" */
  LONGEST_ANSWER = 1 << 20,
  LONGEST_FILE = 1 << 26,
  EXAMPLE = 80, /* bytes of a wrong answer that the report has */
  MOST_CONNECTIONS = 60000,
  SPARE_FILES = 16, /* of the process itself */
  MOST_SOURCES = 1024,
  AT_ONCE = 64, /* idle connections that are opened before the first answers; fewer than a
                   listen backlog holds */
  SUB_BITS = 7, /* 2^-7: bins of at most 0.8 % */
  BINS = 64 << SUB_BITS,
  INTERVALS = 4096 /* of INTERVAL, in which replies are counted */
};
static const int64_t SECOND = 1000000000, SCAN = 10000000 /* ns between looks for timeouts */,
  INTERVAL = 500000000;

enum failure
{
  TIMEOUT, REFUSED, RESET, CLOSED, WRONG_STATUS, WRONG_LENGTH, CUT, DIFFERENT, NO_FILE,
  NO_PORT, OTHER, FAILURES
};
static const char *const failure_names[]
  = { "client_timeout", "connection_refused", "connection_reset", "connection_closed",
      "wrong_status", "wrong_length", "answer_cut", "answer_different",
      "descriptors_unavailable", "address_unavailable", "other" };

enum state { NONE, CONNECTING, IDLE, WAITING };

struct connection
{
  int sd;
  enum state state;
  int64_t index;    /* open loop: of its next or current request, of all clients' */
  int64_t wake;     /* closed loop: not before */
  int64_t intended; /* times of the request under way, in ns */
  int64_t sent;
  int64_t since;    /* when it became free to send; with --calls, when it was opened */
  char *held;       /* what came of an answer that is not whole yet */
  size_t got;       /* how much that is */
  const char *body; /* what the answer must have */
  size_t body_size;
  bool whole, closes; /* the answer is whole; its server closes the connection now */
  int64_t calls;    /* with --calls: requests still to be sent */
  struct connection *older, *newer; /* with --calls: by the time of the last step, or spare */
};

struct answer
{
  bool whole;
  size_t size, head; /* of all of it; of its head, 0 if it is not HTTP */
  int status;
  bool closes;      /* the connection ends with it */
  const char *body;
  size_t body_size, there; /* how long it is or is to be, and how much of it has come */
};

struct histogram
{
  uint64_t count[BINS];
};

static const char *host = "127.0.0.1", *port;
static char request[LONGEST_REQUEST], beginning[BEGINNING];
static size_t request_size, reply_size, reply_head_size;
static bool http;        /* the first answer was of HTTP */
static int status = 200; /* of a good answer */
static char *body, *bodies, first_wrong[EXAMPLE + 32];
static size_t body_size, bodies_size;
static int64_t unasked;
static char *targets, *target_place; /* what replaces TARGET, and where in the request */
static size_t targets_count, target_size;
static int64_t connections, idle;         /* of this client */
static int64_t everyones, client, clients = 1; /* connections of all clients; which it is, of how many */
static int64_t calls; /* requests of each connection; 0: connections stay open */
static double rate, duration_s = 10, timeout_s = 5, settle_s = 0.2, gather_s;

static struct addrinfo *address, *sources[MOST_SOURCES];
static int sources_count;
static struct connection *all;
static int epoll;
static int64_t start, end, last /* of all clients' requests */, total, timeout_ns;
static struct histogram service_time, latency, send_lag, connect_time, connection_time;
static uint64_t errors[FAILURES];
static int64_t requests, requests_in_window, replies, replies_in_window, under_way, connects,
  idle_losses, failed, informational, received_bytes, most_under_way;
static uint64_t replies_at[INTERVALS];

static _Noreturn __attribute__ ((format (printf, 2, 3))) void
stop (int status, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  fputs ("roundtrip: ", stderr);
  vfprintf (stderr, format, arguments);
  fputc ('\n', stderr);
  exit (status);
}

static int64_t
clock_ns (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return now.tv_sec * SECOND + now.tv_nsec;
}

static void
add (struct histogram *h, int64_t ns)
{
  uint64_t value = ns < 0 ? 0 : ns;
  int shift = value < (2 << SUB_BITS) ? 0 : 63 - __builtin_clzll (value) - SUB_BITS;
  h->count[((uint64_t) shift << SUB_BITS) + (value >> shift)]++;
}

/* The lower bound of a bin in ns. */
static uint64_t
bound (int bin)
{
  if (bin < 2 << SUB_BITS)
    return bin;
  int shift = (bin >> SUB_BITS) - 1;
  return (uint64_t) ((bin & ((1 << SUB_BITS) - 1)) | 1 << SUB_BITS) << shift;
}

/* When request number INDEX of all clients' connections is due. */
static int64_t
due_at (int64_t index)
{
  return start + (int64_t) (index * (SECOND / rate));
}

/* How many of COUNT connections are this client's. */
static int64_t
share (int64_t count)
{
  return (count + clients - 1 - client) / clients;
}

/* The first request of this client's connections from number INDEX on. */
static int64_t
own (int64_t index)
{
  while (index % everyones % clients != client)
    index++;
  return index;
}

static bool
due (const struct connection *c, int64_t now)
{
  if (rate > 0)
    return c->index < last && due_at (c->index) <= now;
  return now < end && c->wake <= now;
}

static void
watch (struct connection *c, int operation, uint32_t events)
{
  struct epoll_event event = { .events = events, .data.ptr = c };
  epoll_ctl (epoll, operation, c->sd, &event);
}

static void
forget_answer (struct connection *c)
{
  free (c->held);
  c->held = NULL;
  c->got = 0;
  c->whole = false;
}

static void
drop (struct connection *c)
{
  close (c->sd);
  c->state = NONE;
}

/* The request under way came to nothing. */
static void
lost (struct connection *c, enum failure why)
{
  errors[why]++;
  failed++;
  under_way--;
  if (c->sd >= 0)
    drop (c);
  c->state = NONE;
  c->index += everyones;
  c->since = clock_ns ();
  /* A server that refuses at once is not asked in a busy loop. */
  c->wake = c->since + SCAN;
}

static enum failure
reason (int error)
{
  return error == ECONNREFUSED ? REFUSED
         : error == ECONNRESET || error == EPIPE ? RESET
         : error == ETIMEDOUT ? TIMEOUT
         : error == EMFILE || error == ENFILE ? NO_FILE
         : error == EADDRNOTAVAIL || error == EADDRINUSE ? NO_PORT
                                                         : OTHER;
}

/* Gives a socket the next source address; its port is chosen when it connects. */
static int
bind_source (int sd)
{
  static int turn;
  struct addrinfo *source = sources[turn++ % sources_count];
  int on = 1;
  setsockopt (sd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof (on));
  return bind (sd, source->ai_addr, source->ai_addrlen);
}

/* Returns -1 with errno set, or 0 once connected or connecting. */
static int
begin (struct connection *c)
{
  int on = 1;
  c->sd = socket (address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->sd < 0)
    return -1;
  setsockopt (c->sd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
  if (sources_count && bind_source (c->sd) < 0)
    return -1;
  int failed_to = connect (c->sd, address->ai_addr, address->ai_addrlen);
  /* Without a port nothing was begun. */
  connects += !failed_to || errno != EADDRNOTAVAIL;
  return failed_to && errno != EINPROGRESS ? -1 : 0;
}

/* Puts the next target into the request, and what it must be answered with into C. */
static void
next_target (struct connection *c)
{
  static size_t turn, at;
  c->body = body;
  c->body_size = body_size;
  if (bodies)
    {
      c->body = bodies + at;
      c->body_size = strlen (c->body);
      at = (at + c->body_size + 1) % bodies_size;
    }
  if (target_place)
    memcpy (target_place, targets + turn++ % targets_count * (target_size + 1), target_size);
}

static void
send_request (struct connection *c)
{
  int64_t now = clock_ns ();
  c->sent = now;
  forget_answer (c);
  c->state = WAITING;
  requests++;
  requests_in_window += now < end;
  next_target (c);
  errno = 0;
  if (send (c->sd, request, request_size, MSG_NOSIGNAL) != (ssize_t) request_size)
    lost (c, reason (errno));
}

/* Starts what is due on a free connection. */
static void
pump (struct connection *c, int64_t now)
{
  while ((c->state == NONE || c->state == IDLE) && due (c, now))
    {
      c->intended = rate > 0 ? due_at (c->index) : now;
      under_way++;
      if (rate > 0)
        add (&send_lag, clock_ns () - (c->since > c->intended ? c->since : c->intended));
      if (c->state == IDLE)
        {
          send_request (c);
          continue;
        }
      c->state = CONNECTING;
      c->sent = now;
      if (begin (c) < 0)
        lost (c, reason (errno));
      else
        watch (c, EPOLL_CTL_ADD, EPOLLOUT);
    }
}

static void
connected (struct connection *c)
{
  int error = 0;
  socklen_t size = sizeof (error);
  getsockopt (c->sd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error)
    {
      lost (c, reason (error));
      return;
    }
  watch (c, EPOLL_CTL_MOD, EPOLLIN);
  send_request (c);
}

/* Returns the length of a head of HTTP, with its empty line; 0 if BYTES begin with none. */
static size_t
head_length (const char *bytes, size_t n)
{
  const char *end = n > BEGINNING && memcmp (bytes, "HTTP/1.", 7) == 0
                      ? memmem (bytes, n, "\r\n\r\n", 4) : NULL;
  return end ? end + 4 - bytes : 0;
}

/* Leaves out interim answers (1xx, but for 101) at the beginning of N BYTES. */
static void
skip_informational (const char **bytes, size_t *n)
{
  for (size_t head; (head = head_length (*bytes, *n)) > 0; *bytes += head, *n -= head)
    {
      if ((*bytes)[9] != '1' || memcmp (*bytes + 9, "101", 3) == 0)
        return;
      informational++;
    }
}

/* Returns the value of a field in a HEAD of SIZE bytes, NULL if it has none; NAME is as in
   "\ncontent-length:". */
static const char *
field (const char *head, size_t size, const char *name)
{
  size_t length = strlen (name);
  for (size_t at = 0; at + length < size; at++)
    if (head[at] == '\n' && strncasecmp (head + at, name, length) == 0)
      return head + at + length + strspn (head + at + length, " \t");
  return NULL;
}

/* Returns whether a list that ends with its line has a WORD. */
static bool
lists (const char *list, const char *word)
{
  size_t length = strlen (word);
  for (; *list && *list != '\r' && *list != '\n'; list += strcspn (list, ",\r\n"))
    {
      list += strspn (list, ", \t");
      if (strncasecmp (list, word, length) == 0 && strchr (", \t\r\n", list[length]))
        return true;
    }
  return false;
}

/* Takes the chunks of N BYTES; returns how many bytes they have with their end, 0 while that is not
   there.  Their content is in A, which a later call changes. */
static size_t
chunks (const char *bytes, size_t n, struct answer *a)
{
  static char content[LONGEST_ANSWER];
  a->body = content;
  a->body_size = a->there = 0;
  for (size_t at = 0;;)
    {
      const char *line = memchr (bytes + at, '\n', n - at);
      if (!line)
        return 0;
      size_t size = strtoul (bytes + at, NULL, 16);
      at = line + 1 - bytes;
      if (size == 0)
        {
          const char *end = memmem (line - 1, n - at + 2, "\r\n\r\n", 4);
          return end ? end + 4 - bytes : 0;
        }
      if (size > n - at || a->body_size + size > LONGEST_ANSWER)
        return 0;
      memcpy (content + a->body_size, bytes + at, size);
      a->there = a->body_size += size;
      at += size + 2;
      if (at > n)
        return 0;
    }
}

/* Reads the answer that N BYTES begin with, which a zero byte follows; ENDED if no more will come.
   Returns false if they begin with no answer of HTTP. */
static bool
read_answer (const char *bytes, size_t n, bool ended, struct answer *a)
{
  *a = (struct answer) { .head = head_length (bytes, n) };
  if (memcmp (bytes, "HTTP/1.1 ", n < 7 ? n : 7) != 0)
    return false;
  if (!a->head)
    return true;
  a->status = atoi (bytes + 9);
  a->body = bytes + a->head;
  const char *connection = field (bytes, a->head, "\nconnection:");
  a->closes = connection ? lists (connection, "close") : bytes[7] == '0';
  const char *coding = field (bytes, a->head, "\ntransfer-encoding:");
  const char *length = field (bytes, a->head, "\ncontent-length:");
  if (coding && strncasecmp (coding, "chunked", 7) == 0)
    {
      size_t size = chunks (a->body, n - a->head, a);
      a->whole = size > 0;
      a->size = a->head + size;
    }
  else if (length || a->status == 204 || a->status == 304)
    {
      a->body_size = length && a->status != 204 && a->status != 304 ? strtoul (length, NULL, 10) : 0;
      a->size = a->head + a->body_size;
      a->whole = n >= a->size;
      a->there = a->whole ? a->body_size : n - a->head;
    }
  else
    {
      a->body_size = a->there = n - a->head;
      a->size = n;
      a->whole = a->closes = ended;
    }
  return true;
}

/* Keeps the first wrong answer as an example: SIZE BYTES, which are WHAT of it. */
static void
note (int its_status, const char *what, const char *bytes, size_t size)
{
  if (*first_wrong)
    return;
  int at = its_status ? sprintf (first_wrong, "status %d, %s: ", its_status, what)
                      : sprintf (first_wrong, "%s: ", what);
  for (size_t i = 0; i < size && i < EXAMPLE; i++)
    first_wrong[at++] = bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : '.';
}

/* Returns what is wrong with what there is of an answer, N BYTES, on C; FAILURES if nothing is. */
static enum failure
judge (const struct connection *c, const struct answer *a, const char *bytes, size_t n)
{
  bool known = a->whole || a->size > n;
  enum failure wrong = a->head && a->status != status                         ? WRONG_STATUS
                       : a->whole && a->size < n                              ? WRONG_LENGTH
                       : !c->body                                             ? FAILURES
                       : known && a->head && a->body_size != c->body_size     ? WRONG_LENGTH
                       : a->whole && memcmp (a->body, c->body, a->there) != 0 ? DIFFERENT
                                                                              : FAILURES;
  if (wrong == WRONG_LENGTH && a->size < n)
    note (a->status, "after it", bytes + a->size, n - a->size);
  else if (wrong != FAILURES)
    note (a->status, "content", a->body, a->there);
  return wrong;
}

/* Takes the answer that N BYTES, all that came of it, begin with.  Returns what is wrong. */
static enum failure
take_whole (struct connection *c, const char *bytes, size_t n, bool ended)
{
  struct answer a = { .size = c->body_size, .body = bytes, .body_size = c->body_size };
  if (http && !read_answer (bytes, n, ended, &a))
    {
      note (0, "no HTTP", bytes, n);
      return DIFFERENT;
    }
  if (!http)
    {
      a.there = n < a.size ? n : a.size;
      a.whole = n >= a.size || memcmp (bytes, c->body, a.there) != 0;
    }
  enum failure wrong = judge (c, &a, bytes, n);
  if (wrong == FAILURES && ended && !a.whole)
    {
      note (a.status, "cut", bytes, n);
      return CUT;
    }
  c->whole = a.whole;
  c->closes = a.closes;
  return n < LONGEST_ANSWER || wrong != FAILURES ? wrong : WRONG_LENGTH;
}

/* Takes N more BYTES of an answer, which a zero byte follows; none if the connection ENDED.
   Returns what is wrong with it, FAILURES if nothing is. */
static enum failure
take (struct connection *c, char *bytes, size_t n, bool ended)
{
  /* The last good answer: most are like it. */
  static char usual[4096];
  static size_t usual_size;
  static const char *usual_body;
  static bool usual_closes;

  received_bytes += n;
  if (!c->got && n && n == usual_size && c->body == usual_body && memcmp (usual, bytes, n) == 0)
    {
      c->whole = true;
      c->closes = usual_closes;
      return FAILURES;
    }
  const char *all = bytes;
  size_t size = n;
  if (c->got)
    {
      size = c->got + n;
      c->held = realloc (c->held, size + 1);
      if (!c->held)
        stop (1, "no memory for an answer of %zu bytes", size);
      memcpy (c->held + c->got, bytes, n + 1);
      all = c->held;
    }
  if (http)
    skip_informational (&all, &size);
  if (!size && ended)
    return CLOSED;
  enum failure wrong = take_whole (c, all, size, ended);
  if (wrong == FAILURES && !c->whole && size)
    {
      char *kept = malloc (size + 1);
      if (!kept)
        stop (1, "no memory for an answer of %zu bytes", size);
      memcpy (kept, all, size);
      kept[size] = 0;
      free (c->held);
      c->held = kept;
    }
  c->got = size;
  if (wrong == FAILURES && c->whole && !c->held && size == n && n <= sizeof (usual))
    {
      memcpy (usual, bytes, n);
      usual_size = n;
      usual_body = c->body;
      usual_closes = c->closes;
    }
  return wrong;
}

/* Reads once, up to SIZE - 1 bytes; returns what is wrong with the answer, FAILURES if nothing is. */
static enum failure
receive (struct connection *c, char *buffer, size_t size, ssize_t *n)
{
  *n = recv (c->sd, buffer, size - 1, 0);
  if (*n < 0)
    return errno == EAGAIN ? FAILURES : reason (errno);
  buffer[*n] = 0;
  return take (c, buffer, *n, *n == 0);
}

static void
readable (struct connection *c)
{
  static char buffer[65536];
  ssize_t n;
  if (c->state == IDLE)
    {
      n = recv (c->sd, buffer, sizeof (buffer), 0);
      if (n < 0 && errno == EAGAIN)
        return;
      if (n > 0)
        {
          unasked++;
          note (0, "unasked", buffer, n);
        }
      /* Closed, reset, or more than an answer: the next request needs another one. */
      idle_losses++;
      drop (c);
      return;
    }
  enum failure wrong = receive (c, buffer, sizeof (buffer), &n);
  if (wrong != FAILURES)
    {
      lost (c, wrong);
      return;
    }
  if (!c->whole)
    return;
  int64_t now = clock_ns ();
  add (&service_time, now - c->sent);
  if (rate > 0)
    add (&latency, now - c->intended);
  replies++;
  replies_in_window += now < end;
  under_way--;
  c->state = IDLE;
  if (c->closes)
    {
      idle_losses++;
      drop (c);
    }
  c->index += everyones;
  c->since = now;
}

static void
scan (int64_t now)
{
  for (int64_t i = 0; i < connections; i++)
    {
      struct connection *c = &all[i];
      if ((c->state == WAITING || c->state == CONNECTING) && now - c->sent > timeout_ns)
        lost (c, TIMEOUT);
      pump (c, now);
    }
}

/* Returns how many events came until UNTIL, at least one of them unless that passed. */
static int
wait_until (int64_t until, struct epoll_event *ready, int most)
{
  int64_t wait = until - clock_ns ();
  struct timespec patience = { wait > 0 ? wait / SECOND : 0, wait > 0 ? wait % SECOND : 0 };
  int n = epoll_pwait2 (epoll, ready, most, &patience, NULL);
  if (n < 0 && errno != EINTR)
    stop (1, "epoll_pwait2: %s (Linux has it since 5.11)", strerror (errno));
  return n;
}

static void
run (void)
{
  int64_t next = own (0), scan_at = start;
  for (int64_t now = start; now < end + timeout_ns; now = clock_ns ())
    {
      if (rate > 0 ? replies + failed == total : now >= end && under_way == 0)
        break;
      for (; next < last && due_at (next) <= now; next = own (next + 1))
        pump (&all[next % everyones / clients], now);
      if (now >= scan_at)
        {
          scan (now);
          scan_at = now + SCAN;
        }
      int64_t until = next < last && due_at (next) < scan_at ? due_at (next) : scan_at;
      struct epoll_event ready[256];
      int n = wait_until (until, ready, 256);
      for (int i = 0; i < n; i++)
        {
          struct connection *c = ready[i].data.ptr;
          if (c->state == CONNECTING)
            connected (c);
          else
            readable (c);
          pump (c, clock_ns ());
        }
    }
  for (int64_t i = 0; i < connections; i++)
    if (all[i].state == WAITING || all[i].state == CONNECTING)
      lost (&all[i], TIMEOUT);
}

/* Open loop of connections (--calls).  Connections under way are a list, that whose last step is
   the oldest first: all have the same time to answer, so the first is the next that is lost. */
static struct connection *oldest, *newest, *spare;

static void
take_out (struct connection *c)
{
  *(c->older ? &c->older->newer : &oldest) = c->newer;
  *(c->newer ? &c->newer->older : &newest) = c->older;
}

/* Notes that it does its next step at NOW. */
static void
step (struct connection *c, int64_t now)
{
  c->sent = now;
  c->older = newest;
  c->newer = NULL;
  *(newest ? &newest->newer : &oldest) = c;
  newest = c;
}

static void
release (struct connection *c)
{
  take_out (c);
  if (c->sd >= 0)
    close (c->sd);
  c->state = NONE;
  c->newer = spare;
  spare = c;
  under_way--;
}

static void
give_up (struct connection *c, enum failure why)
{
  if (c->calls < calls - 1)
    add (&connection_time, clock_ns () - c->since);
  errors[why]++;
  failed++;
  release (c);
}

static bool call (struct connection *c);

static void
open_at (int64_t index, int64_t now)
{
  struct connection *c = spare;
  add (&send_lag, now - due_at (index));
  if (!c)
    {
      errors[NO_FILE]++;
      failed++;
      return;
    }
  spare = c->newer;
  c->calls = calls;
  c->intended = due_at (index);
  c->since = now;
  forget_answer (c);
  c->state = CONNECTING;
  under_way++;
  if (under_way > most_under_way)
    most_under_way = under_way;
  step (c, now);
  if (begin (c) < 0)
    {
      give_up (c, reason (errno));
      return;
    }
  watch (c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  call (c);
}

/* Returns whether it sent the next request.  That of a connection that is still being made may be
   tried: on a short link the handshake ends within connect(). */
static bool
call (struct connection *c)
{
  next_target (c);
  errno = 0;
  int64_t now = clock_ns ();
  bool sent = send (c->sd, request, request_size, MSG_NOSIGNAL) == (ssize_t) request_size;
  if (!sent && c->state == CONNECTING && errno == EAGAIN)
    return false;
  if (!sent)
    {
      give_up (c, reason (errno));
      return false;
    }
  if (c->state == CONNECTING)
    add (&connect_time, now - c->since);
  take_out (c);
  step (c, now);
  forget_answer (c);
  c->calls--;
  c->state = WAITING;
  requests++;
  requests_in_window += now < end;
  return true;
}

/* Reads what is there; a short read leaves nothing (epoll(7), edge-triggered) but the end of what
   has been CLOSED. */
static void
take_reply (struct connection *c, bool closed)
{
  static char buffer[65536];
  ssize_t n;
  do
    {
      enum failure wrong = receive (c, buffer, sizeof (buffer), &n);
      if (wrong != FAILURES)
        {
          give_up (c, wrong);
          return;
        }
      if (n < 0)
        return;
    }
  while (n == sizeof (buffer) - 1 || (closed && !c->whole));
  if (!c->whole)
    return;
  int64_t now = clock_ns ();
  add (&service_time, now - c->sent);
  replies++;
  replies_in_window += now < end;
  int64_t interval = (now - start) / INTERVAL;
  replies_at[interval < INTERVALS ? interval : INTERVALS - 1]++;
  if (c->calls)
    {
      call (c);
      return;
    }
  add (&latency, now - c->intended);
  add (&connection_time, now - c->since);
  release (c);
}

static void
go_on (struct connection *c, uint32_t events)
{
  if (c->state == CONNECTING)
    {
      int error = 0;
      socklen_t size = sizeof (error);
      if (events & (EPOLLERR | EPOLLHUP))
        getsockopt (c->sd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error)
        {
          give_up (c, reason (error));
          return;
        }
      if (!(events & EPOLLOUT))
        return;
      if (!call (c))
        return;
    }
  if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
    take_reply (c, events & EPOLLRDHUP);
}

/* When connection INDEX is opened: at the end of the step in which it is due. */
static int64_t
opened_at (int64_t index)
{
  int64_t step_ns = gather_s * SECOND, due_ns = due_at (index) - start;
  return start + (step_ns ? (due_ns + step_ns - 1) / step_ns * step_ns : due_ns);
}

static void
run_calls (void)
{
  struct epoll_event ready[1024];
  for (int64_t next = client;;)
    {
      int64_t now = clock_ns ();
      for (; next < last && opened_at (next) <= now; next += clients)
        open_at (next, clock_ns ());
      while (oldest && now - oldest->sent > timeout_ns)
        give_up (oldest, TIMEOUT);
      if (next >= last && !oldest)
        break;
      int64_t lost_at = oldest ? oldest->sent + timeout_ns : INT64_MAX;
      int64_t until = next < last && opened_at (next) < lost_at ? opened_at (next) : lost_at;
      int n = wait_until (until, ready, 1024);
      for (int i = 0; i < n; i++)
        go_on (ready[i].data.ptr, ready[i].events);
    }
}

static void
open_connection (struct connection *c)
{
  struct pollfd ready = { .events = POLLOUT };
  int error = 0;
  socklen_t size = sizeof (error);
  if (begin (c) < 0)
    error = errno;
  ready.fd = c->sd;
  if (!error && poll (&ready, 1, timeout_s * 1000) == 0)
    error = ETIMEDOUT;
  if (!error)
    getsockopt (c->sd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error)
    stop (1, "cannot connect to %s port %s: %s; is the server running?", host, port,
          strerror (error));
  c->state = IDLE;
}

static void
ask (struct connection *c)
{
  next_target (c);
  if (send (c->sd, request, request_size, MSG_NOSIGNAL) != (ssize_t) request_size)
    stop (1, "cannot send the first request: %s", strerror (errno));
}

/* Returns the answer on a connection that has asked, its bytes in BUFFER; without HTTP it ends when
   nothing more comes. */
static struct answer
answer (int sd, char buffer[LONGEST_ANSWER])
{
  struct answer a = { 0 };
  size_t size = 0;
  for (bool ended = false; !ended;)
    {
      struct pollfd ready = { .fd = sd, .events = POLLIN };
      bool settles = size > 0 && !reply_size && !a.head;
      if (poll (&ready, 1, (settles ? settle_s : timeout_s) * 1000) == 0)
        {
          if (settles)
            break;
          stop (1, "%zu bytes of an answer came within %g s%s", size, timeout_s,
                reply_size ? "; is --reply-bytes right?" : "; is the request complete?");
        }
      ssize_t n = recv (sd, buffer + size, LONGEST_ANSWER - 1 - size, 0);
      ended = n == 0 && size > 0;
      if (n <= 0 && !ended)
        stop (1, "the server closed the connection after %zu bytes; it must keep it open%s",
              size, n < 0 ? " (reset)" : "");
      size += n;
      buffer[size] = 0;
      const char *bytes = buffer;
      skip_informational (&bytes, &size);
      memmove (buffer, bytes, size + 1);
      http = size > 0 && read_answer (buffer, size, ended, &a);
      if (a.whole || size >= LONGEST_ANSWER - 1 || (reply_size && !http && size >= reply_size))
        break;
      if (ended && (http || !calls))
        stop (1, "the server closed the connection after %zu bytes of an answer%s", size,
              http ? ", which is not whole" : "; it must keep it open");
    }
  return http ? a : (struct answer) { .whole = true, .size = size, .body = buffer, .body_size = size };
}

/* Learns from two exchanges how answers are, and, unless that is given, what is in them. */
static void
learn (void)
{
  static char buffer[2][LONGEST_ANSWER];
  struct connection c = { .sd = -1 };
  struct answer found[2];
  bool given = body || bodies;
  for (int i = 0; i < 2; i++)
    {
      if (c.sd < 0)
        open_connection (&c);
      ask (&c);
      found[i] = answer (c.sd, buffer[i]);
      /* With --calls, the server may close after each. */
      if (i || calls || found[i].closes)
        {
          drop (&c);
          c.sd = -1;
        }
      if (given || i)
        continue;
      status = found->status;
      body_size = found->body_size;
      body = memcpy (malloc (body_size + 1), found->body, body_size);
      if (!http && reply_size && body_size != reply_size)
        stop (1, "the first answer has %zu bytes, not --reply-bytes %zu", body_size, reply_size);
    }
  if (!given
      && (found[1].body_size != body_size || memcmp (found[1].body, body, body_size) != 0))
    {
      if (!http)
        stop (1, "the first answer has %zu bytes, the next %zu: they must be the same", body_size,
              found[1].body_size);
      body = NULL;
    }
  memcpy (beginning, buffer[0], BEGINNING);
  reply_head_size = found[0].head;
  reply_size = found[0].head + found[0].body_size;
  informational = 0;
}

/* Connections that have carried a request and wait for the next, which never
   comes: a browser between two clicks. */
static void
hold (void)
{
  struct pollfd *held = calloc (idle + 1, sizeof (*held));
  if (!held)
    stop (1, "no memory for %ld connections", idle);
  held[0] = (struct pollfd) { .fd = STDIN_FILENO, .events = POLLIN };
  for (int64_t first = 1; first <= idle; first += AT_ONCE)
    {
      int64_t last = first + AT_ONCE > idle + 1 ? idle + 1 : first + AT_ONCE;
      for (int64_t i = first; i < last; i++)
        {
          struct connection c = { .sd = -1 };
          open_connection (&c);
          held[i] = (struct pollfd) { .fd = c.sd, .events = POLLIN };
          ask (&c);
        }
      for (int64_t i = first; i < last; i++)
        {
          static char buffer[LONGEST_ANSWER];
          struct answer a = answer (held[i].fd, buffer);
          if (a.status != (http ? status : 0)
              || (body && (a.body_size != body_size || memcmp (a.body, body, body_size) != 0)))
            stop (1, "connection %ld: an answer with a body of %zu bytes, not the right one of %zu", i,
                  a.body_size, body_size);
        }
    }
  printf ("idle_connections: %ld\n", idle);
  fflush (stdout);
  int64_t losses = 0;
  while (poll (held, idle + 1, -1) > 0 || errno == EINTR)
    {
      for (int64_t i = 1; i <= idle; i++)
        if (held[i].revents)
          {
            close (held[i].fd);
            held[i] = (struct pollfd) { .fd = -1 };
            losses++;
          }
      char byte;
      if (held[0].revents && read (STDIN_FILENO, &byte, 1) <= 0)
        break;
    }
  printf ("idle_losses: %ld\nend\n", losses);
}

static void
report_histogram (const char *name, const struct histogram *h)
{
  for (int bin = 0; bin < BINS - 1; bin++)
    if (h->count[bin])
      printf ("%s %.3f %.3f %lu\n", name, bound (bin) / 1e3, bound (bin + 1) / 1e3, h->count[bin]);
}

static int64_t
micros (struct timeval then, struct timeval now)
{
  return (now.tv_sec - then.tv_sec) * 1000000 + now.tv_usec - then.tv_usec;
}

static void
report (int64_t stopped, const struct rusage *before, const struct rusage *after)
{
  printf ("roundtrip: %d\nloop: %s\nconnections: %ld\noffered_rate_rps: %.3f\n",
          REPORT_VERSION, calls ? "calls" : rate > 0 ? "open" : "closed", connections,
          calls ? rate / clients : rate * connections / everyones);
  printf ("offered_duration_us: %.0f\ntest_duration_us: %ld\n", duration_s * 1e6,
          (stopped - start) / 1000);
  printf ("request_bytes: %zu\nreply_bytes: %zu\nreply_begins: ", request_size, reply_size);
  for (size_t i = 0; i < BEGINNING && i < reply_size; i++)
    putchar (beginning[i] > ' ' && beginning[i] < 127 ? beginning[i] : '.');
  printf ("\nrequests: %ld\nrequests_offered_window: %ld\nreplies: %ld\n"
          "replies_offered_window: %ld\nreply_rate_offered_window_rps: %.3f\n",
          requests, requests_in_window, replies, replies_in_window,
          replies_in_window / duration_s);
  printf ("unsent: %ld\nconnects: %ld\nidle_losses: %ld\nerrors_total: %ld\n",
          rate > 0 && !calls ? total - replies - failed : 0, connects, idle_losses, failed);
  for (int i = 0; i < FAILURES; i++)
    printf ("errors_%s: %lu\n", failure_names[i], errors[i]);
  printf ("client_cpu_user_us: %ld\nclient_cpu_system_us: %ld\n",
          micros (before->ru_utime, after->ru_utime), micros (before->ru_stime, after->ru_stime));
  printf ("informational: %ld\nreply_head_bytes: %zu\n", informational, reply_head_size);
  printf ("answers_unasked: %ld\nfirst_wrong_answer: %s\n", unasked, first_wrong);
  if (calls)
    {
      printf ("calls: %ld\ngather_us: %.0f\nmost_under_way: %ld\nreceived_bytes: %ld\n", calls,
              gather_s * 1e6, most_under_way, received_bytes);
      for (int64_t i = 0; i < INTERVALS; i++)
        if (replies_at[i])
          printf ("replies_at %ld.000 %ld.000 %lu\n", i * INTERVAL / 1000,
                  (i + 1) * INTERVAL / 1000, replies_at[i]);
    }
  report_histogram ("connect_time", &connect_time);
  report_histogram ("connection_time", &connection_time);
  report_histogram ("service_time", &service_time);
  report_histogram ("latency", &latency);
  report_histogram ("send_lag", &send_lag);
  puts ("end");
}

static double
number (const char *option, const char *text, double least, double most)
{
  char *rest;
  double value = strtod (text, &rest);
  if (rest == text || *rest || !(value >= least && value <= most))
    stop (2, "--%s %s: not a number from %g to %g", option, text, least, most);
  return value;
}

static int64_t
whole (const char *option, const char *text, double least, double most)
{
  double value = number (option, text, least, most);
  if (value != (int64_t) value)
    stop (2, "--%s %s: not a whole number", option, text);
  return value;
}

/* Writes TEXT with its escapes replaced to BYTES, of which there may be MOST; returns how many. */
static size_t
from_text (const char *option, const char *text, char *bytes, size_t most)
{
  static const char letters[] = "rnt\\", meant[] = "\r\n\t\\";
  size_t size = 0;
  for (; *text; text++)
    {
      unsigned byte = (unsigned char) *text;
      int length;
      const char *letter;
      if (*text != '\\')
        ;
      else if (text[1] && (letter = strchr (letters, text[1])))
        byte = meant[letter - letters], text++;
      else if (sscanf (text, "\\x%2x%n", &byte, &length) == 1 && length == 4)
        text += 3;
      else
        stop (2, "--%s: unknown escape %.2s; known: \\r \\n \\t \\\\ \\xHH", option, text);
      if (size == most)
        stop (2, "--%s: longer than %zu bytes", option, most);
      bytes[size++] = byte;
    }
  return size;
}

/* Returns what a file holds, SIZE bytes of which there may be MOST, and a zero byte after them. */
static char *
from_file (const char *option, const char *name, size_t *size, size_t most)
{
  FILE *file = fopen (name, "rb");
  if (!file)
    stop (2, "--%s %s: %s", option, name, strerror (errno));
  char *bytes = NULL;
  size_t room = 0;
  *size = 0;
  do
    {
      bytes = realloc (bytes, (room += LONGEST_REQUEST) + 1);
      if (!bytes)
        stop (2, "--%s %s: no memory for it", option, name);
      *size += fread (bytes + *size, 1, room - *size, file);
      if (*size > most)
        stop (2, "--%s %s: longer than %zu bytes", option, name, most);
    }
  while (*size == room);
  if (ferror (file))
    stop (2, "--%s %s: %s", option, name, strerror (errno));
  fclose (file);
  bytes[*size] = 0;
  return bytes;
}

static void
request_from_file (const char *name)
{
  char *bytes = from_file ("request-file", name, &request_size, sizeof (request));
  memcpy (request, bytes, request_size);
}

static void
targets_from_file (const char *name)
{
  size_t size;
  targets = from_file ("targets", name, &size, LONGEST_FILE);
  target_size = strlen (targets);
  targets_count = size / (target_size + 1);
  bool equal = targets_count > 0 && target_size > 0;
  for (size_t i = 0; i < targets_count && equal; i++)
    equal = strnlen (targets + i * (target_size + 1), size) == target_size;
  if (!equal || targets_count * (target_size + 1) != size)
    stop (2, "--targets %s: not targets of one length, each ended by a zero byte", name);
}

/* Fails unless there is a body for each target. */
static void
check_bodies (void)
{
  size_t count = 0;
  for (size_t i = 0; i < bodies_size; i++)
    count += !bodies[i];
  if (!targets || count != targets_count || bodies[bodies_size - 1])
    stop (2, "--bodies: %zu bodies, each ended by a zero byte, for %zu of --targets", count,
          targets_count);
}

/* Makes room for a target in the request. */
static void
place_target (void)
{
  static const char word[] = "{target}";
  const size_t length = sizeof (word) - 1;
  char *place = memmem (request, request_size, word, length);
  if (!place)
    stop (2, "--targets: the request has no %s", word);
  if (request_size - length + target_size > sizeof (request))
    stop (2, "the request is longer than %d bytes", LONGEST_REQUEST);
  memmove (place + target_size, place + length, request + request_size - (place + length));
  request_size += target_size - length;
  target_place = place;
}

static void
client_from_text (const char *text)
{
  int length = 0;
  if (sscanf (text, "%ld/%ld%n", &client, &clients, &length) != 2 || text[length] || client < 0
      || client >= clients)
    stop (2, "--client %s: write I/N, client I of N, counted from 0", text);
}

static void
sources_from_text (char *text)
{
  struct addrinfo numeric = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
  for (char *rest, *one = strtok_r (text, ",", &rest); one; one = strtok_r (NULL, ",", &rest))
    {
      if (sources_count == MOST_SOURCES)
        stop (2, "--source: more than %d addresses", MOST_SOURCES);
      int wrong = getaddrinfo (one, NULL, &numeric, &sources[sources_count]);
      if (wrong)
        stop (2, "--source %s: %s", one, gai_strerror (wrong));
      struct addrinfo *source = sources[sources_count++];
      int sd = socket (source->ai_family, SOCK_STREAM, 0);
      if (sd < 0 || bind (sd, source->ai_addr, source->ai_addrlen) < 0)
        stop (2, "--source %s: this machine cannot use it as its own: %s", one, strerror (errno));
      close (sd);
    }
}

/* How many connections may be open at once. */
static int64_t
open_files (void)
{
  struct rlimit files;
  getrlimit (RLIMIT_NOFILE, &files);
  int64_t most = files.rlim_max - SPARE_FILES;
  return most < MOST_CONNECTIONS ? most : MOST_CONNECTIONS;
}

static void
read_options (int argc, char **argv)
{
  static const struct option known[]
    = { { "host", 1, 0, 'h' },         { "port", 1, 0, 'p' },        { "request", 1, 0, 'q' },
        { "request-file", 1, 0, 'f' }, { "reply-bytes", 1, 0, 'b' }, { "settle", 1, 0, 's' },
        { "connections", 1, 0, 'c' },  { "rate", 1, 0, 'r' },        { "duration", 1, 0, 'd' },
        { "timeout", 1, 0, 't' },      { "idle", 1, 0, 'i' },        { "client", 1, 0, 'C' },
        { "source", 1, 0, 'S' },       { "calls", 1, 0, 'n' },       { "gather", 1, 0, 'g' },
        { "targets", 1, 0, 'T' },      { "body", 1, 0, 'B' },        { "bodies", 1, 0, 'D' },
        { "help", 0, 0, 'H' },        { "version", 0, 0, 'V' },
        { 0 } };
  opterr = 0;
  for (int c; (c = getopt_long (argc, argv, "", known, NULL)) != -1; )
    switch (c)
      {
      case 'h': host = optarg; break;
      case 'p': whole ("port", port = optarg, 1, 65535); break;
      case 'q': request_size = from_text ("request", optarg, request, sizeof (request)); break;
      case 'B':
        body_size = from_text ("body", optarg, body = malloc (LONGEST_ANSWER), LONGEST_ANSWER);
        break;
      case 'D': bodies = from_file ("bodies", optarg, &bodies_size, LONGEST_FILE); break;
      case 'f': request_from_file (optarg); break;
      case 'b': reply_size = whole ("reply-bytes", optarg, 1, 1e9); break;
      case 's': settle_s = number ("settle", optarg, 0.001, 60); break;
      case 'c': connections = whole ("connections", optarg, 1, 1e9); break;
      case 'r': rate = number ("rate", optarg, 0, 1e7); break;
      case 'd': duration_s = number ("duration", optarg, 0.001, 86400); break;
      case 't': timeout_s = number ("timeout", optarg, 0.001, 3600); break;
      case 'i': idle = whole ("idle", optarg, 1, MOST_CONNECTIONS); break;
      case 'C': client_from_text (optarg); break;
      case 'S': sources_from_text (optarg); break;
      case 'n': calls = whole ("calls", optarg, 1, 1e9); break;
      case 'T': targets_from_file (optarg); break;
      case 'g': gather_s = number ("gather", optarg, 0, 0.1); break;
      case 'H': fputs (help, stdout); exit (0);
      case 'V': printf ("roundtrip %d\n", REPORT_VERSION); exit (0);
      default:
        stop (2, "%s: unknown option or no value; see --help", argv[optind - 1]);
      }
  if (optind < argc)
    stop (2, "%s: not an option; see --help", argv[optind]);
  if (!port)
    stop (2, "no --port given; see --help");
  if (calls && !(rate > 0))
    stop (2, "--calls needs --rate, the connections to open per second");
  if (gather_s > 0 && !calls)
    stop (2, "--gather needs --calls");
  everyones = connections ? connections : calls ? open_files () * clients : 1;
  connections = share (everyones);
  if (!connections)
    stop (2, "--client %ld/%ld: no connection of %ld is left for it", client, clients, everyones);
  if (connections > MOST_CONNECTIONS)
    stop (2, "--connections %ld: %d at most for each client", connections, MOST_CONNECTIONS);
  if (!request_size)
    stop (2, "no --request or --request-file given, or it is empty; see --help");
  if (targets)
    place_target ();
  if (bodies)
    check_bodies ();
}

int
main (int argc, char **argv)
{
  read_options (argc, argv);
  struct addrinfo wanted = { .ai_socktype = SOCK_STREAM };
  int wrong = getaddrinfo (host, port, &wanted, &address);
  if (wrong)
    stop (2, "--host %s: %s", host, gai_strerror (wrong));
  struct rlimit files;
  getrlimit (RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit (RLIMIT_NOFILE, &files);
  int64_t wanted_files = idle ? idle : connections;
  if (files.rlim_max < (rlim_t) wanted_files + SPARE_FILES)
    stop (2, "--%s %ld: only %lu open files are allowed; raise ulimit -n",
          idle ? "idle" : "connections", wanted_files, files.rlim_max);
  /* The default lets a timer end 50 us late. */
  prctl (PR_SET_TIMERSLACK, 1);

  learn ();
  if (idle)
    {
      hold ();
      return 0;
    }
  all = calloc (connections, sizeof (*all));
  epoll = epoll_create1 (EPOLL_CLOEXEC);
  if (!all || epoll < 0)
    stop (1, "no memory or descriptors: %s", strerror (errno));
  for (int64_t i = 0; i < connections && calls; i++)
    {
      all[i].newer = spare;
      spare = &all[i];
    }
  for (int64_t i = 0; i < connections && !calls; i++)
    {
      open_connection (&all[i]);
      watch (&all[i], EPOLL_CTL_ADD, EPOLLIN);
      all[i].index = client + i * clients;
    }
  connects = calls ? 0 : connections;

  struct rusage before, after;
  getrusage (RUSAGE_SELF, &before);
  timeout_ns = timeout_s * SECOND;
  last = rate > 0 ? rate * duration_s : 0;
  total = calls ? share (last) : last / everyones * connections + share (last % everyones);
  start = clock_ns ();
  end = start + (int64_t) (duration_s * SECOND);
  calls ? run_calls () : run ();
  getrusage (RUSAGE_SELF, &after);
  report (clock_ns (), &before, &after);
  return 0;
}
